"""Medians and quantiles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dim import Dim
from ...core.dtype import bool_, float64, int64, is_float
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.keywords import given_twice, refuse_pair
from ...core.op import F, composite
from ...core.operands import holds_tensors, tensor_from
from ...core.shape import Axes, normalize_axes, reduced_shape
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._pairs import Pair, one_axis, pair_at
from ._common import as_flag, count_of, rows_of

# The place to read between two neighbours, as a share of the way from the lower to the upper one.
METHODS: dict[str, Callable[[float, int], float]] = {
    "linear": lambda share, lower: share,
    "lower": lambda share, lower: 0.0,
    "higher": lambda share, lower: 1.0 if share else 0.0,
    "midpoint": lambda share, lower: 0.5 if share else 0.0,
    "nearest": lambda share, lower: float(share > 0.5 or (share == 0.5 and lower % 2 == 1)),
}
METHODS_WHEN_RUN: dict[str, Callable[[Any, Any], Any]] = {
    "linear": lambda share, lower: share,
    "lower": lambda share, lower: F.zeros_like(share),
    "higher": lambda share, lower: F.cast(share > 0.0, float64),
    "midpoint": lambda share, lower: F.cast(share > 0.0, float64) * 0.5,
    "nearest": lambda share, lower: F.cast(
        (share > 0.5) | ((share == 0.5) & (lower % 2.0 == 1.0)), float64
    ),
}


@composite()
def median(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dim: Any = None, keepdim: Any = None
) -> Any:
    """Return the median over the given axes: the mean of the two middle elements if even in number.

    nan if an element is nan, or if there is none. PyTorch's median is the lower of the two middle
    elements: `dim=` gives it, as a pair (values, indices); over all elements it is
    quantile(x, 0.5, method="lower"). The method x.median() wants one of the two keywords.

    >>> import weft as wf
    >>> wf.median(wf.tensor([3.0, 1.0, 2.0, 10.0]))
    tensor(2.5)
    >>> wf.median(wf.tensor([3.0, 1.0, 2.0, 10.0]), dim=0)
    Pair(values=tensor(2.), indices=tensor(2))
    """
    if dim is not None or keepdim is not None:
        if dim is not None and axis is not None:
            raise ArgumentTypeError(given_twice("median", "axis", {"dim": dim}))
        return _lower_median(x, axis if dim is None else dim, bool(keepdim))
    if axis is not None:
        refuse_pair("median", sys._getframe(1))
    return quantile(x, 0.5, axis, keepdims)


def _lower_median(x: Any, dim: Any, keepdim: bool) -> Pair:
    """Return the lower one of the middle elements, or the first nan, and where it stands."""
    axis = one_axis("median", x, dim)
    order = F.argsort(x, axis)
    middle = F.narrow(order, axis, (x.shape[axis] - 1) // 2, 1)
    if is_float(x.dtype):
        bad = F.isnan(x)
        found = F.any(bad, axis, True)
        middle = F.where(found, F.argmax(F.cast(bad, int64), axis, True), middle)
    return pair_at(x, middle, axis, reduced=not keepdim)


@composite(method=True)
def mode(x: Any, axis: int = -1, keepdims: bool = False) -> Pair:
    """Return the most frequent values along an axis, the least of them, and where they stand last.

    The pair (values, indices) is PyTorch's; gradients go to the elements at those indices.

    >>> import weft as wf
    >>> wf.mode(wf.tensor([3, 1, 2, 1, 2]))
    Pair(values=tensor(1), indices=tensor(3))
    """
    axis = one_axis("mode", x, axis)
    order = F.argsort(x, axis)
    rows = F.moveaxis(F.take_along_axis(x, order, axis), axis, -1)
    places = F.iota(rows.shape[-1])
    changes = rows[..., 1:] != rows[..., :-1]
    begins = F.concatenate([F.ones_like(rows[..., :1], dtype=bool_), changes], -1)
    length = places - F.cummax(F.where(begins, places, 0), -1)  # of its run so far, from 0
    last = F.moveaxis(F.argmax(length, -1, True), -1, axis)
    reduced = not as_flag(keepdims, "mode: keepdims")
    return pair_at(x, F.take_along_axis(order, last, axis), axis, reduced=reduced)


@composite(method=True)
@rounded_once
def quantile(
    x: Any,
    q: Any,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    method: str = "linear",
    interpolation: str | None = None,
) -> Any:
    """Return the q-th quantiles over the given axes; several q come along a new first axis.

    method says what to do between two elements: "linear", "lower", "higher", "nearest" or
    "midpoint" (`interpolation` is PyTorch's name of it). nan if an element is nan, or if there is
    none. Gradients flow to the elements read and, between two of them, to a tensor q.

    >>> import weft as wf
    >>> wf.quantile(wf.tensor([1.0, 2.0, 3.0]), 0.75)
    tensor(2.5)
    """
    levels = _as_levels(q)
    method = _checked_method(method if interpolation is None else interpolation)
    axes = normalize_axes(axis, x.ndim, "quantile: axis")
    if not is_float(x.dtype):
        x = F.mean(x, ())  # over no axes: the same values as floats
    shape = reduced_shape(x.shape, axes, as_flag(keepdims, "quantile: keepdims"))
    several = list(levels) if levels.ndim else [levels]
    results = [F.reshape(r, shape) for r in _quantiles(x, several, axes, method)]
    return F.stack(results, 0) if levels.ndim else results[0]


@composite(method=True)
@rounded_once
def nanquantile(
    x: Any, q: Any, axis: Axes = None, keepdims: bool = False, *, method: str = "linear"
) -> Any:
    """Return the q-th quantiles of the elements that are not nan (nan if all are).

    method is as for `quantile`; several q come along a new first axis.

    >>> import weft as wf
    >>> wf.nanquantile(wf.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """
    if not is_float(x.dtype):
        return quantile(x, q, axis, keepdims, method=method)
    levels, method = _as_levels(q), _checked_method(method)
    axes = normalize_axes(axis, x.ndim, "nanquantile: axis")
    shape = reduced_shape(x.shape, axes, as_flag(keepdims, "nanquantile: keepdims"))
    rows = F.sort(rows_of(x, axes), -1)  # nan is sorted last
    count = F.sum(F.cast(~F.isnan(rows), int64), -1, keepdims=True)
    several = list(levels) if levels.ndim else [levels]
    results = [F.reshape(_read_of(rows, count, level, method), shape) for level in several]
    return F.stack(results, 0) if levels.ndim else results[0]


def _read_of(rows: Any, count: Any, level: Any, method: str) -> Any:
    """Return a quantile of the first elements of each sorted row, as many as `count` says."""
    place = F.maximum(F.cast(count - 1, float64), 0.0) * level
    lower = F.floor(place)
    share = METHODS_WHEN_RUN[method](place - lower, lower)
    index = F.cast(lower, int64)
    value = F.take_along_axis(rows, index + F.cast(share == 1.0, int64), -1)
    upper = F.take_along_axis(rows, F.minimum(index + 1, F.maximum(count - 1, 0)), -1)
    gap = upper - value
    gap = F.where((share > 0.0) | F.isfinite(gap), gap, 0.0)  # at an element inf is no neighbour
    return F.where(share < 1.0, value + gap * F.cast(share, rows.dtype), value)


@composite(method=True)
def nanmedian(x: Any, axis: Axes = None, keepdims: bool = False) -> Any:
    """Return the median of the elements that are not nan: the mean of the middle two if even.

    >>> import weft as wf
    >>> wf.nanmedian(wf.tensor([1.0, float("nan"), 2.0]))
    tensor(1.5)
    """
    return nanquantile(x, 0.5, axis, keepdims)


def _quantiles(x: Any, levels: list[Any], axes: tuple[int, ...], method: str) -> list[Any]:
    if count_of(x.shape, axes) == 0:
        return [F.mean(x, axes)] * len(levels)  # the mean of nothing: nan, in the right shape
    rows = F.sort(rows_of(x, axes), -1)
    last = rows.shape[-1] - 1
    if isinstance(levels[0], Tensor):
        # Where values could not be checked, those out of range have no place.
        inside = [
            F.where((level >= 0.0) & (level <= 1.0), level * last, last + 1) for level in levels
        ]
        return [_read_when_run(rows, place, method) for place in inside]
    places = [float(level) * last for level in levels]
    if isinstance(last, Dim):
        return [_read_when_run(rows, F.size_value(p, float64), method) for p in places]
    return [_read(rows, place, METHODS[method]) for place in places]


def _read(rows: Any, place: float, between: Callable[[float, int], float]) -> Any:
    """Return what stands at a place, not always a whole number, in sorted rows."""
    lower = int(place)
    share = between(place - lower, lower)
    value = rows[..., lower + (share == 1.0)]
    if 0.0 < share < 1.0:
        value = value + (rows[..., lower + 1] - value) * share
    last = rows[..., -1]  # nan is sorted last
    return F.where(F.isnan(last), last, value)


def _read_when_run(rows: Any, place: Any, method: str) -> Any:
    """Return the same for a place that is a tensor: computed, or to be differentiated."""
    lower = F.floor(place)
    share = METHODS_WHEN_RUN[method](place - lower, lower)
    index = F.cast(lower, int64)
    value = rows[..., index + F.cast(share == 1.0, int64)]
    upper = rows[..., F.minimum(index + 1, rows.shape[-1] - 1)]
    gap = upper - value
    gap = F.where((share > 0.0) | F.isfinite(gap), gap, 0.0)  # at an element inf is no neighbour
    value = F.where(share < 1.0, value + gap * F.cast(share, rows.dtype), value)
    last = rows[..., -1]
    return F.where(F.isnan(last), last, value)


def _as_levels(q: Any) -> Any:
    if not holds_tensors(q):
        return _checked_levels(np.asarray(q), q).astype(np.float64)
    levels = tensor_from(q, "quantile: q")
    known = getattr(levels, "_value", None)
    _checked_levels(np.zeros(levels.shape, levels.dtype) if known is None else known, q)
    return F.cast(levels, float64)


def _checked_levels(levels: Any, q: Any) -> Any:
    if levels.dtype.kind not in "iuf" or levels.ndim > 1:
        raise ArgumentTypeError(
            f"quantile: q must be a number or a vector of numbers. Received: {q!r:.60}"
        )
    if levels.size == 0 or not ((levels >= 0) & (levels <= 1)).all():
        raise ArgumentError(f"quantile: q must lie between 0 and 1. Received: {q!r:.60}")
    return levels


def _checked_method(method: Any) -> str:
    if method not in METHODS:
        raise ArgumentError(
            f"quantile: method must be one of {tuple(METHODS)}. Received: {method!r}"
        )
    return str(method)
