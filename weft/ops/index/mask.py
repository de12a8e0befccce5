"""Masks: filling and selecting by truth values, and the places where something is true."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import int64
from ...core.errors import ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, broadcast
from ...core.tensor import Tensor
from .._operands import names_errors
from ._checks import check_boolean, operands, uncountable
from ._spec import UNKNOWN
from .setitem import as_value


@composite(method=True)
@names_errors
def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return x with `value` (a number or a 0-d tensor) wherever the mask is true.

    x and mask broadcast against each other.

    >>> import weft as wf
    >>> x = wf.tensor([1.0, 2.0, 3.0])
    >>> wf.masked_fill(x, x > 1.5, 0.0)
    tensor([1., 0., 0.])
    """
    x, mask = operands(x, mask)
    check_boolean(mask)
    value = as_value(value, x.dtype)
    if value.ndim != 0:
        raise ShapeError(
            f"value must be one number. Received: shape {value.shape}; "
            "use where(mask, value, x) for a tensor of values"
        )
    value = value if value.dtype == x.dtype else F.cast(value, x.dtype)
    return F.where(mask, value, x)


@composite(method=True)
@names_errors
def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """Return the elements of x where the mask is true, as a 1-D tensor.

    x and mask broadcast against each other; the size of the result depends on the mask's values.

    >>> import weft as wf
    >>> x = wf.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> wf.masked_select(x, x > 1.5)
    tensor([2., 3., 4.])
    """
    x, mask = operands(x, mask)
    check_boolean(mask)
    shape = broadcast(tuple(x.shape), tuple(mask.shape))
    x, mask = (t if tuple(t.shape) == shape else F.broadcast_to(t, shape) for t in (x, mask))
    return x[mask]


# -- places -------------------------------------------------------------------------------------


@op(general, outputs=None, batch=uncountable)
def nonzero(x: Tensor) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero: one int64 tensor for each axis.

    `x[nonzero(x)]` are those elements, in row-major order. NaN counts as not zero. With
    as_tuple=False, PyTorch's default, it is `argwhere`: one tensor with a row for each element.

    >>> import weft as wf
    >>> wf.nonzero(wf.tensor([[0.0, 5.0], [6.0, 0.0]]))
    (tensor([0, 1]), tensor([1, 0]))
    """


@nonzero.by_keywords()
def _(x, as_tuple):
    return F.nonzero(x) if as_tuple else F.argwhere(x)


@nonzero.canon
def _(x):
    if x.ndim == 0:
        raise ShapeError("a 0-d tensor has no axes to give indices of; use x != 0")
    return ()


@nonzero.eval
def _(x):
    return [i.astype(np.int64, copy=False) for i in np.nonzero(x)]


@nonzero.infer
def _(x):
    return tuple(TensorType((UNKNOWN,), int64) for _ in range(x.ndim))


@nonzero.samples
def _(s):
    yield Sample(np.array([0.0, 2.0, np.nan, -0.0]), grad=0)
    yield Sample(s.integers(2, 3, high=2))
    yield Sample(s.booleans(2, 2, 2))
    yield Sample(s.real(0, 3), grad=0, label="empty")


@nonzero.error_samples
def _(s):
    yield ErrorSample(np.array(1.0), error=ValueError, match="0-d tensor")


@composite(method=True)
@names_errors
def argwhere(x: Tensor) -> Tensor:
    """Return the indices of the elements that are not zero, one row for each.

    >>> import weft as wf
    >>> wf.argwhere(wf.tensor([[0.0, 5.0], [6.0, 0.0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    (x,) = operands(x)
    return F.stack(F.nonzero(x), axis=1)


@composite()
@names_errors
def flatnonzero(x: Tensor) -> Tensor:
    """Return the positions of the elements of the flattened x that are not zero.

    >>> import weft as wf
    >>> wf.flatnonzero(wf.tensor([[0.0, 5.0], [6.0, 0.0]]))
    tensor([1, 2])
    """
    (x,) = operands(x)
    return F.nonzero(F.reshape(x, (-1,)))[0]
