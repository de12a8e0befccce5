"""Reverse, roll and rotate along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batching import behind
from ...core.errors import ArgumentError, AxisError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes, as_int, normalize_axes, normalize_axis, size_of
from ...core.tensor import Tensor


@op(movement, linear=("x",))
def flip(x: Tensor, axis: Axes = None) -> Tensor:
    """Return x with the order of elements along the given axes (all by default) reversed.

    >>> import weft as wf
    >>> wf.flip(wf.tensor([1, 2, 3]))
    tensor([3, 2, 1])
    """


@flip.canon
def _(x, axis):
    return (normalize_axes(axis, x.ndim),)


@flip.infer
def _(x, axis):
    return x


@flip.eval
def _(x, axis):
    backwards, same = slice(None, None, -1), slice(None)
    return x[tuple(backwards if i in axis else same for i in range(x.ndim))]


@flip.view
def _(x, axis):
    strides = tuple(-s if a in axis else s for a, s in enumerate(x.strides))
    start = sum(max(0, x.shape[a] - 1) * x.strides[a] for a in axis)
    return x.restrided(x.shape, strides, start)


@flip.vjp("x")
def _(g, axis):
    return F.flip(g, axis)


@flip.as_method
def _flip_method(x: Tensor, *axis: Any, **keywords: Any) -> Tensor:
    """Return x with the order of elements along the given axes (all by default) reversed."""
    axes = axis[0] if len(axis) == 1 else axis or None
    return flip.function(x, axes, **keywords)


@flip.samples
def _(s):
    yield from s.unary()
    yield Sample(s.real(2, 3), axis=0)
    yield Sample(s.real(2, 3, 2), axis=(0, -1))
    yield Sample(s.integers(3), axis=())


@flip.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(2), axis=(0, -1), error=ValueError, match="more than once")


@composite(method=True)
def fliplr(x: Any) -> Any:
    """Return x reversed along its second axis."""
    _check_matrix(x, "fliplr")
    return F.flip(x, 1)


@composite(method=True)
def flipud(x: Any) -> Any:
    """Return x reversed along its first axis."""
    return F.flip(x, 0)


def _check_matrix(x: Any, name: str) -> None:
    if x.ndim < 2:
        raise ShapeError(f"{name}: two dimensions are needed. Received: shape {tuple(x.shape)}")


@op(movement, linear=("x",))
def roll(x: Tensor, shifts: int | tuple[int, ...], axis: Axes = None) -> Tensor:
    """Return x moved on by `shifts` along the axes; what leaves at the end enters at the start.

    Without an axis the tensor is rolled as if it were flat.

    >>> import weft as wf
    >>> wf.roll(wf.tensor([1, 2, 3, 4]), 1)
    tensor([4, 1, 2, 3])
    """


@roll.canon
def _(x, shifts, axis):
    steps = shifts if isinstance(shifts, (tuple, list)) else (shifts,)
    steps = tuple(as_int(step, "each of shifts") for step in steps)
    if axis is None:
        if len(steps) != 1:
            raise AxisError(f"several shifts need as many axes. Received: shifts={steps}")
        return steps, None
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(normalize_axis(a, x.ndim) for a in axes)  # an axis may be named twice, as in NumPy
    if len(steps) == 1:
        steps *= len(axes)
    if len(steps) != len(axes):
        raise AxisError(f"shifts and axis differ in length. Received: {shifts!r} and {axis!r}")
    return steps, axes


@roll.infer
def _(x, shifts, axis):
    return x


@roll.eval
def _(x, shifts, axis):
    return np.roll(x, shifts[0] if axis is None else shifts, axis)


@roll.vjp("x")
def _(g, shifts, axis):
    return F.roll(g, tuple(-step for step in shifts), axis)


@roll.expand
def _(x, shifts, axis):
    if axis is not None or x.ndim == 1:
        return None
    return F.reshape(F.roll(F.reshape(x, (-1,)), shifts, 0), x.shape)


@roll.place
def _(b, x, shifts, axis):
    if axis is None:
        return None if x.ndim != 1 else _rolled(b, x, list(b.coordinates), {0: shifts[0]})
    total: dict[int, int] = {}
    for a, step in zip(axis, shifts, strict=True):
        total[a] = total.get(a, 0) + step
    return _rolled(b, x, list(b.coordinates), total)


def _rolled(b, x, places, shifts, where=None):
    """Return the element that a roll brings here: for each axis, of one of two stretches."""
    if not shifts:
        return x.at(*places, where=where)
    (axis, shift), *rest = shifts.items()
    size = max(1, x.shape[axis])
    shift %= size
    here = places[axis]
    if shift == 0:
        return _rolled(b, x, places, dict(rest), where)
    found = []
    for start, holds in ((-shift, here >= shift), (size - shift, here < shift)):
        places[axis] = here + start
        found.append(_rolled(b, x, list(places), dict(rest), b.both(holds, where)))
    return b.select(here >= shift, *found)


@roll.batch
def _(x, shifts, axis):
    if axis is not None:
        return F.roll(x, shifts, tuple(map(behind, axis)))
    flat = F.reshape(x, (x.shape[0], size_of(x.shape[1:])))
    return F.reshape(F.roll(flat, shifts, (1,)), x.shape)


@roll.samples
def _(s):
    yield Sample(s.real(), 1)
    yield Sample(s.real(4), 1)
    yield Sample(s.real(2, 3), -2, label="flat")
    yield Sample(s.real(2, 3), 7, axis=1)
    yield Sample(s.real(2, 3), (1, -1), axis=(0, -1))
    yield Sample(s.real(2, 3), 1, axis=(0, 1))
    yield Sample(s.real(0, 3), 2, axis=0, label="empty")
    yield Sample(s.strided(2, 3), 1, axis=1, label="non-contiguous")


@roll.error_samples
def _(s):
    yield ErrorSample(s.real(3), (1, 2), error=ValueError, match=r"shifts=\(1, 2\)")
    yield ErrorSample(s.real(2, 3), (1, 2, 3), axis=(0, 1), error=ValueError, match="length")
    yield ErrorSample(s.real(3), 1, axis=1, error=IndexError, match="axis 1 is out of range")
    yield ErrorSample(s.real(3), 0.5, error=TypeError, match="Received: 0.5")


@composite(method=True, keywords={"dims": "axes"})
def rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """Return x turned by k quarters of a circle, from the first of two axes to the second.

    >>> import weft as wf
    >>> wf.rot90(wf.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentError(f"rot90: axes must be two axes. Received: {axes!r}")
    first, second = (normalize_axis(axis, x.ndim, "rot90: axis") for axis in axes)
    if first == second:
        raise AxisError(f"rot90: the two axes must differ. Received: {tuple(axes)}")
    turns = as_int(k, "rot90: k") % 4
    if turns == 2:
        return F.flip(x, (first, second))
    if turns == 1:
        return F.swapaxes(F.flip(x, second), first, second)
    return F.flip(F.swapaxes(x, first, second), second) if turns else x
