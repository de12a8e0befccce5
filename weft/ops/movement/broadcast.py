"""Repeat elements: by broadcasting, tiling and repeating."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import with_rank
from ...core.dim import may_stretch
from ...core.division import Division, stretched
from ...core.errors import ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_shape, broadcast, size_of
from ...core.tensor import Tensor
from .reshape import as_sizes, is_plain, sizes_from

SMALL = 16384  # up to here filling a new array is faster than NumPy's making of a view


@op(movement, linear=("x",), keywords={"size": "shape"}, numpy="np.broadcast_to({x}, {shape})")
def broadcast_to(x: Tensor, shape: Shape) -> Tensor:
    """Return x repeated along its axes of size 1, and along new leading axes, to fill a shape.

    >>> import weft as wf
    >>> wf.broadcast_to(wf.tensor([1, 2]), (2, 2))
    tensor([[1, 2],
            [1, 2]])
    """


@broadcast_to.canon
def _(x, shape):
    return (shape if is_plain(shape) else as_shape(shape),)


@broadcast_to.infer
def _(x, shape):
    lead = len(shape) - x.ndim
    if lead < 0 or not all(may_stretch(d, shape[i + lead]) for i, d in enumerate(x.shape)):
        raise ShapeError(
            f"a tensor of shape {x.shape} does not broadcast to {shape}: sizes must be equal or 1, "
            "aligned at the last axis"
        )
    return TensorType(shape, x.dtype)


@broadcast_to.eval
def _(x, shape):
    if x.shape == shape:
        return x
    if size_of(shape) > SMALL or x.ndim > len(shape):
        return np.broadcast_to(x, shape)
    filled = np.empty(shape, x.dtype)
    filled[...] = x
    return filled


@broadcast_to.view
def _(x, shape):
    return x.broadcast(shape)


@broadcast_to.division
def _(x, shape):
    labels, own = stretched(x.shape, shape), tuple(range(len(shape)))
    return Division([labels], own, part=lambda at, x: F.broadcast_to(x, at.shape))


@broadcast_to.vjp("x")
def _(g, x_shape):
    return F.sum_to(g, x_shape)


@broadcast_to.batch
def _(x, shape, examples):
    return F.broadcast_to(with_rank(x, len(shape)), (examples, *shape))


@broadcast_to.samples
def _(s):
    pairs = [((), ()), ((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((2, 3), (2, 3))]
    pairs += [((1,), (0,)), ((2, 1, 3), (1, 2, 2, 3)), ((0, 1), (0, 2))]
    for old, new in pairs:
        yield Sample(s.real(*old), new)
    yield Sample(s.real(1), 3)
    yield Sample(s.strided(2, 3), (2, 2, 3), label="non-contiguous")
    yield Sample(s.integers(2), (200, 100, 2), label="large")


@broadcast_to.error_samples
def _(s):
    yield ErrorSample(s.real(3), (2,), error=ValueError, match=r"\(3,\) does not .*\(2,\)")
    yield ErrorSample(s.real(1, 3), (3,), error=ValueError, match=r"\(1, 3\) does not .*\(3,\)")
    yield ErrorSample(s.real(1), (-1,), error=ValueError, match=r"negative.*\(-1,\)")
    yield ErrorSample(s.real(1), (2.5,), error=TypeError, match="Received: 2.5")


@composite(method=True)
def expand(x: Any, *sizes: Any) -> Any:
    """Return x broadcast to the given sizes, where -1 keeps the size of an axis.

    >>> import weft as wf
    >>> wf.zeros(2, 1).expand(-1, 3).shape
    (2, 3)
    """
    shape = as_sizes(sizes_from(sizes))
    lead = len(shape) - x.ndim
    if lead < 0 or -1 in shape[:lead]:
        raise ShapeError(
            f"expand: sizes must cover the shape {tuple(x.shape)}, and -1 can only stand for one "
            f"of its axes. Received: {shape}"
        )
    kept = (x.shape[i - lead] if dim == -1 else dim for i, dim in enumerate(shape))
    return F.broadcast_to(x, tuple(kept))


@composite(method=True)
def expand_as(x: Any, other: Any) -> Any:
    """Return x broadcast to the shape of another tensor."""
    return F.broadcast_to(x, tuple(other.shape))


@composite(aliases=("broadcast_arrays",))
def broadcast_tensors(*tensors: Any) -> tuple[Any, ...]:
    """Return the tensors broadcast to their common shape."""
    try:
        shape = broadcast(*(tuple(x.shape) for x in tensors))
    except ShapeError as error:
        raise ShapeError(f"broadcast_tensors: {error}", **error.facts) from None
    return tuple(F.broadcast_to(x, shape) for x in tensors)
