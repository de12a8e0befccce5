"""References of copies with a part replaced: NumPy's assignments, an element at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from weft.core.samples import ErrorSample, Sample, Sampler


def _at(dim, index, ndim):
    return (*[slice(None)] * (dim % ndim), index)


def _written(x, index, value):
    out = x.copy()
    out[index] = value
    return out


def _index_put(x, indices, values, accumulate=False):
    out = x.copy()
    if accumulate:
        np.add.at(out, tuple(indices), values)
    else:
        out[tuple(indices)] = values
    return out


def _put(x, index, source, accumulate=False):
    flat = _index_put(x.ravel(), (index.ravel(),), source.ravel(), accumulate)
    return flat.reshape(x.shape)


def _masked_scatter(x, mask, source):
    out, values = x.copy(), iter(source.ravel())
    for place in np.argwhere(np.broadcast_to(mask, x.shape)):
        out[tuple(place)] = next(values)
    return out


def _diagonal_scatter(x, src, offset=0, dim1=0, dim2=1):
    out = x.copy()
    view = np.moveaxis(out, (dim1, dim2), (0, 1))
    for i in range(view.shape[0]):
        if 0 <= i + offset < view.shape[1]:
            view[i, i + offset] = src[..., i + min(offset, 0)]
    return out


REFERENCES: dict[str, Callable[..., Any]] = {
    "index_copy": lambda x, dim, index, source: _written(x, _at(dim, index, x.ndim), source),
    "index_fill": lambda x, dim, index, value: _written(x, _at(dim, index, x.ndim), value),
    "select_scatter": lambda x, src, dim, index: _written(x, _at(dim, index, x.ndim), src),
    "slice_scatter": lambda x, src, dim=0, start=None, end=None, step=1: _written(
        x, _at(dim, slice(start, end, step), x.ndim), src
    ),
    "diagonal_scatter": _diagonal_scatter,
    "index_put": _index_put,
    "put": _put,
    "masked_scatter": _masked_scatter,
}


# -- samples --------------------------------------------------------------------------------------


def _index_copy_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1, np.array([2, 0]), s.real(2, 2))
    yield Sample(s.real(3, 2), -2, np.array([0, -1]), s.real(2, 2), label="negative")
    yield Sample(s.real(3), 0, np.array([], int), s.real(0), label="empty")
    yield Sample(s.integers(3), 0, np.array([1]), s.integers(1), label="integers")


def _index_fill_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), 1, np.array([2, 0]), 0.5)
    yield Sample(s.real(2, 3), 0, np.array([1, 1]), s.real(), label="0-d tensor")
    yield Sample(s.integers(3), 0, np.array([1]), 4, label="integers")


def _select_scatter_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), s.real(2), 1, 2)
    yield Sample(s.real(2, 3), s.real(3), 0, -1)
    yield Sample(s.real(2), s.real(), 0, 1, label="vector")


def _slice_scatter_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 5), s.real(2, 2), 1, 1, 4, 2)
    yield Sample(s.real(3, 2), s.real(3, 2), label="all")
    yield Sample(s.real(4), s.real(2), 0, -2, label="from the end")
    yield Sample(s.real(3), s.real(0), 0, 2, 1, label="nothing")


def _diagonal_scatter_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(3, 3), s.real(3))
    yield Sample(s.real(2, 3), s.real(2), 1)
    yield Sample(s.real(3, 2), s.real(2), -1)
    yield Sample(s.real(2, 3, 2), s.real(3, 2), 0, 0, 2, label="axes")
    yield Sample(s.real(2, 2), s.real(0), 5, label="outside")


def _index_put_samples(s: Sampler) -> Iterable[Sample]:
    i, j = np.array([0, 1, 1]), np.array([2, 0, 1])
    yield Sample(s.real(2, 3), (i, j), s.real(3))
    yield Sample(s.real(2, 3), (i, np.array([2, 0, 0])), s.real(3), True, label="accumulate")
    yield Sample(s.real(3, 2), (np.array([0, 0]),), s.real(2, 2), True, label="rows accumulate")
    yield Sample(s.real(2, 3), (i,), s.real(), True, label="broadcast")


def _put_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), np.array([5, 0]), s.real(2))
    yield Sample(s.real(2, 3), np.array([[1, 1], [-1, 2]]), s.real(4), True, label="accumulate")
    yield Sample(s.real(2), np.array([], int), s.real(0), label="nothing")


def _masked_scatter_samples(s: Sampler) -> Iterable[Sample]:
    mask = np.array([[True, False, True], [False, False, True]])
    yield Sample(s.real(2, 3), mask, s.real(3))
    yield Sample(s.real(2, 3), mask[0], s.real(3, 2), label="mask broadcasts")
    yield Sample(s.integers(2, 3), mask, s.integers(5), label="integers")


COMPOSITE_SAMPLES = {
    "index_copy": _index_copy_samples,
    "index_fill": _index_fill_samples,
    "select_scatter": _select_scatter_samples,
    "slice_scatter": _slice_scatter_samples,
    "diagonal_scatter": _diagonal_scatter_samples,
    "index_put": _index_put_samples,
    "put": _put_samples,
    "masked_scatter": _masked_scatter_samples,
}


def _errors(*samples: ErrorSample) -> Callable[[Sampler], Iterable[ErrorSample]]:
    return lambda s: samples


X, INDEX = np.zeros((2, 3)), np.array([0, 2])

COMPOSITE_ERROR_SAMPLES = {
    "index_copy": _errors(
        ErrorSample(X, 1, INDEX, X, error=ValueError, match=r"\(2, 2\). Received: \(2, 3\)"),
        ErrorSample(X, 2, INDEX, X, error=IndexError, match="dim 2 is out of range"),
        ErrorSample(X, 1, X[0], X, error=TypeError, match="integers.*float64"),
    ),
    "index_fill": _errors(
        ErrorSample(X, 1, INDEX, X, error=ValueError, match=r"value .*\(\). Received: \(2, 3\)"),
        ErrorSample(X, 1, np.array([3]), 0.0, error=IndexError, match="size 3"),
    ),
    "select_scatter": _errors(
        ErrorSample(X, X, 1, 0, error=ValueError, match=r"src .*\(2,\). Received: \(2, 3\)"),
        ErrorSample(X, X[0], 0, 2, error=IndexError, match="size 2"),
    ),
    "slice_scatter": _errors(
        ErrorSample(X, X, 1, 0, 2, error=ValueError, match=r"src .*\(2, 2\). Received: \(2, 3\)"),
        ErrorSample(X, X, 1, step=0, error=ValueError, match="Received: step=0"),
    ),
    "diagonal_scatter": _errors(
        ErrorSample(X, X[0], error=ValueError, match=r"src .*\(2,\). Received: \(3,\)"),
        ErrorSample(X, X[0], 0, 1, -1, error=ValueError, match="must differ. Received: 1 and -1"),
    ),
    "index_put": _errors(
        ErrorSample(X, "ab", 1.0, error=TypeError, match="tuple of tensors. Received: str"),
    ),
    "put": _errors(
        ErrorSample(X, INDEX, X, error=ValueError, match=r"\(2, 3\) and \(2,\)"),
        ErrorSample(X, INDEX + 5, X[0, :2], error=IndexError, match="size 6"),
    ),
    "masked_scatter": _errors(
        ErrorSample(X, X, X, error=TypeError, match="booleans. Received: dtype float64"),
        ErrorSample(X, X == 0, X[0], error=IndexError, match="size 3"),
    ),
}
