"""Operators that take, and put back, one entry per position along the class axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.division import Division
from ...core.dtype import is_integer
from ...core.errors import DTypeError, IndexOutOfRange, ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, normalize_axis
from ...core.tensor import Tensor
from ._arguments import same_dims


@op(general, linear=("x",), method=False, batch=shifted)
def pick_class(x: Tensor, target: Tensor, axis: int = 1, ignore_index: int = -100) -> Tensor:
    """Return x[..., target, ...]: at each position the entry of the class that `target` names.

    The shape of target is that of x without `axis`. Where target equals ignore_index the result
    is 0; any other target outside 0 ... C-1 is an error.
    """


@pick_class.canon
def _(x, target, axis, ignore_index):
    return normalize_axis(axis, x.ndim), as_int(ignore_index, "ignore_index")


@pick_class.infer
def _(x, target, axis, ignore_index):
    expected = x.shape[:axis] + x.shape[axis + 1 :]
    _check_target(target, expected)
    return TensorType(expected, x.dtype)


@pick_class.picks
def _(x, target, axis, ignore_index):
    return axis == len(x) - 1 and x[-1] > 0


@pick_class.division
def _(x, target, axis, ignore_index):
    labels = tuple(range(x.ndim))
    rest = (*labels[:axis], *labels[axis + 1 :])
    classes = x.shape[axis]

    def part(at, x, target):
        target, ignored = _in_part(at, target, axis, classes, ignore_index)
        return F.pick_class(x, target, axis=axis, ignore_index=ignored)

    return Division([labels, rest], rest, {axis: "sum"}, part)


def _in_part(at, target, axis, classes, ignore_index):
    """Return targets as a process sees them that has some of the classes: others are ignored."""
    if at.label != axis:
        return target, ignore_index
    _, place = at.places(target, classes, elsewhere=-1)
    return F.where(target == ignore_index, -1, place), -1


@pick_class.eval
def _(x, target, axis, ignore_index):
    _check_target(target, x.shape[:axis] + x.shape[axis + 1 :])
    index, ignored = _class_index(target, x.shape[axis], ignore_index)
    picked = x[_positions(index, axis)]
    return picked if ignored is None else np.where(ignored, x.dtype.type(0), picked)


@pick_class.vjp("x")
def _(g, target, x_shape, axis, ignore_index):
    return F.place_class(g, target, x_shape[axis], axis=axis, ignore_index=ignore_index)


@pick_class.lower
def _(b, x, target, axis, ignore_index):
    return b.reduce("sum", b.picked(target, x))


@pick_class.place
def _(b, x, target, axis, ignore_index):
    if not x.shape[axis]:
        return None
    index = b.index(target.here(), x.shape[axis], wraps=False, ignored=ignore_index)
    places = [*b.coordinates[:axis], b.maximum(index, 0), *b.coordinates[axis:]]
    return b.select(index >= 0, x.at(*places), 0)


@pick_class.samples
def _(s):
    yield Sample(s.real(3, 4), s.integers(3, high=4))
    yield Sample(s.real(4), s.integers(high=4), axis=0)
    yield Sample(s.real(2, 3, 4), s.integers(2, 4, high=3, dtype=np.int32))
    yield Sample(s.real(2, 3), np.array([-100, 1]), label="ignored")
    yield Sample(s.real(2, 3), np.array([2, 1]), ignore_index=2, label="ignored class")
    yield Sample(s.real(0, 3), s.integers(0))
    yield Sample(s.strided(3, 2), s.integers(2, high=3, dtype=np.uint8), axis=0)


@pick_class.error_samples
def _(s):
    x = s.real(2, 3)
    yield ErrorSample(x, np.array([0, 3]), error=IndexError, match=r"target 3 .* 3 classes")
    yield ErrorSample(x, np.array([0, -1]), error=IndexError, match=r"target -1 .*0 \.\.\. 2")
    yield ErrorSample(x, np.array([0.0, 1.0]), error=TypeError, match="Received: float64")
    yield ErrorSample(x, np.array([0, 1, 2]), error=ValueError, match=r"\(2,\).*\(3,\)")
    yield ErrorSample(x, np.array([0, 1]), axis=2, error=IndexError, match="axis 2")


@op(general, linear=("x",), method=False, batch=shifted)
def place_class(
    x: Tensor, target: Tensor, num_classes: int, axis: int = 1, ignore_index: int = -100
) -> Tensor:
    """Return zeros with x at the class that `target` names: the adjoint of pick_class."""


@place_class.canon
def _(x, target, num_classes, axis, ignore_index):
    axis = normalize_axis(axis, x.ndim + 1)
    return as_int(num_classes, "num_classes"), axis, as_int(ignore_index, "ignore_index")


@place_class.infer
def _(x, target, num_classes, axis, ignore_index):
    _check_target(target, x.shape)
    return TensorType((*x.shape[:axis], num_classes, *x.shape[axis:]), x.dtype)


@place_class.puts
def _(x, target, num_classes, axis, ignore_index):
    return axis == len(x) and num_classes > 0


@place_class.division
def _(x, target, num_classes, axis, ignore_index):
    labels = tuple(range(x.ndim + 1))
    rest = (*labels[:axis], *labels[axis + 1 :])

    def part(at, x, target):
        target, ignored = _in_part(at, target, axis, num_classes, ignore_index)
        return F.place_class(x, target, at.shape[axis], axis=axis, ignore_index=ignored)

    return Division([rest, rest], labels, part=part)


@place_class.eval
def _(x, target, num_classes, axis, ignore_index):
    _check_target(target, x.shape)
    index, ignored = _class_index(target, num_classes, ignore_index)
    out = np.zeros((*x.shape[:axis], num_classes, *x.shape[axis:]), x.dtype)
    out[_positions(index, axis)] = x if ignored is None else np.where(ignored, x.dtype.type(0), x)
    return out


@place_class.vjp("x")
def _(g, target, axis, ignore_index):
    return F.pick_class(g, target, axis=axis, ignore_index=ignore_index)


@place_class.lower
def _(b, x, target, num_classes, axis, ignore_index):
    return b.picked(target, x)


@place_class.place
def _(b, x, target, num_classes, axis, ignore_index):
    if not num_classes:
        return None
    rest = [c for i, c in enumerate(b.coordinates) if i != axis]
    index = b.index(target.at(*rest), num_classes, wraps=False, ignored=ignore_index)
    return b.select(b.eq(b.coordinates[axis].expr, index), x.at(*rest), 0)


@place_class.samples
def _(s):
    yield Sample(s.real(3), s.integers(3, high=4), 4)
    yield Sample(s.real(), s.integers(high=4), 4, axis=0)
    yield Sample(s.real(2, 3), s.integers(2, 3, high=4), 4, axis=-1)
    yield Sample(s.real(2), np.array([-1, 1]), 3, ignore_index=-1, label="ignored")
    yield Sample(s.real(0), s.integers(0), 3)


@place_class.error_samples
def _(s):
    yield ErrorSample(s.real(2), np.array([0, 3]), 3, error=IndexError, match="target 3")
    yield ErrorSample(s.real(2), np.array([0]), 3, error=ValueError, match=r"\(2,\).*\(1,\)")


def picked(fn: str, x: Any, target: Any, axis: int, ignore_index: int = -100) -> Any:
    """Return pick_class, with errors in the name of the function that the user called."""
    try:
        return F.pick_class(x, target, axis, ignore_index)
    except IndexOutOfRange as error:
        named = str(error).replace("pick_class", fn, 1)
        raise IndexOutOfRange(named, **error.facts) from None


def _check_target(target, expected):
    if not is_integer(target.dtype):
        raise DTypeError(f"target must hold class indices, integers. Received: {target.dtype}")
    if not same_dims(tuple(target.shape), tuple(expected)):
        raise ShapeError(
            f"target must have one class index per position, shape {tuple(expected)}. "
            f"Received: {tuple(target.shape)}"
        )


def _class_index(target, num_classes, ignore_index):
    """Return indices that are safe to use, and where the target is ignored (None = nowhere)."""
    # Read as unsigned, negative targets are huge: one pass finds both kinds of stray.
    unsigned = target.view(f"u{target.dtype.itemsize}")
    largest = np.maximum.reduce(unsigned, axis=None, initial=0)
    if largest < num_classes and not 0 <= ignore_index < num_classes:
        return target, None
    ignored = target == ignore_index
    wrong = ((target < 0) | (target >= num_classes)) & ~ignored
    if wrong.any():
        raise IndexOutOfRange(
            _range_message(target, wrong, num_classes, ignore_index), index=int(target[wrong][0])
        )
    return np.where(ignored, 0, target), ignored


def _range_message(target, wrong, num_classes, ignore_index):
    where = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (
        f"target {target[where]} at position {where} is not one of {num_classes} classes; use "
        f"0 ... {num_classes - 1}, or ignore_index={ignore_index} to leave a position out"
    )


def _positions(index, axis):
    """Return an open mesh over all positions with the class index inserted at `axis`."""
    ndim = index.ndim
    mesh = [
        np.arange(size).reshape((size,) + (1,) * (ndim - i - 1))
        for i, size in enumerate(index.shape)
    ]
    return (*mesh[:axis], index, *mesh[axis:])
