"""The distinct values of a tensor. None of these has a derivative."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import int64
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.sums import widened
from ...core.tensor import Tensor
from .._operands import names_errors
from ._checks import flat_axis, operands, uncountable
from ._spec import UNKNOWN


@op(general, outputs=4, method=False, batch=uncountable)
def distinct(
    x: Tensor, axis: int | None = None, equal_nan: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the sorted distinct values or slices, where each is first, the inverse, the counts."""


@distinct.canon
def _(x, axis, equal_nan):
    return flat_axis(x, axis), bool(equal_nan)


@distinct.eval
def _(x, axis, equal_nan):
    # Widened, because NumPy does not know that bfloat16 has NaNs.
    values, *found = np.unique(widened(x), True, True, True, axis, equal_nan=equal_nan)
    index, inverse, counts = (part.astype(np.int64) for part in found)
    return (
        values.astype(x.dtype, copy=False),
        index,
        inverse.reshape(x.shape if axis is None else -1),
        counts,
    )


@distinct.infer
def _(x, axis, equal_nan):
    found = (UNKNOWN,) if axis is None else (*x.shape[:axis], UNKNOWN, *x.shape[axis + 1 :])
    inverse = x.shape if axis is None else (x.shape[axis],)
    number = TensorType((UNKNOWN,), int64)
    return TensorType(found, x.dtype), number, TensorType(inverse, int64), number


@distinct.samples
def _(s):
    yield Sample(s.integers(3, 4))
    yield Sample(s.integers(4, 2, high=2), axis=0)
    yield Sample(s.integers(2, 5, high=2), dim=-1)
    yield Sample(np.array([1.0, np.nan, 1.0, np.nan]), grad=0, label="nan")
    yield Sample(np.array([1.0, np.nan, np.nan]), equal_nan=False, grad=0, label="nans apart")
    yield Sample(np.array(3), label="0-d")
    yield Sample(np.zeros(0), grad=0, label="empty")


@distinct.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(2, 3), axis="x", error=TypeError, match="Received: 'x'")


@composite(method=True)
@names_errors
def unique(
    x: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements of x, or with an axis the distinct slices; always sorted.

    return_inverse   also the index of each element's (slice's) value among them
    return_counts    also how often each occurs

    NaNs count as equal. Nothing here has a gradient.

    >>> import weft as wf
    >>> wf.unique(wf.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    (x,) = operands(x)
    values, _, inverse, counts = F.distinct(x, axis)
    if not (return_inverse or return_counts):
        return values
    return (values, *[inverse] * bool(return_inverse), *[counts] * bool(return_counts))


# -- as the array API standard names them ---------------------------------------------------------


class UniqueAll(NamedTuple):
    """Distinct values, where each is first, which each element is, and how often each occurs."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each occurs."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values, and which of them each element is."""

    values: Tensor
    inverse_indices: Tensor


@composite(method=True)
@names_errors
def unique_all(x: Tensor) -> UniqueAll:
    """Return the sorted distinct elements, where each is first, the inverse index, and the counts.

    As the array API standard says, each NaN is distinct from all others, here and in its kin.

    >>> import weft as wf
    >>> wf.unique_all(wf.tensor([3, 1, 3])).indices
    tensor([1, 0])
    """
    return UniqueAll(*F.distinct(*operands(x), None, False))


@composite(method=True)
@names_errors
def unique_counts(x: Tensor) -> UniqueCounts:
    """Return the sorted distinct elements, and how often each occurs.

    >>> import weft as wf
    >>> wf.unique_counts(wf.tensor([3, 1, 3])).counts
    tensor([1, 2])
    """
    found = unique_all(x)
    return UniqueCounts(found.values, found.counts)


@composite(method=True)
@names_errors
def unique_inverse(x: Tensor) -> UniqueInverse:
    """Return the sorted distinct elements, and for each element the index of its value in them.

    >>> import weft as wf
    >>> wf.unique_inverse(wf.tensor([3, 1, 3])).inverse_indices
    tensor([1, 0, 1])
    """
    found = unique_all(x)
    return UniqueInverse(found.values, found.inverse_indices)


@composite(method=True)
@names_errors
def unique_values(x: Tensor) -> Tensor:
    """Return the sorted distinct elements.

    >>> import weft as wf
    >>> wf.unique_values(wf.tensor([3, 1, 3]))
    tensor([1, 3])
    """
    return unique_all(x).values
