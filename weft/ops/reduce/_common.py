"""What the reductions share: axes, result types, and the way back from a reduced gradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.dtype import DType
from ...core.errors import ArgumentTypeError, ShapeError
from ...core.op import F
from ...core.samples import Sample, Sampler
from ...core.shape import Shape, TensorType, normalize_axes, reduced_shape, size_of


def canon_reduction(x: Any, axis: Any, keepdims: Any) -> tuple[tuple[int, ...], bool]:
    """Return the axes as a sorted tuple and keepdims as a bool; raise for anything else."""
    return normalize_axes(axis, x.ndim), as_flag(keepdims, "keepdims")


def as_flag(value: Any, what: str) -> bool:
    """Return a truth-value argument as a bool; raise for anything that is not one."""
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    raise ArgumentTypeError(f"{what} must be True or False. Received: {value!r}")


def reduced_type(
    x: TensorType, axis: tuple[int, ...], keepdims: bool, dtype: DType | None = None
) -> TensorType:
    """Return the type of a reduction over normalised axes."""
    return TensorType(reduced_shape(x.shape, axis, keepdims), dtype or x.dtype)


def reduced_behind(x: Any, axis: tuple[int, ...]) -> tuple[Any, tuple[int, ...]] | None:
    """Return x with the axes that are reduced behind the others, and their numbers there.

    None if that is where they are. A kernel of a device goes along rows.
    """
    kept = [a for a in range(x.ndim) if a not in axis]
    last = tuple(range(len(kept), x.ndim))
    return None if axis == last else (F.permute(x, (*kept, *axis)), last)


def check_not_empty(x: TensorType, axis: tuple[int, ...], what: str) -> None:
    """Raise if a reduction without identity would run over no elements."""
    results = size_of(reduced_shape(x.shape, axis, True))
    if size_of(x.shape[i] for i in axis) == 0 and results != 0:
        raise ShapeError(
            f"{what} of no elements is undefined (it has no identity). Received: a tensor of "
            f"shape {x.shape} reduced over axis {axis}"
        )


def count_of(shape: Shape, axis: tuple[int, ...]) -> int:
    """Return how many elements each result of a reduction is made of."""
    return size_of(shape[i] for i in axis)


def spread(g: Any, shape: Shape, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Return a reduced value repeated over the reduced axes, to the shape before the reduction."""
    return F.broadcast_to(unreduce(g, shape, axis, keepdims), shape)


def unreduce(g: Any, shape: Shape, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Return a reduced value with its reduced axes back as axes of size 1.

    Leading axes are left out: broadcasting supplies them.
    """
    if keepdims or axis == tuple(range(len(axis))):
        return g
    return F.reshape(g, reduced_shape(shape, axis, True))


def rows_of(x: Any, axis: tuple[int, ...]) -> Any:
    """Return x with the given axes moved to the end and made into one."""
    rest = tuple(i for i in range(x.ndim) if i not in axis)
    count = count_of(x.shape, axis)
    return F.reshape(F.permute(x, (*rest, *axis)), (*(x.shape[i] for i in rest), count))


def from_rows(rows: Any, shape: Shape, axis: tuple[int, ...]) -> Any:
    """Return what `rows_of` made of a tensor of the given shape in that shape again."""
    order = (*(i for i in range(len(shape)) if i not in axis), *axis)
    turned = F.reshape(rows, tuple(shape[i] for i in order))
    return F.permute(turned, tuple(sorted(range(len(shape)), key=order.__getitem__)))


def reduction_samples(s: Sampler, draw: Any = None, empty: bool = True, **options: Any) -> Any:
    """Yield samples of a reduction over the usual shapes and axes."""
    draw = draw or s.real
    yield Sample(draw(), **options)
    yield Sample(draw(1), **options)
    yield Sample(draw(4), keepdims=True, **options)
    yield Sample(draw(2, 3), **options)
    yield Sample(draw(2, 3), axis=0, **options)
    yield Sample(draw(2, 3), axis=-1, keepdims=True, **options)
    yield Sample(draw(2, 3, 2), axis=(0, -1), **options)
    yield Sample(draw(2, 1, 3), axis=1, **options)
    yield Sample(draw(2, 3), axis=(), label="no axes", **options)
    yield Sample(draw(4, 6)[::2, ::-1].T, axis=1, label="non-contiguous", **options)
    yield Sample(draw(0, 3), axis=1, label="no results", **options)
    if empty:
        yield from empty_samples(draw, **options)


def empty_samples(draw: Any, **options: Any) -> Iterator[Sample]:
    """Yield samples that reduce over no elements."""
    yield Sample(draw(0), label="empty", **options)
    yield Sample(draw(2, 0, 3), axis=1, label="empty axis", **options)
    yield Sample(draw(2, 0), axis=1, keepdims=True, label="empty axis", **options)


def reduction_text(name, types, axis, keepdims):
    """Return a reduction as an expression of NumPy."""
    whole = len(axis) == len(types[0].shape)
    over = "" if whole else f", axis={axis[0] if len(axis) == 1 else axis}"
    kept = ", keepdims=True" if keepdims else ""
    return f"{name}({{x}}{over}{kept})"
