"""References of indexing, gathering, sorting and searching: NumPy's functions or plain loops."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np

from weft.core.samples import ErrorSample, Sample, Sampler

Array = np.ndarray


# -- reading and writing --------------------------------------------------------------------------


def _native(spec, arrays=()):
    rest = iter(arrays)
    entries = []
    for item in spec:
        if isinstance(item, str):
            entries.append(next(rest))
        else:
            entries.append(slice(*item) if isinstance(item, tuple) else item)
    return tuple(entries)


def _places(shape, index):
    """Return the multi-index of every selected element, by indexing each coordinate's grid."""
    grids = np.indices(shape)
    return [np.atleast_1d(grid[index]).ravel() for grid in grids]


def _add_into_zeros(shape, index, g):
    out = np.zeros(shape, g.dtype)
    if not shape:
        out[()] = g.sum()
        return out
    for *place, value in zip(*_places(shape, index), g.ravel(), strict=True):
        out[tuple(place)] += value
    return out


def _written(x, index, value):
    out = x.copy()
    out[index] = value
    return out


def _last_writes(arrays, shape, spec):
    index = _native(spec, arrays)
    coordinates = list(zip(*_places(shape, index), strict=True))
    stays = [place not in coordinates[i + 1 :] for i, place in enumerate(coordinates)]
    return np.array(stays, bool).reshape(np.zeros(shape)[index].shape)


# -- along an axis --------------------------------------------------------------------------------


def _along_places(index, dim):
    for place in product(*map(range, index.shape)):
        target = list(place)
        target[dim] = index[place]
        yield place, tuple(target)


def _gather(x, dim, index):
    out = np.empty(index.shape, x.dtype)
    for place, source in _along_places(index, dim):
        out[place] = x[source]
    return out


def _scatter(x, dim, index, src, combine=lambda old, new: new):
    out = x.copy()
    for place, target in _along_places(index, dim):
        out[target] = combine(out[target], src[place] if np.ndim(src) else src)
    return out


def _scatter_add(x, dim, index, src):
    return _scatter(x, dim, index, src, lambda old, new: old + new)


REDUCERS = {"sum": np.sum, "mean": np.mean, "amax": np.max, "amin": np.min}


def _scatter_reduce(x, dim, index, src, reduce, include_self=True):
    dim %= x.ndim
    received: dict[Any, list[Any]] = {}
    for place, target in _along_places(index, dim):
        wrapped = tuple(t % n for t, n in zip(target, x.shape, strict=True))
        received.setdefault(wrapped, []).append(src[place])
    out = x.copy()
    for target, values in received.items():
        own = [x[target]] if include_self else []
        out[target] = REDUCERS[reduce](own + values)
    return out


def _put_along_axis(x, indices, values, axis=-1):
    out = x.copy()
    np.put_along_axis(out, indices, values, axis)
    return out


def _take_adjoint(g, indices, shape, axis):
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    return _add_into_zeros(shape, np.unravel_index(np.take(positions, indices, axis), shape), g)


def _index_add(x, dim, index, source, alpha=1):
    out = np.moveaxis(x.copy(), dim, 0)
    for i, row in zip(index, np.moveaxis(source, dim, 0), strict=True):
        out[i] += alpha * row
    return np.moveaxis(out, 0, dim)


def _narrow(x, axis, start, length):
    start = start % x.shape[axis] if x.shape[axis] else 0
    return np.take(x, np.arange(start, start + length), axis)


def _row_slots(rows):
    distinct = sorted({int(row) for row in rows})
    first = len(rows) - len(distinct)
    slots = [first + distinct.index(int(row)) for row in rows]
    shown = [*distinct[:1] * first, *distinct]
    return np.array(slots, np.int64), np.array(shown, np.int64)


def _one_hot(index, num_classes=-1, dtype=np.int64):
    count = int(index.max()) + 1 if num_classes == -1 else num_classes
    return np.eye(count, dtype=dtype)[index]


# -- sorting, searching ---------------------------------------------------------------------------


def _sort_key(x):
    """Return ranks that grow as the values do, NaN last; Python's sorts are stable."""
    return lambda i: (bool(np.isnan(x[i])), 0 if np.isnan(x[i]) else x[i])


def _order_line(x, descending):
    return np.array(sorted(range(len(x)), key=_sort_key(x), reverse=descending), np.int64)


def _argsort(x, axis=-1, descending=False, dim=None):
    axis = axis if dim is None else dim
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    if x.size == 0:
        return np.zeros(x.shape, np.int64)
    return np.apply_along_axis(_order_line, axis, x, descending)


def _sort(x, axis=-1, descending=False, dim=None):
    axis = axis if dim is None else dim
    x, axis = (x.ravel(), 0) if axis is None else (x, axis)
    return np.take_along_axis(x, _argsort(x, axis, descending), axis)


def _topk(x, k, axis=-1, largest=True, sorted=True, dim=None):
    axis = axis if dim is None else dim
    order = np.take(_argsort(x, axis, largest), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


def _search(boundaries, values, right=False):
    side = "right" if right else "left"
    if boundaries.ndim == 1:
        return np.searchsorted(boundaries, values, side)
    lines = [_search(b, v, right) for b, v in zip(boundaries, values, strict=True)]
    return np.array(lines, np.int64).reshape(values.shape)


def _searchsorted(sorted_sequence, values, side=None, right=False, sorter=None):
    if sorter is not None:
        sorted_sequence = sorted_sequence[sorter]
    return _search(sorted_sequence, values, right or side == "right")


def _distinct(x, axis=None, equal_nan=True, dim=None):
    axis = axis if dim is None else dim
    lines = list(x.ravel()) if axis is None else [tuple(row.ravel()) for row in _rows(x, axis)]
    if x.dtype.kind == "f":
        distinct = np.unique(x, equal_nan=equal_nan)
        inverse = np.searchsorted(distinct, x)
        if not equal_nan:
            inverse[np.isnan(x)] += np.arange(np.isnan(x).sum())
    else:
        ordered = sorted(set(lines))
        distinct = np.array(ordered, x.dtype)
        if axis is not None:
            slices = distinct.reshape(len(ordered), *np.moveaxis(x, axis, 0).shape[1:])
            distinct = np.moveaxis(slices, 0, axis)
        inverse = np.array([ordered.index(line) for line in lines], np.int64)
        inverse = inverse.reshape(x.shape if axis is None else -1)
    count = len(distinct) if axis is None else distinct.shape[axis]
    counts = np.array([np.sum(inverse == i) for i in range(count)], np.int64)
    first = np.array([inverse.ravel().tolist().index(i) for i in range(count)], np.int64)
    return distinct, first, inverse, counts


def _rows(x, axis):
    return np.moveaxis(x, axis, 0)


def _unique(x, sorted=True, return_inverse=False, return_counts=False, axis=None):
    values, _, inverse, counts = _distinct(x, axis)
    wanted = [values] + [inverse] * return_inverse + [counts] * return_counts
    return tuple(wanted) if len(wanted) > 1 else values


def _bincount(x, weights=None, minlength=0):
    size = max(int(x.max()) + 1 if x.size else 0, minlength)
    out = np.zeros(size, np.int64 if weights is None else weights.dtype)
    for i, value in enumerate(x):
        out[value] += 1 if weights is None else weights[i]
    return out


def _isin(x, test_elements, invert=False):
    found = (x[..., None] == test_elements.ravel()).any(axis=-1)
    return ~found if invert else found


REFERENCES: dict[str, Callable[..., Any]] = {
    "index_get": lambda x, index: x[index],
    "index_set": _written,
    "getitem": lambda x, spec: x[_native(spec)],
    "getitem_adjoint": lambda g, shape, spec: _written(np.zeros(shape, g.dtype), _native(spec), g),
    "getitem_arrays": lambda x, arrays, spec: x[_native(spec, arrays)],
    "getitem_arrays_adjoint": lambda g, arrays, shape, spec: _add_into_zeros(
        shape, _native(spec, arrays), g
    ),
    "setitem": lambda x, value, spec: _written(x, _native(spec), value),
    "setitem_arrays": lambda x, value, arrays, spec: _written(x, _native(spec, arrays), value),
    "last_writes": _last_writes,
    "gather": _gather,
    "gather_adjoint": lambda g, index, shape, dim: _scatter_add(
        np.zeros(shape, g.dtype), dim, index, g
    ),
    "scatter": _scatter,
    "scatter_along": lambda x, index, src, dim: _scatter(x, dim, index, src),
    "scatter_add": _scatter_add,
    "scatter_reduce": _scatter_reduce,
    "scatter_extreme": lambda x, index, src, dim, largest, include_self: _scatter_reduce(
        x, dim, index, src, "amax" if largest else "amin", include_self
    ),
    "take_along_axis": np.take_along_axis,
    "put_along_axis": _put_along_axis,
    "take": lambda x, indices, axis=None, sparse=False, dim=None: np.take(
        x, indices, axis if dim is None else dim
    ),
    "take_adjoint": _take_adjoint,
    "index_select": lambda x, dim, index: np.take(x, np.atleast_1d(index), dim),
    "index_add": _index_add,
    "narrow": _narrow,
    "select": lambda x, axis, index: np.take(x, index, axis),
    "embedding": lambda weight, index, padding_idx=None, sparse=False: weight[index],
    "embedding_of": lambda input, weight, padding_idx=None, sparse=False: weight[input],
    "row_slots": _row_slots,
    "one_hot": _one_hot,
    "one_hot_rows": _one_hot,
    "masked_fill": lambda x, mask, value: np.where(mask, np.asarray(value, x.dtype), x),
    "masked_select": lambda x, mask: np.extract(*reversed(np.broadcast_arrays(x, mask))),
    "nonzero": lambda x: tuple(np.argwhere(x).T.astype(np.int64)),
    "argwhere": np.argwhere,
    "flatnonzero": np.flatnonzero,
    "sort": _sort,
    "argsort": _argsort,
    "topk": _topk,
    "top_k": _topk,
    "sorted_search": _search,
    "searchsorted": _searchsorted,
    "bucketize": lambda x, boundaries, right=False: np.digitize(x, boundaries, right=not right),
    "distinct": _distinct,
    "unique_all": lambda x: _distinct(x, equal_nan=False),
    "unique_counts": lambda x: _distinct(x, equal_nan=False)[::3],
    "unique_inverse": lambda x: _distinct(x, equal_nan=False)[::2],
    "unique_values": lambda x: _distinct(x, equal_nan=False)[0],
    "unique": _unique,
    "borrow_example": lambda x, active: x,
    "return_example": lambda g, active: g,
    "isin": _isin,
    "bincount": _bincount,
    "histogram": lambda x, bins=10, range=None, weights=None, density=False: np.histogram(
        x, bins, range, density, weights
    ),
    "tril_indices": np.tril_indices,
    "triu_indices": np.triu_indices,
}


# -- samples of composites ------------------------------------------------------------------------


def index_get_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1)
    yield Sample(s.real(2, 3), (slice(None), slice(None, None, -1)))
    yield Sample(s.real(2, 3), (None, ..., np.int64(2)))
    yield Sample(s.real(2, 3), [0, 1, 0])
    yield Sample(s.real(2, 3), ([0, 1], slice(1, None)))
    yield Sample(s.real(2, 3), (slice(None), [True, False, True]))
    yield Sample(s.real(2, 3), np.array([[True, False, True], [False, False, True]]))


def index_set_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1, s.real(3))
    yield Sample(s.real(2, 3), (slice(None), [0, 0]), s.real(2, 2), label="repeated")
    yield Sample(s.real(2, 3), (0, slice(None, None, 2)), 0.1, label="number")
    yield Sample(s.real(2, 2), np.array([[True, False], [True, True]]), s.real(3), label="mask")


def scatter_samples(s: Sampler) -> Iterable[Sample]:
    index = np.array([[0, 2], [1, 1]])
    yield Sample(s.real(2, 3), 1, index, s.real(2, 2))
    yield Sample(s.real(2, 3), -1, index, s.real(3, 3), label="larger src")
    yield Sample(s.real(2, 3), 1, index, 2.5, label="number")
    yield Sample(s.real(2, 3), 0, s.integers(0, 3), s.real(1, 3), label="empty")


def scatter_add_samples(s: Sampler) -> Iterable[Sample]:
    index = np.array([[0, 2], [1, 1]])
    yield Sample(s.real(2, 3), 1, index, s.real(2, 2))
    yield Sample(s.real(2, 3), -1, index, s.real(3, 3), label="larger src")
    yield Sample(s.real(2, 3), 0, s.integers(0, 3), s.real(1, 3), label="empty")
    yield Sample(s.integers(2, 3), 1, index, s.integers(2, 2), label="integers")


def scatter_reduce_samples(s: Sampler) -> Iterable[Sample]:
    index = np.array([0, 2, 0, -1])
    for reduce in REDUCERS:
        for include_self in (True, False):
            values = s.distinct(8)
            yield Sample(values[:4], 0, index, values[4:], reduce, include_self=include_self)


def take_along_axis_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), np.array([[0, 2], [1, -1]]))
    yield Sample(s.real(2, 3), np.array([[1, 0, 2]]), axis=1, label="indices broadcast")
    yield Sample(s.real(1, 3), np.array([[1], [0]]), 1, label="x broadcasts")
    yield Sample(s.real(2, 3), np.array([5, 0]), axis=None)


def put_along_axis_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), np.array([[0, 2], [1, -1]]), s.real(2, 2), 1)
    yield Sample(s.real(2, 3), np.array([[1, 0]]), s.real(2, 1), axis=1, label="broadcast")
    yield Sample(s.real(2, 3), np.array([5, 0]), s.real(2), axis=None)
    yield Sample(s.real(2, 3), np.array([[1]]), 3.0, axis=0, label="number")


def index_select_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1, np.array([2, 0, 2]))
    yield Sample(s.real(2, 3), 0, np.array(1), label="0-d index")
    yield Sample(s.real(2, 3), -1, np.array([], int), label="empty")


def index_add_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1, np.array([2, 0, 2, 1]), s.real(2, 4))
    yield Sample(s.real(3), 0, np.array([0, -1]), s.real(2), alpha=0.5)
    yield Sample(s.integers(3), 0, np.array([0, 0]), s.integers(2), label="integers")


def narrow_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 4), 1, 1, 2)
    yield Sample(s.real(3, 2), 0, -2, 1)
    yield Sample(s.real(3, 2), -1, 0, 0, label="empty")


def select_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 4), 1, 2)
    yield Sample(s.real(3, 2), 0, -1)
    yield Sample(s.real(3), -1, 0)


def one_hot_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(np.array([2, 0, 1]))
    yield Sample(np.array([[1], [0]]), 4, dtype="float32")
    yield Sample(np.array([], int), 3, label="empty")


def masked_fill_samples(s: Sampler) -> Iterable[Sample]:
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample(s.real(2, 3), mask, 0.1)
    yield Sample(s.real(2, 3), mask[0], -np.inf, grad=0, label="infinity")
    yield Sample(s.real(3), mask, s.real(), label="0-d tensor")
    yield Sample(s.integers(2, 3), mask, 7, label="integers")


def masked_select_samples(s: Sampler) -> Iterable[Sample]:
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample(s.real(2, 3), mask)
    yield Sample(s.real(3), mask, label="x broadcasts")
    yield Sample(s.real(2, 3), mask[:, :1], label="mask broadcasts")


def place_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.integers(2, 3, high=2))
    yield Sample(np.array([0.0, np.nan, -1.0]), grad=0)
    yield Sample(s.booleans(2, 2, 2))
    yield Sample(np.zeros((0, 2)), grad=0, label="empty")


def topk_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.distinct(5), 2)
    yield Sample(s.distinct(2, 4), 3, largest=False)
    yield Sample(s.distinct(4, 2), 2, axis=0)


def searchsorted_samples(s: Sampler) -> Iterable[Sample]:
    ticks = np.array([1.0, 2.0, 2.0, 4.0])
    yield Sample(ticks, np.array([[0.0, 2.0], [3.0, 9.0]]), grad=0)
    yield Sample(ticks, np.array([2.0, 4.0]), side="right", grad=0)
    yield Sample(ticks, np.array([2.0, 4.0]), right=True, grad=0)
    yield Sample(ticks[::-1], np.array([2.0, 4.0]), sorter=np.array([3, 2, 1, 0]), grad=0)


def bucketize_samples(s: Sampler) -> Iterable[Sample]:
    ticks = np.array([1, 2, 4])
    yield Sample(np.array([[0, 1], [2, 9]]), ticks)
    yield Sample(np.array([[0, 1], [2, 9]]), ticks, right=True)


def unique_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.integers(3, 4))
    yield Sample(s.integers(3, 4), return_inverse=True, return_counts=True)
    yield Sample(s.integers(4, 2, high=2), return_counts=True, axis=0)
    yield Sample(np.array([2.0, 1.0, 2.0]), return_inverse=True, grad=0)


def distinct_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.integers(3, 4))
    yield Sample(np.array([np.nan, 2.0, 1.0, np.nan, 2.0]), grad=0, label="nan")
    yield Sample(np.zeros(0), grad=0, label="empty")


def triangle_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(3)
    yield Sample(3, 1)
    yield Sample(2, -1, 4)
    yield Sample(0)


def embedding_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(np.array([[1, 0], [3, 1]]), s.real(4, 3))
    yield Sample(np.array([1, 0, 1]), s.real(2, 3), padding_idx=0, grad=0)
    yield Sample(np.zeros((0, 2), int), s.real(2, 3), label="empty")
    yield Sample(np.array([1, 0, 1]), s.real(2, 3), sparse=True, label="sparse")


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Iterable[Sample]]] = {
    "index_get": index_get_samples,
    "index_set": index_set_samples,
    "scatter": scatter_samples,
    "scatter_add": scatter_add_samples,
    "scatter_reduce": scatter_reduce_samples,
    "take_along_axis": take_along_axis_samples,
    "put_along_axis": put_along_axis_samples,
    "index_select": index_select_samples,
    "index_add": index_add_samples,
    "narrow": narrow_samples,
    "embedding_of": embedding_samples,
    "select": select_samples,
    "one_hot": one_hot_samples,
    "masked_fill": masked_fill_samples,
    "masked_select": masked_select_samples,
    "argwhere": place_samples,
    "flatnonzero": place_samples,
    "topk": topk_samples,
    "searchsorted": searchsorted_samples,
    "bucketize": bucketize_samples,
    "unique": unique_samples,
    **{f"unique_{part}": distinct_samples for part in ("all", "counts", "inverse", "values")},
    "tril_indices": triangle_samples,
    "triu_indices": triangle_samples,
}


def _errors(*samples: ErrorSample) -> Callable[[Sampler], Iterable[ErrorSample]]:
    return lambda s: samples


X = np.arange(6.0).reshape(2, 3)
INDEX = np.array([[0, 1]])

COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Iterable[ErrorSample]]] = {
    "scatter": _errors(
        ErrorSample(X, 1, INDEX, X[:1, :1], error=ValueError, match=r"\(1, 2\).*src .*\(1, 1\)"),
    ),
    "scatter_add": _errors(
        ErrorSample(X, 1, INDEX[0], X[0], error=ValueError, match=r"\(2, 3\).*index .*\(2,\)"),
        ErrorSample(X, 2, INDEX, X, error=IndexError, match="dim 2 is out of range"),
        ErrorSample(X, 1, X, X, error=TypeError, match="integers.*float64"),
        ErrorSample(X, 1, INDEX + 2, X, error=IndexError, match=r"index\[0, 1\] = 3 .* size 3"),
    ),
    "scatter_reduce": _errors(
        ErrorSample(X, 1, INDEX, X, "product", error=ValueError, match="amax.*Received: 'product'"),
    ),
    "take_along_axis": _errors(
        ErrorSample(X, INDEX[0], error=ValueError, match=r"\(2, 3\).*Received: \(2,\)"),
        ErrorSample(X, INDEX, axis=5, error=IndexError, match="axis 5 is out of range"),
    ),
    "put_along_axis": _errors(
        ErrorSample(X, INDEX[0], 1.0, error=ValueError, match=r"\(2, 3\).*Received: \(2,\)"),
    ),
    "index_select": _errors(
        ErrorSample(X, 1, INDEX, error=ValueError, match=r"1-D. Received: shape \(1, 2\)"),
    ),
    "index_add": _errors(
        ErrorSample(X, 1, INDEX[0], X, error=ValueError, match=r"\(2, 2\).*source \(2, 3\)"),
        ErrorSample(X, 3, INDEX[0], X, error=IndexError, match="dim 3 is out of range"),
        ErrorSample(X, 1, X[0], X, error=TypeError, match="integers.*float64"),
        ErrorSample(
            X, 1, INDEX[0] - 4, X[:, :2], error=IndexError, match=r"index\[0\] = -4 .* size 3"
        ),
    ),
    "narrow": _errors(
        ErrorSample(X, 1, 2, 2, error=IndexError, match="start 2 with length 2 .* size 3"),
        ErrorSample(X, 1, 0, -1, error=ValueError, match="Received: -1"),
    ),
    "select": _errors(
        ErrorSample(X, 1, 3, error=IndexError, match="index 3 .* axis 1 of size 3"),
        ErrorSample(X, 2, 0, error=IndexError, match="axis 2 is out of range"),
    ),
    "one_hot": _errors(
        ErrorSample(INDEX[:0], error=ValueError, match="empty index"),
        ErrorSample(INDEX, 1.5, error=TypeError, match=r"num_classes .*1\.5"),
    ),
    "masked_fill": _errors(
        ErrorSample(X, INDEX, 0.0, error=TypeError, match="booleans. Received: dtype int64"),
        ErrorSample(X, X > 0, X, error=ValueError, match=r"one number. Received: shape \(2, 3\)"),
    ),
    "masked_select": _errors(
        ErrorSample(X, INDEX, error=TypeError, match="booleans. Received: dtype int64"),
    ),
    "searchsorted": _errors(
        ErrorSample(X[0], X, side="top", error=ValueError, match="Received: 'top'"),
    ),
    "tril_indices": _errors(
        ErrorSample(-1, error=ValueError, match=r"Received: \(-1, -1\)"),
    ),
    "triu_indices": _errors(
        ErrorSample(2.5, error=TypeError, match=r"n must be an integer. Received: 2\.5"),
    ),
}
