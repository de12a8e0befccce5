"""Placement: which axis of a tensor the processes of a group divide among them.

All of a program with placements is written, and typed, for whole tensors, which every process has:
run node by node it computes everything everywhere. Compiled, it is divided: each process computes
parts, and what must be whole is exchanged (passes/divide.py). So placement never changes results.
"""

from __future__ import annotations

from typing import Any

from ...core.errors import ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, normalize_axis
from ...core.tensor import Tensor
from .exchange import exchanged


@op(general, linear=("x",), method=False, identity=True, work="nothing")
def placed(x: Tensor, group: int, size: int, index: int, axis: int | None) -> Tensor:
    """Return x, of which each process is to compute its part along an axis; None: all compute all.

    group   by its number (weft.distributed), with how many processes, of which this is `index`
    """


@placed.canon
def _(x, group, size, index, axis):
    numbers = (as_int(group, "group"), as_int(size, "size"), as_int(index, "index"))
    if axis is None:
        return *numbers, None
    axis = normalize_axis(axis, x.ndim)
    _check_parts(x.shape, numbers[1], axis)
    return *numbers, axis


def _check_parts(shape: Any, size: int, axis: int) -> None:
    if shape[axis] % size != 0:
        raise ShapeError(
            f"{size} processes must divide axis {axis} of the shape {tuple(shape)}; pad it, or "
            "place the tensor along another axis"
        )


@placed.infer
def _(x, group, size, index, axis):
    return TensorType(x.shape, x.dtype)


@placed.eval  # x itself, not a copy
def _(x, group, size, index, axis):
    return x


@placed.vjp("x")
def _(g, group, size, index, axis):
    return F.placed(g, group, size, index, axis)


@placed.batch
def _(x, group, size, index, axis):
    return F.placed(x, group, size, index, None if axis is None else axis + 1)


@placed.samples
def _(s):
    yield Sample(s.real(2, 3), 0, 1, 0, 1)
    yield Sample(s.real(2, 3), 0, 1, 0, -2)
    yield Sample(s.real(), 0, 1, 0, None, label="0-d")
    yield Sample(s.strided(4, 3), 0, 1, 0, 0, label="non-contiguous")
    yield Sample(s.integers(2), 0, 1, 0, 0, label="integers")


@placed.error_samples
def _(s):
    yield ErrorSample(s.real(3), 0, 2, 0, 0, error=ValueError, match=r"2 processes .*\(3,\)")
    yield ErrorSample(s.real(3), 0, 1, 0, 1, error=IndexError, match="axis 1 is out of range")


@op(general, linear=("x",), method=False)
def part_of(x: Tensor, group: int, size: int, index: int, axis: int) -> Tensor:
    """Return part `index` along an axis of a tensor that all processes of a group have.

    They have its gradient too, each a part of it: it is gathered.
    """


@part_of.canon
def _(x, group, size, index, axis):
    axis = normalize_axis(axis, x.ndim)
    size = as_int(size, "size")
    _check_parts(x.shape, size, axis)
    return as_int(group, "group"), size, as_int(index, "index"), axis


@part_of.infer
def _(x, group, size, index, axis):
    shape = (*x.shape[:axis], x.shape[axis] // size, *x.shape[axis + 1 :])
    return TensorType(shape, x.dtype)


@part_of.eval
def _(x, group, size, index, axis):
    return x[_places(x.shape[axis], size, index, axis)]


def _places(length, size, index, axis):
    part = length // size
    return (slice(None),) * axis + (slice(index * part, (index + 1) * part),)


@part_of.view
def _(x, group, size, index, axis):
    part = x.shape[axis] // size
    shape = (*x.shape[:axis], part, *x.shape[axis + 1 :])
    return x.restrided(shape, x.strides, index * part * x.strides[axis])


@part_of.vjp("x")
def _(g, group, size, index, axis):
    return whole_of(g, group, size, index, axis)


@part_of.batch
def _(x, group, size, index, axis):
    return F.part_of(x, group, size, index, axis + 1)


@part_of.samples
def _(s):
    yield Sample(s.real(2, 3), 0, 1, 0, 1)
    yield Sample(s.real(4, 2), 0, 1, 0, -2)
    yield Sample(s.strided(4, 3), 0, 1, 0, 0, label="non-contiguous")
    yield Sample(s.integers(2), 0, 1, 0, 0, label="integers")


@part_of.error_samples
def _(s):
    yield ErrorSample(s.real(3), 0, 2, 0, 0, error=ValueError, match=r"2 processes .*\(3,\)")


def whole_of(x: Any, group: int, size: int, index: int, axis: int) -> Any:
    """Return the tensor that all processes of a group have parts of, on all of them.

    They compute the same with it, so that its gradient is the same on all: each takes its part.
    """
    return exchanged(x, "whole", group, size, axis, index, note="a whole of parts")
