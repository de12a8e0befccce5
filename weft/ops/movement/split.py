"""Split a tensor into parts along an axis."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import Any

from ...core.dim import Dim, is_known, known_size, size_max, size_min, surely_less
from ...core.errors import ArgumentError, ShapeError, UnknownSizeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, as_shape, normalize_axis
from ...core.tensor import Tensor


@op(
    movement,
    outputs=None,
    linear=("x",),
    keywords={"split_size_or_sections": "sizes", "split_size": "sizes"},
)
def split(x: Tensor, sizes: int | tuple[int, ...], axis: int = 0) -> tuple[Tensor, ...]:
    """Return x in parts along an axis, as PyTorch's split.

    An int is the size of each part (the last one may be smaller); a sequence gives all sizes.

    >>> import weft as wf
    >>> [part.shape for part in wf.split(wf.zeros(5), 2)]
    [(2,), (2,), (1,)]
    """


@split.canon
def _(x, sizes, axis):
    if x.ndim == 0:
        raise ShapeError("a 0-d tensor has no axis to split along")
    axis = normalize_axis(axis, x.ndim)
    total = x.shape[axis]
    if isinstance(sizes, (tuple, list)):
        parts = as_shape(sizes, "sizes")
        if sum(parts) != total:
            raise ShapeError(
                f"sizes must add up to {total}, the size of axis {axis} of shape "
                f"{tuple(x.shape)}. Received: {parts}"
            )
        return parts, axis
    return _equal_parts(total, as_int(sizes, "the size of a part")), axis


@split.infer
def _(x, sizes, axis):
    lead, tail = x.shape[:axis], x.shape[axis + 1 :]
    return tuple(TensorType((*lead, size, *tail), x.dtype) for size in sizes)


@split.eval
def _(x, sizes, axis):
    lead = (slice(None),) * axis
    bounds = accumulate(sizes, initial=0)
    return [x[(*lead, slice(start, stop))] for start, stop in pairwise(bounds)]


@split.view
def _(x, sizes, axis):
    lead, tail, step = x.shape[:axis], x.shape[axis + 1 :], x.strides[axis]
    return [
        x.restrided((*lead, size, *tail), x.strides, start * step)
        for start, size in zip(accumulate(sizes, initial=0), sizes, strict=False)
    ]


@split.vjp("x")
def _(g, axis):
    return F.concat(g, axis)


@split.samples
def _(s):
    yield Sample(s.real(5), 2)
    yield Sample(s.real(4), (1, 3))
    yield Sample(s.real(2, 3), [1, 0, 2], axis=1, label="empty part")
    yield Sample(s.real(2, 3), 5, axis=-1, label="one part")
    yield Sample(s.real(0, 3), 2, label="empty")
    yield Sample(s.strided(4, 2), 3, axis=0, label="non-contiguous")
    yield Sample(s.integers(4), 2, label="integers")


@split.error_samples
def _(s):
    yield ErrorSample(s.real(4), (1, 2), error=ValueError, match=r"add up to 4.*\(1, 2\)")
    yield ErrorSample(s.real(4), 0, error=ValueError, match="Received: 0")
    yield ErrorSample(s.real(4), 2, axis=1, error=IndexError, match="axis 1 is out of range")
    yield ErrorSample(s.real(), 2, error=ValueError, match="0-d")
    yield ErrorSample(s.real(4), 1.5, error=TypeError, match="Received: 1.5")


def _equal_parts(total: int, size: int) -> tuple[int, ...]:
    if surely_less(size, 1):
        raise ArgumentError(f"the size of a part must be at least 1. Received: {size}")
    if not isinstance(total // size, int):
        raise UnknownSizeError(
            f"into how many parts of {size} the size {total} splits is not known until the graph "
            "runs; give the placeholder a known size, or give the sizes of all parts"
        )
    whole, rest = divmod(total, size)
    return (size,) * whole + ((rest,) if rest or not total else ())


@op(movement, outputs=None, linear=("x",), aliases=("unstack",))
def unbind(x: Tensor, axis: int = 0) -> tuple[Tensor, ...]:
    """Return the slices of x along an axis, without that axis.

    >>> import weft as wf
    >>> wf.unbind(wf.tensor([[1, 2], [3, 4]]), axis=1)
    (tensor([1, 3]), tensor([2, 4]))
    """


@unbind.canon
def _(x, axis):
    return (normalize_axis(axis, x.ndim),)


@unbind.infer
def _(x, axis):
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return (TensorType(shape, x.dtype),) * known_size(x.shape[axis], "the number of slices")


@unbind.eval
def _(x, axis):
    lead = (slice(None),) * axis
    return [x[(*lead, i)] for i in range(x.shape[axis])]


@unbind.view
def _(x, axis):
    shape, strides = (t[:axis] + t[axis + 1 :] for t in (x.shape, x.strides))
    return [x.restrided(shape, strides, i * x.strides[axis]) for i in range(x.shape[axis])]


@unbind.vjp("x")
def _(g, axis):
    return F.stack(g, axis)


@unbind.samples
def _(s):
    yield Sample(s.real(3))
    yield Sample(s.real(2, 3), axis=1)
    yield Sample(s.real(2, 1, 3), axis=-1)
    yield Sample(s.real(2, 0), axis=0, label="empty slices")
    yield Sample(s.strided(2, 3), label="non-contiguous")


@unbind.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(), error=IndexError, match="0-d")


@composite(method=True)
def chunk(x: Any, chunks: int, axis: int = 0) -> Any:
    """Return x in at most `chunks` parts of equal size (the last one may be smaller).

    >>> import weft as wf
    >>> [part.shape for part in wf.chunk(wf.zeros(5), 3)]
    [(2,), (2,), (1,)]
    """
    count = as_int(chunks, "chunk: chunks")
    if count < 1:
        raise ArgumentError(f"chunk: chunks must be at least 1. Received: {count}")
    axis = normalize_axis(axis, x.ndim, "chunk: axis")
    size = -(-x.shape[axis] // count)
    if isinstance(size, Dim):
        raise UnknownSizeError(
            f"chunk: how many parts there are depends on the size {x.shape[axis]}, which is not "
            "known until the graph runs; use tensor_split, which always makes as many as asked for"
        )
    return F.split(x, size, axis) if size else F.split(x, (0,) * count, axis)


@composite(method=True, aliases=("array_split",))
def tensor_split(x: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    """Return x in parts, as NumPy's array_split.

    An int is the number of parts, whose sizes differ by at most one; a sequence gives the
    positions along the axis at which to cut.

    >>> import weft as wf
    >>> [part.shape for part in wf.tensor_split(wf.zeros(5), 3)]
    [(2,), (2,), (1,)]
    """
    axis = normalize_axis(axis, x.ndim, "tensor_split: axis")
    total = x.shape[axis]
    if isinstance(indices_or_sections, (tuple, list)):
        return _split_at(x, indices_or_sections, axis)
    count = as_int(indices_or_sections, "tensor_split: the number of parts")
    if count < 1:
        raise ArgumentError(f"tensor_split: at least one part is needed. Received: {count}")
    sizes = tuple((total + count - 1 - i) // count for i in range(count))
    return F.split(x, sizes, axis)


def _split_at(x: Any, indices: Any, axis: int) -> Any:
    """Cut at positions taken as in slices: clipped, with nothing between a later and an earlier."""
    total = x.shape[axis]
    cuts = [_clipped(as_int(i, "tensor_split: each index"), total) for i in indices]
    bounds = [0, *cuts, total]
    if is_known(bounds) and all(start <= stop for start, stop in pairwise(bounds)):
        return F.split(x, tuple(stop - start for start, stop in pairwise(bounds)), axis)
    lead = (slice(None),) * axis
    return tuple(x[(*lead, slice(start, stop))] for start, stop in pairwise(bounds))


def _clipped(index: Any, total: Any) -> Any:
    """Return the position that an index names as the start of a slice."""
    return size_max(total + index, 0) if index < 0 else size_min(index, total)
