"""Searching in sorted tensors, sets of values, and counts.

None of these has a derivative, except that `bincount` is linear in its weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.batching import repeat, with_rank
from ...core.dim import may_equal
from ...core.dtype import Array, bool_, float64, int64
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, size_of
from ...core.sums import widened
from ...core.tensor import Tensor
from .._operands import names_errors
from ._checks import check_integer, check_non_negative, operands
from ._spec import UNKNOWN

# -- searchsorted -------------------------------------------------------------------------------


@op(general, promote="common", method=False)
def sorted_search(boundaries: Tensor, values: Tensor, right: bool = False) -> Tensor:
    """Return where values belong in sorted boundaries (lines of the last axis if not 1-D)."""


@sorted_search.canon
def _(boundaries, values, right):
    if boundaries.ndim == 0:
        raise ShapeError("the sorted sequence must have an axis. Received: a 0-d tensor")
    lead = tuple(boundaries.shape[:-1])
    if lead and (values.ndim != boundaries.ndim or not may_equal(tuple(values.shape[:-1]), lead)):
        raise ShapeError(
            f"values must have the leading sizes {lead} of the sorted sequences. "
            f"Received: values {tuple(values.shape)}, sequences {tuple(boundaries.shape)}"
        )
    return (bool(right),)


@sorted_search.eval
def _(boundaries, values, right):
    if boundaries.ndim == 1:
        places = np.searchsorted(boundaries, values, "right" if right else "left")
        return np.asarray(places, np.int64)
    return _search_lines(boundaries, values, right)


def _search_lines(boundaries: Array, values: Array, right: bool) -> Array:
    """Bisect all lines at once; the answer stays within [low, high], which halves each time."""
    size = boundaries.shape[-1]
    low = np.zeros(values.shape, np.int64)
    high = np.full(values.shape, size, np.int64)
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        known = np.take_along_axis(boundaries, np.minimum(middle, size - 1), -1)
        after = (~_less(values, known) if right else _less(known, values)) & (low < high)
        low, high = np.where(after, middle + 1, low), np.where(after, high, middle)
    return low


def _less(a: Array, b: Array) -> Array:
    """Compare with NaN as the largest value, as sorting does."""
    if a.dtype.kind in "fV":
        return np.less(a, b) | (np.isnan(b) & ~np.isnan(a))
    return np.less(a, b)


@sorted_search.place
def _(b, boundaries, values, right):
    size, value = boundaries.shape[-1], values.here()
    if not isinstance(size, int):  # how often to halve is part of the code
        return None
    lead = b.coordinates[: boundaries.ndim - 1]
    low, high = b.constant(0, int64), b.constant(size, int64)
    for _ in range(size.bit_length()):
        middle = b.quotient(low + high, 2)
        known = boundaries.at(*lead, b.minimum(middle, size - 1))
        after = ~_lowered_less(b, value, known) if right else _lowered_less(b, known, value)
        after = after & (low < high)
        low, high = b.select(after, middle + 1, low), b.select(after, high, middle)
    return low


def _lowered_less(b: Any, x: Any, y: Any) -> Any:
    return (x < y) | (b.is_nan(y) & ~b.is_nan(x)) if x.dtype.kind == "f" else x < y


@sorted_search.infer
def _(boundaries, values, right):
    return TensorType(values.shape, int64)


@sorted_search.batch
def _(boundaries, values, right, batched):
    if not batched[0] and boundaries.ndim == 1:
        return F.sorted_search(boundaries, values, right)
    examples = boundaries.shape[0] if batched[0] else values.shape[0]
    boundaries = boundaries if batched[0] else repeat(boundaries, examples)
    values = values if batched[1] else repeat(values, examples)
    if boundaries.ndim > 2:
        return F.sorted_search(boundaries, values, right)
    lines = F.reshape(values, (examples, size_of(values.shape[1:])))
    return F.reshape(F.sorted_search(boundaries, lines, right), values.shape)


@sorted_search.samples
def _(s):
    ticks = np.array([1, 2, 2, 4, 7])
    for right in (False, True):
        yield Sample(ticks, np.array([[0, 2, 3], [4, 7, 9]]), right)
        yield Sample(np.sort(s.integers(2, 5), axis=-1), s.integers(2, 4), right, label="lines")
        lines = np.sort(s.real(2, 4), axis=-1)
        lines[:, -1] = np.nan
        yield Sample(lines, np.array([[0.0, np.nan], [5.0, -9.0]]), right, grad=0, label="nan")
    yield Sample(ticks / 2, np.array(1.5), grad=0, label="0-d")
    yield Sample(ticks[:0], np.array([1, 2]), label="empty")
    yield Sample(np.zeros((2, 0)), s.real(2, 3), grad=0, label="empty lines")


@sorted_search.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), s.real(3), error=ValueError, match=r"values \(3,\)")
    yield ErrorSample(s.real(), s.real(3), error=ValueError, match="0-d")


@composite()
@names_errors
def searchsorted(
    sorted_sequence: Any,
    values: Any,
    *,
    side: str | None = None,
    right: bool = False,
    sorter: Any = None,
) -> Tensor:
    """Return the index at which each value would be inserted into a sorted sequence.

    side "left" (the default) gives the first such place, "right" (or right=True) the last. A
    sequence of several dimensions is searched line by line. `sorter` holds the indices that sort
    a sequence which is not, as argsort gives them.

    >>> import weft as wf
    >>> wf.searchsorted(wf.tensor([1.0, 2.0, 2.0, 5.0]), wf.tensor([2.0, 3.0]))
    tensor([1, 3])
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"side must be 'left' or 'right'. Received: {side!r}")
    if side == "left" and right:
        raise ArgumentError("side='left' contradicts right=True")
    (sorted_sequence,) = operands(sorted_sequence)
    if not isinstance(values, (bool, int, float)):  # numbers take the dtype of the sequence
        (values,) = operands(values)
    if sorter is not None:
        sorted_sequence = F.take_along_axis(sorted_sequence, *operands(sorter), -1)
    return F.sorted_search(sorted_sequence, values, right or side == "right")


@composite()
@names_errors
def bucketize(x: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """Return the bucket of each element: boundaries[i-1] < x <= boundaries[i] gives i.

    With right=True: boundaries[i-1] <= x < boundaries[i].

    >>> import weft as wf
    >>> wf.bucketize(wf.tensor([0.0, 1.0, 9.0]), wf.tensor([1.0, 3.0]))
    tensor([0, 0, 2])
    """
    x, boundaries = operands(x, boundaries)
    return F.sorted_search(boundaries, x, right)


# -- sets ---------------------------------------------------------------------------------------


@op(general, promote="common", method=False, public=True)
def isin(x: Tensor, test_elements: Tensor, invert: bool = False) -> Tensor:
    """Tell for each element of x whether it is among the test elements (or not, if `invert`).

    >>> import weft as wf
    >>> wf.isin(wf.tensor([1, 2, 3]), wf.tensor([3, 1]))
    tensor([ True, False,  True])
    """


@isin.canon
def _(x, test_elements, invert):
    return (bool(invert),)


@isin.eval
def _(x, test_elements, invert):
    return np.isin(x, test_elements, invert=invert)


@isin.expand
def _(x, test_elements, invert):
    if 0 in test_elements.shape:
        return F.full_like(x, invert, dtype=bool_)
    ascending = F.sort(F.reshape(test_elements, (-1,)), 0)
    places = F.minimum(F.sorted_search(ascending, x), ascending.shape[0] - 1)
    found = F.take(ascending, places, 0) == x
    return ~found if invert else found


@isin.infer
def _(x, test_elements, invert):
    return TensorType(x.shape, bool_)


@isin.batch
def _(x, test_elements, invert, batched):
    if not batched[1]:
        return F.isin(x, test_elements, invert)
    x = x if batched[0] else repeat(x, 1)
    flat = F.reshape(test_elements, (test_elements.shape[0], size_of(test_elements.shape[1:])))
    found = F.any(x[..., None] == with_rank(flat, x.ndim), -1)
    return ~found if invert else found


@isin.samples
def _(s):
    yield Sample(s.integers(2, 3), np.array([1, 4]))
    yield Sample(s.integers(2, 3), np.array([[1], [0]]), invert=True)
    yield Sample(np.array([1.0, np.nan]), np.array([np.nan]), grad=0, label="nan")
    yield Sample(np.array(2), np.array([2]), label="0-d")
    yield Sample(s.integers(3), np.array([], int), label="empty")


# -- counts -------------------------------------------------------------------------------------


@op(general, linear=("weights",))
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each of 0, 1, ... occurs in a 1-D x, or the sum of the weights given to it.

    >>> import weft as wf
    >>> wf.bincount(wf.tensor([0, 2, 2]), minlength=4)
    tensor([1, 0, 2, 0])
    """


@bincount.canon
def _(x, weights, minlength):
    check_integer(x, "x")
    if x.ndim != 1 or (weights is not None and not may_equal(weights.shape, x.shape)):
        shown = "" if weights is None else f", weights {tuple(weights.shape)}"
        raise ShapeError(
            f"x must be 1-D, and weights of its shape. Received: x {tuple(x.shape)}{shown}"
        )
    length = as_int(minlength, "minlength")
    if length < 0:
        raise ArgumentError(f"minlength must not be negative. Received: {length}")
    return (length,)


@bincount.eval
def _(x, weights, minlength):
    check_non_negative(x, max(int(x.max(initial=0)) + 1, minlength), None, "x")
    if weights is None:
        return np.bincount(x, minlength=minlength).astype(np.int64, copy=False)
    return np.bincount(x, weights.astype(np.float64), minlength).astype(weights.dtype)


@bincount.infer
def _(x, weights, minlength):
    return TensorType((UNKNOWN,), int64 if weights is None else weights.dtype)


@bincount.vjp("weights")
def _(g, x):
    return F.take(g, x, 0)


@bincount.samples
def _(s):
    yield Sample(np.array([0, 2, 2]))
    yield Sample(np.array([0, 2, 2], np.uint8), minlength=6)
    yield Sample(np.array([0, 2, 2]), s.real(3))
    yield Sample(np.array([], int), minlength=2, label="empty")


@bincount.error_samples
def _(s):
    yield ErrorSample(np.array([0, -2]), error=IndexError, match=r"x\[1\] = -2")
    yield ErrorSample(s.integers(2, 2), error=ValueError, match=r"x \(2, 2\)")
    yield ErrorSample(np.array([0, 1]), s.real(3), error=ValueError, match=r"weights \(3,\)")
    yield ErrorSample(s.real(3), error=TypeError, match="x must hold integers.*float64")


@op(general, outputs=2, promote="float")
def histogram(
    x: Tensor,
    bins: int | Sequence[float] = 10,
    range: tuple[float, float] | None = None,
    weights: Tensor | None = None,
    density: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return how many elements fall into each of `bins` equal intervals, and the bins + 1 edges.

    The intervals span `range`, by default the smallest to the largest element; elements outside
    are not counted, and the last interval includes its upper edge.

    bins      may be the edges themselves, ascending
    weights   what each element counts, of the shape of x; counts are then floats
    density   True: over the widths and the sum of all, so that the integral is 1

    >>> import weft as wf
    >>> wf.histogram(wf.tensor([0.0, 1.0, 1.5, 4.0]), bins=2)
    (tensor([3, 1]), tensor([0., 2., 4.]))
    """


@histogram.canon
def _(x, weights, bins, range, density):
    if weights is not None and not may_equal(tuple(weights.shape), tuple(x.shape)):
        raise ShapeError(
            "weights must have the shape of x. "
            f"Received: {tuple(weights.shape)} and {tuple(x.shape)}"
        )
    if not isinstance(bins, (int, np.integer)) and np.ndim(bins) == 1:
        return tuple(float(edge) for edge in bins), None, bool(density)
    count = as_int(bins, "bins")
    if count < 1:
        raise ArgumentError(f"bins must be at least 1. Received: {count}")
    return count, None if range is None else _span(range), bool(density)


def _span(span: Any) -> tuple[float, float]:
    try:
        low, high = map(float, span)
    except (TypeError, ValueError):
        raise ArgumentError(f"range must be two numbers. Received: {span!r:.60}") from None
    if not -np.inf < low <= high < np.inf:
        raise ArgumentError(f"range must be finite and ascending. Received: {(low, high)}")
    return low, high


@histogram.eval
def _(x, weights, bins, range, density):
    wide = None if weights is None else widened(weights)
    counts, edges = np.histogram(widened(x), bins, range, density, wide)
    dtype = x.dtype if density or weights is not None else np.int64
    return counts.astype(dtype, copy=False), edges.astype(x.dtype)


@histogram.expand
def _(x, weights, bins, range, density):
    if 0 in x.shape:
        return None
    wide = F.cast(F.reshape(x, (-1,)), float64)
    edges = _edges(wide, bins, range)
    count = edges.shape[0] - 1
    place, inside = bin_of(wide, edges)
    if isinstance(bins, int) and range is None:  # else those are not counted
        place = place + given_up(F.all(F.isfinite(wide)))
    dtype = int64 if weights is None else float64
    ones = F.ones_like(place) if weights is None else F.cast(F.reshape(weights, (-1,)), dtype)
    counts = F.take_adjoint(F.where(inside, ones, F.zeros_like(ones)), place, (count,), 0)
    if density:
        counts = F.cast(counts, float64) / F.sum(counts) / (edges[1:] - edges[:-1])
    whole = not density and weights is None
    return counts if whole else F.cast(counts, x.dtype), F.cast(edges, x.dtype)


def _edges(x: Any, bins: Any, span: Any) -> Any:
    """Return the edges of bins: those given, or of equal intervals as np.linspace has them."""
    if not isinstance(bins, int):
        return np.array(bins, np.float64)
    if span is not None:
        low, high = span
        low, high = (low - 0.5, high + 0.5) if low == high else span
        return np.linspace(low, high, bins + 1)
    low, high = F.min(x), F.max(x)
    same = low == high
    low, high = F.where(same, low - 0.5, low), F.where(same, high + 0.5, high)
    inner = F.cast(F.iota(bins), float64) * ((high - low) / bins) + low
    return F.concat([inner, F.reshape(high, (1,))], 0)


def bin_of(x: Any, edges: Any) -> tuple[Any, Any]:
    """Return between which edges elements lie, the last one belonging to the last bin; and if."""
    last = edges.shape[0] - 1
    place = F.sorted_search(edges, x, True) - 1
    inside = (x >= edges[0]) & (x <= edges[-1])
    return F.maximum(F.minimum(place, last - 1), 0), inside


def given_up(condition: Any) -> Any:
    """Return 0, or give the run up where a condition does not hold: the kernel then says why."""
    return F.take(np.zeros(1, np.int64), F.where(condition, np.int64(0), np.int64(1)), 0)


@histogram.infer
def _(x, weights, bins, range, density):
    count = len(bins) - 1 if isinstance(bins, tuple) else bins
    dtype = x.dtype if density or weights is not None else int64
    return TensorType((count,), dtype), TensorType((count + 1,), x.dtype)


@histogram.samples
def _(s):
    yield Sample(s.real(9), bins=4, grad=0)
    yield Sample(s.real(3, 3), bins=3, range=(-1.0, 1.0), grad=0)
    yield Sample(s.real(5), bins=3, weights=s.positive(5), grad=0)
    yield Sample(s.real(5), bins=(-2.0, 0.0, 0.5, 2.0), density=True, grad=0)
    yield Sample(np.zeros(0), bins=2, grad=0, label="empty")


@histogram.error_samples
def _(s):
    yield ErrorSample(s.real(3), bins=0, error=ValueError, match="Received: 0")
    yield ErrorSample(s.real(3), range=(2, 1), error=ValueError, match=r"Received: \(2\.0, 1\.0\)")
