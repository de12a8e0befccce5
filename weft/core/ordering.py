"""Order along lines: sorted values, the places that sort them, and the first k of those.

NaN counts as larger than every number, and equal elements keep their order, also downwards.

NumPy's stable sort compares one pair at a time; its other sort works on vectors and is several
times as fast. What makes it stable:

    values   equal elements are alike, but for zeros of either sign and for nans. Those stand side
             by side once sorted, and are written anew in their order.
    places   an element becomes a whole number, its rank in the high bits and its place in the low
             ones. No two are equal, so any sort is stable, and it brings the places along.

For the first k, elements are left out that cannot be among them: those worse than a bound that at
least k elements reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .dtype import Array, is_float

_FEW = 10_000  # comparisons that a plain stable sort makes before the calls below are through
_FEW_VALUES = 256  # elements whose values it sorts before they are
_BLOCK = 1 << 17  # elements that are ordered at once, so that what is computed stays in the cache
_WORD = 64  # bits of a packed element
_RADIX_BYTES = 2  # up to this size NumPy's stable sort counts digits, and compares nothing


class Ordering(NamedTuple):
    """What an operator that sorts gives, for back ends that sort by themselves.

    axis         along which lines lie; None: all elements are one line
    descending   whether the largest comes first
    gives        for each result, whether it has the "values" in order or their "places"
    wanted       how many of the first elements are given; None: all
    """

    axis: int | None
    descending: bool
    gives: tuple[str, ...]
    wanted: int | None = None


# -- values -------------------------------------------------------------------------------------


def sorted_values(x: Array, axis: int, descending: bool) -> Array:
    """Return x sorted along an axis; equal elements in their order, also downwards."""
    if x.size <= _FEW_VALUES and x.dtype.kind != "V":
        return _plain_values(x, axis, descending)
    values = _sorted_up(x, axis)
    if descending:
        values = np.flip(values, axis)
    if is_float(x.dtype) and x.size:
        _restore_order(values.swapaxes(axis, -1), x.swapaxes(axis, -1))
    return values


def _plain_values(x: Array, axis: int, descending: bool) -> Array:
    """Sort stably; downwards, sort the reversed lines upwards and reverse the outcome."""
    if not descending:
        return np.sort(x, axis=axis, kind="stable")
    return np.flip(np.sort(np.flip(x, axis), axis=axis, kind="stable"), axis)


def _sorted_up(x: Array, axis: int) -> Array:
    if x.dtype.itemsize > _RADIX_BYTES:
        return np.sort(x, axis=axis)
    if not is_float(x.dtype):
        return np.sort(x, axis=axis, kind="stable")
    return _values_of(np.sort(_keys(x), axis=axis, kind="stable"), x.dtype)


def _restore_order(values: Array, lines: Array) -> None:
    """Write zeros and nans of sorted lines as they follow one another in the unsorted ones."""
    bits = lines.view(_signed(lines))
    if (bits == np.iinfo(bits.dtype).min).any():  # the bits of -0.0
        values[values == 0] = lines[lines == 0]
    if np.isnan(values[..., :: max(1, values.shape[-1] - 1)]).any():  # they stand at an end
        values[np.isnan(values)] = lines[np.isnan(lines)]


# -- places -------------------------------------------------------------------------------------


def sorting_places(x: Array, axis: int, descending: bool) -> Array:
    """Return the indices (int64) that sort x along an axis; of equal elements the first first."""
    if axis == x.ndim - 1:
        return first_places(x, x.shape[axis], descending)
    places = first_places(np.moveaxis(x, axis, -1), x.shape[axis], descending)
    return np.ascontiguousarray(np.moveaxis(places, -1, axis))


def first_places(lines: Array, k: int, descending: bool) -> Array:
    """Return the indices (int64) of the first k elements that sorting each line would give."""
    if _few_comparisons(lines):
        return _plainly(lines, descending)[..., :k].astype(np.int64, copy=False)
    rows = lines.reshape(-1, lines.shape[-1])
    if rows.dtype.itemsize <= _RADIX_BYTES:
        rows = _keys(rows)  # NumPy is slow at comparing short floats
    if k == 0:
        places = np.empty((len(rows), 0), np.int64)
    elif max(_SELECT_FROM, k * _few_of(rows)) <= rows.shape[-1]:
        places = _in_blocks(_select, rows, k, descending, _SELECT_BLOCK)
    else:
        places = _in_blocks(_order, rows, k, descending, _BLOCK)
    return places.reshape(*lines.shape[:-1], k)


def _in_blocks(
    first_of_rows: Callable[[Array, int, bool], Array],
    rows: Array,
    k: int,
    descending: bool,
    elements: int,
) -> Array:
    step = max(1, elements // rows.shape[-1])
    if step >= len(rows):
        return first_of_rows(rows, k, descending)
    places = np.empty((len(rows), k), np.int64)
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        places[block] = first_of_rows(rows[block], k, descending)
    return places


def _few_comparisons(lines: Array) -> bool:
    return lines.size * int(lines.shape[-1]).bit_length() <= _FEW


def _plainly(lines: Array, descending: bool) -> Array:
    """Sort stably; downwards, sort the reversed lines upwards and reverse the outcome."""
    if lines.dtype.kind == "V":  # bfloat16, which NumPy does not know how to order among nans
        lines = _keys(lines)
    if not descending:
        return np.argsort(lines, axis=-1, kind="stable")
    backwards = np.argsort(lines[..., ::-1], axis=-1, kind="stable")
    places: Array = lines.shape[-1] - 1 - backwards[..., ::-1]
    return places


def _order(rows: Array, k: int, descending: bool) -> Array:
    return _order_keys(_directed_keys(rows, descending), k)


def _directed_keys(x: Array, descending: bool) -> Array:
    keys = _keys(x)
    return ~keys if descending else keys


def _order_keys(keys: Array, k: int) -> Array:
    """Return the places of the k smallest keys of each row, smallest first."""
    if keys.dtype.itemsize <= _RADIX_BYTES or _few_comparisons(keys):
        return np.argsort(keys, axis=-1, kind="stable")[:, :k]
    packed, place_bits, dropped = _pack(keys)
    if 2 * k < keys.shape[-1] and not dropped:
        packed.partition(k - 1, axis=-1)
        packed = packed[:, :k]
    packed.sort(axis=-1)
    place_mask = packed.dtype.type((1 << place_bits) - 1)
    places: Array = (packed & place_mask).view(np.int64)
    if dropped:
        _repair(places, keys, (packed[:, 1:] ^ packed[:, :-1]) <= place_mask)
    return places[:, :k]


def _pack(keys: Array) -> tuple[Array, int, int]:
    """Return keys with places in their low bits, how many those are, and how many keys lost."""
    size = keys.shape[-1]
    place_bits = (size - 1).bit_length()
    ranks, rank_bits = _ranks(keys)
    dropped = max(0, rank_bits + place_bits - _WORD)
    if dropped:
        ranks >>= ranks.dtype.type(dropped)
    ranks <<= ranks.dtype.type(place_bits)
    ranks |= np.arange(size, dtype=ranks.dtype)
    return ranks, place_bits, dropped


def _ranks(keys: Array) -> tuple[Array, int]:
    """Return keys as words that are ordered alike, and in how many bits their values fit."""
    if keys.dtype.itemsize * 8 < _WORD:
        return keys.astype(np.int64), keys.dtype.itemsize * 8
    ranks = (keys - keys.min()).view(np.uint64)  # the difference may wrap round, to the right word
    return ranks, int(ranks.max()).bit_length()


def _repair(places: Array, keys: Array, alike: Array) -> None:
    """Sort rows by lost bits too, where neighbours are alike but for those: seldom, and little."""
    if alike.any():
        rows = alike.any(axis=-1)
        found = np.take_along_axis(keys[rows], places[rows], -1)
        again = np.argsort(found, axis=-1, kind="stable")  # quick, as runs are sorted already
        places[rows] = np.take_along_axis(places[rows], again, -1)


# -- the first k --------------------------------------------------------------------------------

_SELECT_FROM = 64  # elements of a row without which too few can be left out
_SELECT_BLOCK = 1 << 20  # elements among which to select at once; little is computed for each
_LEFT_EACH = 4  # elements to leave for each of the first k, so that seldom two of those meet
_LEFT = 32  # elements to leave in any case: vectors of fewer take as long


def _few_of(rows: Array) -> int:
    """Return how many times k a row must be long for selecting to pay; words take long to order."""
    return 4 if rows.dtype.itemsize * 8 == _WORD else 16


def _select(rows: Array, k: int, descending: bool) -> Array:
    flat = _within_reach(rows, k, descending)
    if len(flat) * 4 < rows.size:
        if len(rows) == 1:
            return flat[first_places(rows[:, flat], k, descending)]
        counts = np.bincount(flat // rows.shape[-1], minlength=len(rows))
        if counts.max() * 4 < rows.shape[-1]:
            return _first_of_some(rows, flat, counts, k, descending)
    return _in_blocks(_order, rows, k, descending, _BLOCK)  # too many are equal


def _within_reach(rows: Array, k: int, descending: bool) -> Array:
    """Return the flat indices of a set of elements with the first k of each row among them."""
    bound = _bound(rows, k, descending)
    worse = rows < bound if descending else rows > bound  # never so of nan, which stays
    return np.flatnonzero(np.logical_not(worse, out=worse))


def _bound(rows: Array, k: int, descending: bool) -> Array:
    """Return for each row a value that at least k of its elements reach, a good one.

    Rows are folded: the better of an element and its partner stands for both. The k best of the
    folded ones reach the k-th best among them, and each is an element of the row.
    """
    better = np.maximum if descending else np.minimum
    while (half := rows.shape[-1] // 2) >= max(_LEFT_EACH * k, _LEFT):
        rows = better(rows[:, :half], rows[:, half : 2 * half])
    kth = rows.shape[-1] - k if descending else k - 1
    bound: Array = np.partition(rows, kth, axis=-1)[:, kth : kth + 1]
    return bound


def _first_of_some(rows: Array, flat: Array, counts: Array, k: int, descending: bool) -> Array:
    """Return the places of the first k of each row, which are among some flat indices."""
    shape = len(rows), int(counts.max())
    starts = np.arange(shape[0]) * shape[1] - (np.cumsum(counts) - counts)
    slots = np.arange(len(flat)) + np.repeat(starts, counts)
    keys = _directed_keys(rows.reshape(-1)[flat], descending)
    # What pads a short row comes last: after all smaller keys, and after equal ones before it.
    table = np.full(shape, np.iinfo(keys.dtype).max, keys.dtype)
    places = np.zeros(shape, np.int64)
    table.reshape(-1)[slots], places.reshape(-1)[slots] = keys, flat % rows.shape[-1]
    return np.take_along_axis(places, _order_keys(table, k), -1)


# -- keys: whole numbers ordered as elements are ------------------------------------------------


def _keys(x: Array) -> Array:
    """Return signed integers that compare as the elements of x do; equal ones for all nans."""
    bits: Array = x.view(_signed(x))
    if x.dtype.kind in "bi":
        return bits
    if x.dtype.kind == "u":
        shifted: Array = bits ^ np.iinfo(bits.dtype).min
        return shifted
    return _float_keys(bits, _infinity_bits(x.dtype))


def _float_keys(bits: Array, infinity: int) -> Array:
    top = np.iinfo(bits.dtype).max
    keys = _turned(bits)
    keys += keys == -1  # -0.0 counts as 0.0
    nan = (bits & top) > infinity
    if nan.any():
        keys[nan] = top
    return keys


def _turned(bits: Array) -> Array:
    """Turn a float's sign and size into two's complement, and back."""
    sign: Array = bits >> (bits.dtype.itemsize * 8 - 1)
    sign &= np.iinfo(bits.dtype).max
    sign ^= bits
    return sign


def _values_of(keys: Array, dtype: Any) -> Array:
    """Return the floats that keys stand for, of zeros and nans those without sign."""
    return _turned(keys).view(dtype)


def _signed(x: Array) -> Any:
    return np.dtype(f"i{x.dtype.itemsize}")


def _infinity_bits(dtype: Any) -> int:
    bits = np.full(1, np.inf, dtype)
    return int(bits.view(_signed(bits))[0])
