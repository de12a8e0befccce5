"""Join tensors along an axis, old or new."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.dispatch import as_sequence
from ...core.division import Division
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, normalize_axis, size_of
from ...core.tensor import Tensor


@op(
    movement,
    promote="common",
    linear=("tensors",),
    method=False,
    aliases=("cat", "concatenate"),
    public=True,
)
def concat(tensors: Sequence[Tensor], axis: int | None = 0) -> Tensor:
    """Return tensors joined along an axis; with axis=None they are flattened first.

    >>> import weft as wf
    >>> wf.concat([wf.zeros(2, 3), wf.ones(1, 3)], axis=0).shape
    (3, 3)
    """


@concat.canon
def _(tensors, axis):
    _check_some(tensors)
    if axis is None:
        return (None,)
    if tensors[0].ndim == 0:
        raise ShapeError("0-d tensors have no axis to join along; use stack")
    return (normalize_axis(axis, tensors[0].ndim),)


@concat.spelling
def _(types, axis):
    return f"np.concatenate([{_places(types)}], {axis})"


def _places(types):
    return ", ".join(f"{{tensors_{i}}}" for i in range(len(types)))


@concat.infer
def _(tensors, axis):
    first = tensors[0]
    if axis is None:
        return TensorType((sum(size_of(t.shape) for t in tensors),), first.dtype)
    for i, t in enumerate(tensors):
        if not may_equal(_without(t.shape, axis), _without(first.shape, axis)):
            raise ShapeError(
                f"shapes must agree except along axis {axis}. Received: {first.shape} for "
                f"tensors[0] and {t.shape} for tensors[{i}]"
            )
    joined = sum(t.shape[axis] for t in tensors)
    return TensorType((*first.shape[:axis], joined, *first.shape[axis + 1 :]), first.dtype)


@concat.division
def _(tensors, axis):
    if axis is None:
        return None
    labels = tuple(None if i == axis else i for i in range(tensors[0].ndim))
    return Division([labels] * len(tensors), labels)


@concat.eval
def _(tensors, axis):
    return np.concatenate(tensors, axis)


@concat.join
def _(whole, shapes, axis):
    if axis is None:
        pairs = zip(accumulate(map(size_of, shapes), initial=0), shapes, strict=False)
        return [whole.sliced((i,), (1,), (size_of(s),)).reshaped(s) for i, s in pairs]
    starts, step = accumulate((s[axis] for s in shapes), initial=0), whole.strides[axis]
    pairs = zip(starts, shapes, strict=False)
    return [whole.restrided(shape, whole.strides, i * step) for i, shape in pairs]


@concat.vjp("tensors")
def _(g, tensors_shape, axis):
    if axis is None:
        parts = F.split(g, tuple(size_of(shape) for shape in tensors_shape), 0)
        return [F.reshape(p, shape) for p, shape in zip(parts, tensors_shape, strict=True)]
    return list(F.split(g, tuple(shape[axis] for shape in tensors_shape), axis))


@concat.batch
def _(tensors, axis):
    if axis is not None:
        return F.concat(tensors, axis + 1)
    return F.concat([F.reshape(x, (x.shape[0], size_of(x.shape[1:]))) for x in tensors], 1)


@concat.samples
def _(s):
    yield Sample([s.real(2), s.real(3)])
    yield Sample([s.real(3)])
    yield Sample([s.real(2, 3), s.real(2, 1), s.real(2, 2)], axis=1)
    yield Sample([s.real(2, 3), s.real(1, 3)], axis=-2)
    yield Sample([s.real(0, 3), s.real(2, 3), s.real(0, 3)], label="empty parts")
    yield Sample([s.real(2, 1), s.real(), s.real(3)], axis=None, label="flattened")
    yield Sample([s.strided(2, 3), s.strided(2, 3)], axis=1, label="non-contiguous")
    yield Sample([s.integers(2), s.real(3).astype(np.float32)], grad=0, label="promotion")


@concat.error_samples
def _(s):
    yield ErrorSample([s.real(2, 3), s.real(2, 4)], error=ValueError, match=r"\(2, 3\).*\(2, 4\)")
    yield ErrorSample([s.real(2), s.real(2, 4)], error=ValueError, match=r"\(2,\).*\(2, 4\)")
    yield ErrorSample([s.real(2)], axis=1, error=IndexError, match="axis 1 is out of range")
    yield ErrorSample([s.real()], error=ValueError, match="use stack")
    yield ErrorSample([], error=ValueError, match="at least one tensor")
    yield ErrorSample(3.0, error=TypeError, match="Received: float 3.0")


@op(movement, promote="common", linear=("tensors",), method=False, public=True)
def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Return tensors of equal shape joined along a new axis.

    >>> import weft as wf
    >>> wf.stack([wf.tensor([1, 2]), wf.tensor([3, 4])], axis=1)
    tensor([[1, 3],
            [2, 4]])
    """


@stack.spelling
def _(types, axis):
    return f"np.stack([{_places(types)}], {axis})"


@stack.canon
def _(tensors, axis):
    _check_some(tensors)
    return (normalize_axis(axis, tensors[0].ndim + 1),)


@stack.infer
def _(tensors, axis):
    first = tensors[0]
    for i, t in enumerate(tensors):
        if not may_equal(t.shape, first.shape):
            raise ShapeError(
                f"shapes must be equal. Received: {first.shape} for tensors[0] and {t.shape} for "
                f"tensors[{i}]"
            )
    return TensorType((*first.shape[:axis], len(tensors), *first.shape[axis:]), first.dtype)


@stack.eval
def _(tensors, axis):
    return np.stack(tensors, axis)


@stack.join
def _(whole, shapes, axis):
    strides, step = _without(whole.strides, axis), whole.strides[axis]
    return [whole.restrided(shape, strides, i * step) for i, shape in enumerate(shapes)]


@stack.vjp("tensors")
def _(g, axis):
    return list(F.unbind(g, axis))


@stack.samples
def _(s):
    yield Sample([s.real(), s.real()])
    yield Sample([s.real(3), s.real(3), s.real(3)])
    yield Sample([s.real(2, 3), s.real(2, 3)], axis=-1)
    yield Sample([s.real(2, 3)], axis=1)
    yield Sample([s.real(0), s.real(0)], axis=1, label="empty")
    yield Sample([s.strided(2, 3), s.strided(2, 3)], axis=1, label="non-contiguous")
    yield Sample([s.integers(2), s.real(2).astype(np.float32)], grad=0, label="promotion")


@stack.error_samples
def _(s):
    yield ErrorSample([s.real(2), s.real(3)], error=ValueError, match=r"\(2,\).*\(3,\)")
    yield ErrorSample([s.real(2)], axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample([], error=ValueError, match="at least one tensor")


def _check_some(tensors: Sequence[Any]) -> None:
    if len(tensors) == 0:
        raise ArgumentError("at least one tensor is needed. Received: an empty sequence")


def _without(shape: Shape, axis: int) -> Shape:
    return (*shape[:axis], *shape[axis + 1 :])


@composite()
def vstack(tensors: Sequence[Any]) -> Any:
    """Return tensors joined along the first axis; vectors are taken as rows."""
    return F.concat([F.atleast_2d(x) for x in as_sequence(tensors, "vstack: tensors")], 0)


@composite()
def hstack(tensors: Sequence[Any]) -> Any:
    """Return tensors joined along the second axis, vectors along their only one."""
    parts = [F.atleast_1d(x) for x in as_sequence(tensors, "hstack: tensors")]
    return F.concat(parts, 0 if parts and parts[0].ndim == 1 else 1)


@composite()
def dstack(tensors: Sequence[Any]) -> Any:
    """Return tensors joined along the third axis, which is added where it is missing."""
    return F.concat([F.atleast_3d(x) for x in as_sequence(tensors, "dstack: tensors")], 2)


@composite()
def column_stack(tensors: Sequence[Any]) -> Any:
    """Return tensors joined along the second axis; vectors are taken as columns."""
    parts = [F.atleast_1d(x) for x in as_sequence(tensors, "column_stack: tensors")]
    return F.concat([F.unsqueeze(x, 1) if x.ndim == 1 else x for x in parts], 1)


@composite()
def meshgrid(*tensors: Any, indexing: str = "xy") -> tuple[Any, ...]:
    """Return the coordinates, one tensor for each vector, of the grid that vectors span.

    indexing="xy" (the default, as in NumPy and the array API) exchanges the first two axes of the
    result; with "ij" axis i of the result runs along vector i.

    >>> import weft as wf
    >>> rows, columns = wf.meshgrid(wf.arange(2), wf.arange(3), indexing="ij")
    >>> rows.shape
    (2, 3)
    """
    if indexing not in ("xy", "ij"):
        raise ArgumentError(f'meshgrid: indexing must be "xy" or "ij". Received: {indexing!r}')
    for i, x in enumerate(tensors):
        if x.ndim > 1:
            raise ShapeError(
                f"meshgrid: vectors are needed. Received: shape {tuple(x.shape)} for tensors[{i}]"
            )
    places = list(range(len(tensors)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    shape = [0] * len(tensors)
    for place, x in zip(places, tensors, strict=True):
        shape[place] = size_of(x.shape)
    return tuple(_along(x, place, tuple(shape)) for place, x in zip(places, tensors, strict=True))


def _along(x: Any, axis: int, shape: Shape) -> Any:
    """Return a vector laid along one axis of a grid."""
    ones = (1,) * (len(shape) - 1 - axis)
    return F.broadcast_to(F.reshape(x, (size_of(x.shape), *ones)), shape)
