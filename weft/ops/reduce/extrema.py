"""Largest and smallest elements and where they stand; any and all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import bool_, int64
from ...core.errors import ArgumentTypeError, ShapeError
from ...core.op import F, composite, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes, TensorType, normalize_axis, reduced_shape
from ...core.tensor import Tensor
from .._pairs import one_axis, pair_at
from ._common import (
    as_flag,
    canon_reduction,
    check_not_empty,
    reduced_behind,
    reduced_type,
    reduction_samples,
    reduction_text,
    spread,
    unreduce,
)


@op(reduction, laws=("associative",), combines="max")
def max(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the largest element over the given axes (all of them by default).

    With an axis only values are returned; `argmax` gives positions. nan wins over any number. The
    gradient is shared equally among equal largest elements. By PyTorch's keywords the result is
    PyTorch's: `dim=` gives a pair (values, indices), whose gradient goes to the elements at those
    indices, and `other=` the larger one of each two elements.

    >>> import weft as wf
    >>> wf.max(wf.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([5., 7.])
    >>> wf.max(wf.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
    Pair(values=tensor([5., 7.]), indices=tensor([1, 0]))
    """


@op(reduction, laws=("associative",), combines="min")
def min(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element over the given axes (all of them by default).

    With an axis only values are returned; `argmin` gives positions. nan wins over any number. The
    gradient is shared equally among equal smallest elements. PyTorch's keywords `dim=` and `other=`
    give what they give there; see `max`.
    """


@max.spelling
def _(types, axis, keepdims):
    return reduction_text("np.max", types, axis, keepdims)


@min.spelling
def _(types, axis, keepdims):
    return reduction_text("np.min", types, axis, keepdims)


@max.by_keywords(pairs=True)
def _(x, dim=None, keepdim=False, *, other=None):
    return _extremum_pair("max", x, dim, keepdim, other)


@min.by_keywords(pairs=True)
def _(x, dim=None, keepdim=False, *, other=None):
    return _extremum_pair("min", x, dim, keepdim, other)


def _extremum_pair(name: str, x: Any, dim: Any, keepdim: bool, other: Any) -> Any:
    if other is not None:
        if dim is not None or keepdim:
            raise ArgumentTypeError(f"{name}: other= compares two tensors; leave dim out")
        return {"max": F.maximum, "min": F.minimum}[name](x, other)
    axis = one_axis(name, x, dim)
    indices = {"max": F.argmax, "min": F.argmin}[name](x, axis, True)
    return pair_at(x, indices, axis, reduced=not as_flag(keepdim, f"{name}: keepdim"))


def _canon_extremum(x, axis, keepdims):
    if isinstance(axis, Tensor):
        raise ArgumentTypeError(
            "axis is a tensor; for the larger or smaller one of each two elements use "
            f"wf.maximum(x, y), wf.minimum(x, y) or other=. Received: {axis!r:.60}"
        )
    return canon_reduction(x, axis, keepdims)


def _extremum_type(x: TensorType, axis: tuple[int, ...], keepdims: bool) -> TensorType:
    check_not_empty(x, axis, "the extremum")
    return reduced_type(x, axis, keepdims)


max.lower(lambda b, x, axis, keepdims: b.reduce("max", x))


min.lower(lambda b, x, axis, keepdims: b.reduce("min", x))


def _share_among_ties(g, out, x, axis, keepdims):
    shape = x.shape
    # nan equals nothing: where the extremum is nan, its origins are the nans.
    chosen = (x == unreduce(out, shape, axis, keepdims)) | F.isnan(x)
    chosen = F.cast(chosen, g.dtype)
    share = g / F.sum(chosen, axis, keepdims)
    return spread(share, shape, axis, keepdims) * chosen


def _extremum_samples(s):
    yield from reduction_samples(s, s.distinct, empty=False)
    yield Sample(np.array([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]]), axis=1, grad=0, label="ties")
    yield Sample(np.array([[1.0, np.nan], [-np.inf, np.inf]]), axis=1, grad=0, label="nan, inf")
    yield Sample(s.integers(2, 3), axis=0, label="integers")
    yield Sample(s.booleans(2, 3), axis=0, label="truth values")


def _extremum_errors(s):
    yield ErrorSample(s.real(0), error=ValueError, match=r"no identity.*shape \(0,\)")
    yield ErrorSample(s.real(2, 0), axis=1, error=ValueError, match=r"shape \(2, 0\)")
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")


for _extremum in (max, min):
    _extremum.canon(_canon_extremum)
    _extremum.infer(_extremum_type)
    _extremum.vjp("x")(_share_among_ties)
    _extremum.samples(_extremum_samples)
    _extremum.error_samples(_extremum_errors)


@composite(method=True)
def amax(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return the largest element over the given axes: `max`, and values alone with `dim=` too."""
    return F.max(x, axis, keepdims)


@composite(method=True)
def amin(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return the smallest element over the given axes: `min`, and values alone with `dim=` too."""
    return F.min(x, axis, keepdims)


class MinMax(NamedTuple):
    """The smallest and the largest elements."""

    min: Any
    max: Any


@composite(method=True)
def aminmax(x: Any, axis: Axes = None, keepdims: bool = False) -> MinMax:
    """Return the smallest and the largest element over the given axes."""
    return MinMax(F.min(x, axis, keepdims), F.max(x, axis, keepdims))


@op(reduction)
def argmax(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the largest element along an axis, the first one among equals.

    Without an axis the position counts through the flattened tensor. nan wins over any number.

    >>> import weft as wf
    >>> wf.argmax(wf.tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    tensor([1, 0])
    """


@op(reduction)
def argmin(x: Tensor, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the position of the smallest element along an axis, the first one among equals.

    Without an axis the position counts through the flattened tensor. nan wins over any number.
    """


def _canon_position(x, axis, keepdims):
    axis = None if axis is None else normalize_axis(axis, x.ndim)
    if (0 in x.shape) if axis is None else (x.shape[axis] == 0):
        raise ShapeError(
            "the position of an extremum among no elements is undefined. Received: a tensor of "
            f"shape {tuple(x.shape)} with axis={axis}"
        )
    return axis, as_flag(keepdims, "keepdims")


def _position_type(x, axis, keepdims):
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    return TensorType(reduced_shape(x.shape, axes, keepdims), int64)


@argmax.eval  # two passes and an array of places would be needed
def _(x, axis, keepdims):
    return _as_int64(np.argmax(x, axis=axis, keepdims=keepdims))


@argmin.eval
def _(x, axis, keepdims):
    return _as_int64(np.argmin(x, axis=axis, keepdims=keepdims))


@argmax.lower
def _(b, x, axis, keepdims):
    return _place_of(b, x, b.reduce("max", x))


@argmin.lower
def _(b, x, axis, keepdims):
    return _place_of(b, x, b.reduce("min", x))


def _place_of(b, x, extremum):
    """Return the first place of an extremum; nan, which equals nothing, stands where nans do."""
    here = b.eq(x, extremum)
    if x.dtype.kind == "f":
        here = here | b.is_nan(x)
    return b.reduce("min", b.select(here, b.index(), b.constant(2**63 - 1, int64)))


@argmax.expand
def _(x, axis, keepdims):
    return _along_the_last(F.argmax, x, axis, keepdims)


@argmin.expand
def _(x, axis, keepdims):
    return _along_the_last(F.argmin, x, axis, keepdims)


def _along_the_last(position, x, axis, keepdims):
    """Return places along another axis than the last as those along the last one."""
    behind = None if axis is None else reduced_behind(x, (axis,))
    if behind is None:
        return None
    found = position(behind[0], -1)
    return F.unsqueeze(found, axis) if keepdims else found


def _as_int64(position: Any) -> Any:
    return position if position.dtype == int64 else position.astype(int64)  # intp may be 32 bits


def _position_samples(s):
    for shape, axis in (((), None), ((4,), 0), ((2, 3), None), ((2, 3), 0), ((2, 3), -1)):
        yield Sample(s.distinct(*shape), axis=axis, grad=0)
        yield Sample(s.distinct(*shape), axis=axis, keepdims=True, grad=0)
    yield Sample(np.array([1.0, 3.0, 3.0, 1.0]), grad=0, label="ties")
    yield Sample(np.array([1.0, np.nan, 3.0, np.nan]), grad=0, label="nan")
    yield Sample(s.integers(2, 3), axis=1, label="integers")
    yield Sample(s.booleans(5), label="truth values")
    yield Sample(s.strided(3, 2), axis=1, grad=0, label="non-contiguous")


def _position_errors(s):
    yield ErrorSample(s.real(0), error=ValueError, match=r"undefined.*shape \(0,\)")
    yield ErrorSample(s.real(2, 0), axis=1, error=ValueError, match=r"shape \(2, 0\)")
    yield ErrorSample(s.real(2, 3), axis=-3, error=IndexError, match="axis -3 is out of range")
    yield ErrorSample(s.real(2, 3), axis=(0, 1), error=TypeError, match=r"Received: \(0, 1\)")


for _position in (argmax, argmin):
    _position.canon(_canon_position)
    _position.infer(_position_type)
    _position.samples(_position_samples)
    _position.error_samples(_position_errors)


@op(reduction, laws=("associative",))
def any(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Tell whether some element over the given axes is true or other than zero (False of none)."""


@op(reduction, laws=("associative",))
def all(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Tell whether each element over the given axes is true or other than zero (True of none)."""


@any.eval  # stops at the first: nine tenths of the time if there is none
def _(x, axis, keepdims):
    return np.logical_or.reduce(x, axis=axis, keepdims=keepdims)


any.lower(lambda b, x, axis, keepdims: b.reduce("max", b.truth(x)))


@all.eval
def _(x, axis, keepdims):
    return np.logical_and.reduce(x, axis=axis, keepdims=keepdims)


all.lower(lambda b, x, axis, keepdims: b.reduce("min", b.truth(x)))


def _truth_type(x, axis, keepdims):
    return reduced_type(x, axis, keepdims, bool_)


def _truth_samples(s):
    yield from reduction_samples(s, s.booleans, grad=0)
    yield Sample(np.array([0.0, np.nan, 1.0]), grad=0, label="floats")
    yield Sample(s.integers(3, 4, high=2), axis=0, label="integers")


def _truth_errors(s):
    yield ErrorSample(s.booleans(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.booleans(2), keepdims=None, error=TypeError, match="Received: None")


for _truth in (any, all):
    _truth.canon(canon_reduction)
    _truth.infer(_truth_type)
    _truth.samples(_truth_samples)
    _truth.error_samples(_truth_errors)
