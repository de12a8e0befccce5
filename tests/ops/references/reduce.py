"""References of the reductions: NumPy's and SciPy's functions, or plain loops."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import special

from weft.core.samples import ErrorSample, Sample, Sampler

INF = float("inf")


def as_float(x):
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def quietly(fn, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fn(*args, **kwargs)


def in_double(fn):
    """Return a reference that computes in float64 and gives back the dtype that went in."""

    def reference(x, *args, **kwargs):
        x = as_float(x)
        return np.asarray(quietly(fn, x.astype(np.float64), *args, **kwargs)).astype(x.dtype)

    return reference


# -- sums and products ----------------------------------------------------------------------------


def total_dtype(x):
    return x.dtype if x.dtype.kind == "f" else np.dtype("u8" if x.dtype.kind == "u" else "i8")


def summed(x, axis=None, keepdims=False, *, dtype=None):
    if dtype is not None and np.dtype(dtype).kind == "i":
        return np.sum(np.trunc(x), axis=axis, keepdims=keepdims).astype(dtype)
    total = np.asarray(x, np.float64).sum(axis=axis, keepdims=keepdims)
    return np.asarray(total).astype(dtype or total_dtype(x))


def multiplied(x, axis=None, keepdims=False, *, dtype=None):
    product = np.prod(np.asarray(x, np.float64), axis=axis, keepdims=keepdims)
    return np.asarray(product).astype(dtype or total_dtype(x))


def sum_to(x, shape):
    lead = x.ndim - len(shape)
    axes = [*range(lead), *(i + lead for i, dim in enumerate(shape) if dim == 1)]
    return x.sum(axis=tuple(axes), keepdims=True).reshape(shape).astype(x.dtype)


# -- extrema --------------------------------------------------------------------------------------


def any_(x, axis=None, keepdims=False):
    return np.count_nonzero(x, axis=_axes(x, axis), keepdims=keepdims) > 0


def all_(x, axis=None, keepdims=False):
    return ~any_(x == 0, axis, keepdims)


def _axes(x, axis):
    return tuple(range(x.ndim)) if axis is None else axis


def position(nan_value, pick):
    """Return the position of an extremum, found in a sorted copy."""

    def reference(x, axis=None, keepdims=False):
        keys = np.where(np.isnan(x), nan_value, x) if x.dtype.kind == "f" else x.astype(np.int64)
        rows = keys.ravel() if axis is None else keys
        order = np.argsort(pick * rows, axis=-1 if axis is None else axis, kind="stable")
        first = order[0] if axis is None else np.take(order, 0, axis)
        if not keepdims:
            return first
        return np.reshape(first, (1,) * x.ndim) if axis is None else np.expand_dims(first, axis)

    return reference


# -- moments and norms ----------------------------------------------------------------------------


def variance(x, axis=None, *, correction=0.0, keepdims=False):
    n = int(np.prod([x.shape[i] for i in _as_axes(x, axis)]))
    if n - correction <= 0:
        return np.sum(x, axis=axis, keepdims=keepdims) * np.nan
    return np.var(x, axis=axis, ddof=correction, keepdims=keepdims)


def _as_axes(x, axis):
    axes = range(x.ndim) if axis is None else axis
    return [a % x.ndim for a in ([axes] if isinstance(axes, int) else axes)]


def deviation(x, axis=None, *, correction=0.0, keepdims=False):
    return np.sqrt(variance(x, axis, correction=correction, keepdims=keepdims))


def vector_norm(x, ord=2.0, axis=None, keepdims=False):
    wide = x.astype(np.longdouble)
    axes = tuple(_as_axes(x, axis))
    rest = [i for i in range(x.ndim) if i not in axes]
    rows = wide.transpose(*rest, *axes).reshape(*(x.shape[i] for i in rest), -1) if x.size else None
    shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape) if keepdims or i not in axes)
    if rows is None:
        return np.zeros(shape)
    return np.linalg.norm(rows, ord, axis=-1).reshape(shape).astype(np.float64)


def norm(x, order=None, axis=None, keepdims=False, *, ord=None, p=None):
    ord = order if ord is None else ord
    if p is None:
        return np.linalg.norm(x, ord, axis, keepdims)
    if p == "nuc":
        return np.linalg.norm(x, p)
    return vector_norm(x, 2 if p == "fro" else p, axis, keepdims)


def matrix_norm(x, ord="fro", axis=(-2, -1), keepdims=False):
    return np.linalg.norm(x, ord, tuple(axis), keepdims)


# -- running reductions ---------------------------------------------------------------------------


def along(step):
    """Return a reference that walks along an axis, giving `step(elements so far)` at each place."""

    def reference(x, axis=None, **kwargs):
        axis = 0 if axis is None else axis
        if x.size == 0:
            return x.copy()
        rows = np.moveaxis(x, axis, 0)
        walked = np.stack([step(rows[: i + 1]) for i in range(len(rows))])
        return np.moveaxis(walked, 0, axis)

    return reference


def running(ufunc, identity):
    def reference(x, axis=None, *, exclusive=False, reverse=False):
        axis = 0 if axis is None else axis
        rows = np.moveaxis(x, axis, 0).astype(total_dtype(x))
        out = np.empty_like(rows)
        for i in range(len(rows)):
            part = rows[i + exclusive :] if reverse else rows[: i + 1 - exclusive]
            out[i] = ufunc.reduce(part, axis=0, initial=identity)
        return np.moveaxis(out, 0, axis)

    return reference


def last_position(extreme):
    def step(rows):
        is_extreme = (rows == extreme(rows, axis=0)) | np.isnan(rows.astype(np.float64))
        return len(rows) - 1 - np.argmax(is_extreme[::-1], axis=0)

    reference = along(step)
    return lambda x, axis=None: reference(x, axis).astype(np.int64)


def log_of_sums(x, axis=None):
    wide = as_float(x)
    step = along(lambda rows: quietly(special.logsumexp, rows, axis=0))
    return step(wide, axis).astype(wide.dtype)


def recurrence(a, b, axis=None, *, reverse=False):
    """Return the states by the closed form: the sum over j of b_j times all a between j and i."""
    axis = 0 if axis is None else axis
    a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    if reverse:
        a, b = a[::-1], b[::-1]
    states = np.zeros_like(b)
    for i in range(len(b)):
        for j in range(i):
            states[i] += b[j] * np.prod(a[j + 1 : i], axis=0)
    return np.moveaxis(states[::-1] if reverse else states, 0, axis)


# -- quantiles ------------------------------------------------------------------------------------


def quantile(x, q, axis=None, keepdims=False, *, method="linear", interpolation=None):
    x = as_float(x)
    if x.size == 0:
        return np.mean(x, axis=axis, keepdims=keepdims)
    how: Any = interpolation or method
    return np.quantile(x, np.asarray(q), axis=axis, keepdims=keepdims, method=how).astype(x.dtype)


def nanquantile(x, q, axis=None, keepdims=False, *, method="linear"):
    x = as_float(x)
    how: Any = method
    found = quietly(np.nanquantile, x, q, axis=axis, keepdims=keepdims, method=how)
    return np.asarray(found).astype(x.dtype)


def linalg_norm(x, ord=None, axis=None, keepdims=False):
    return np.linalg.norm(x, ord, axis, keepdims)


def mode(x, axis=-1, keepdims=False):
    rows = np.moveaxis(np.asarray(x), axis, -1)
    values, places = np.empty(rows.shape[:-1], rows.dtype), np.empty(rows.shape[:-1], np.int64)
    for at in np.ndindex(values.shape):
        found, counts = np.unique(rows[at], return_counts=True)
        values[at] = found[counts.argmax()]
        places[at] = np.flatnonzero(rows[at] == values[at])[-1]
    pair = (values, places)
    return tuple(np.expand_dims(part, axis) for part in pair) if keepdims else pair


def median(x, axis=None, keepdims=False):
    return quietly(np.median, as_float(x), axis=axis, keepdims=keepdims)


def nansum(x, axis=None, keepdims=False):
    return np.asarray(np.nansum(x, axis=axis, keepdims=keepdims))


REFERENCES: dict[str, Callable[..., Any]] = {
    "sum": summed,
    "mean": in_double(np.mean),
    "sum_to": sum_to,
    "count_nonzero": lambda x, axis=None, keepdims=False: np.sum(
        x.astype(bool), axis=axis, keepdims=keepdims, dtype=np.int64
    ),
    "nansum": nansum,
    "nanmean": in_double(np.nanmean),
    "prod": multiplied,
    "max": lambda x, axis=None, keepdims=False: np.amax(x, axis=axis, keepdims=keepdims),
    "min": lambda x, axis=None, keepdims=False: np.amin(x, axis=axis, keepdims=keepdims),
    "amax": lambda x, axis=None, keepdims=False: np.amax(x, axis=axis, keepdims=keepdims),
    "amin": lambda x, axis=None, keepdims=False: np.amin(x, axis=axis, keepdims=keepdims),
    "aminmax": lambda x, axis=None, keepdims=False: (
        np.amin(x, axis=axis, keepdims=keepdims),
        np.amax(x, axis=axis, keepdims=keepdims),
    ),
    "argmax": position(INF, -1),
    "argmin": position(-INF, 1),
    "any": any_,
    "all": all_,
    "logsumexp": in_double(special.logsumexp),
    "var": in_double(variance),
    "std": in_double(deviation),
    "vector_norm": in_double(vector_norm),
    "matrix_norm": in_double(matrix_norm),
    "norm": in_double(norm),
    "linalg_norm": in_double(linalg_norm),
    "cumsum": running(np.add, 0),
    "cumprod": running(np.multiply, 1),
    "linear_recurrence": recurrence,
    "cummax": along(lambda rows: rows.max(axis=0)),
    "cummin": along(lambda rows: rows.min(axis=0)),
    "cumargmax": last_position(np.max),
    "cumargmin": last_position(np.min),
    "logcumsumexp": log_of_sums,
    "median": median,
    "mode": mode,
    "quantile": quantile,
    "nanquantile": nanquantile,
    "nanmedian": lambda x, axis=None, keepdims=False: nanquantile(x, 0.5, axis, keepdims),
}


# -- samples of the composites --------------------------------------------------------------------


def with_nan(s):
    x = s.real(2, 3)
    x[0, 1] = np.nan
    return x


def nan_samples(s):
    yield Sample(s.real(3))
    yield Sample(s.real(2, 3), axis=1, keepdims=True)
    yield Sample(with_nan(s), grad=0, label="nan")
    yield Sample(with_nan(s), axis=1, grad=0, label="nan")
    yield Sample(s.integers(2, 3), axis=0, label="integers")


def aminmax_samples(s):
    yield Sample(s.distinct(4))
    yield Sample(s.distinct(2, 3), axis=1, keepdims=True)
    yield Sample(s.integers(2, 3), axis=0, label="integers")


def norm_samples(s):
    yield Sample(s.real(3))
    yield Sample(s.real(2, 3, 2))
    yield Sample(s.distinct(4), 1)
    yield Sample(s.distinct(4), 3.5)
    yield Sample(s.distinct(2, 3), INF, 0)
    yield Sample(s.distinct(2, 3), 2, 1, True)
    yield Sample(s.distinct(2, 3), "fro")
    yield Sample(s.distinct(2, 3), ord=1)
    yield Sample(s.distinct(2, 3), p=1)
    yield Sample(s.distinct(2, 3), p="fro", axis=1)
    yield Sample(s.distinct(2, 3), p="nuc", grad=1)
    yield Sample(s.distinct(2, 3, 2), p=3, axis=(0, 1), keepdims=True)
    yield Sample(s.integers(2, 3), label="integers")


def linalg_norm_samples(s):
    yield Sample(s.real(2, 3, 2))
    yield Sample(s.distinct(4), 3.5)
    yield Sample(s.distinct(2, 3), ord=2, axis=1, keepdims=True)
    for order in ("fro", "nuc", 1, -1, INF, -INF, 2, -2):
        yield Sample(s.distinct(2, 3), order)
        yield Sample(s.distinct(2, 3, 2), order, (2, 1), True, grad=1)
    yield Sample(s.integers(2, 3), label="integers")


def mode_samples(s):
    yield Sample(s.distinct(4))
    yield Sample(s.integers(3, 7, high=3), label="ties")
    yield Sample(s.integers(6, 2, high=2), axis=0, keepdims=True, label="ties")
    yield Sample(s.booleans(2, 5), axis=1, label="truth values")
    yield Sample(np.array([[1.0, 2.0, 1.0], [0.0, 0.0, 3.0]]), grad=0, label="most frequent")
    yield Sample(s.integers(2, 5, high=2)[:, ::-1].T, axis=0, label="non-contiguous")


def matrix_norm_samples(s):
    yield Sample(s.real(2, 3))
    for order in ("fro", "nuc", 1, -1, INF, -INF, 2, -2):
        yield Sample(s.distinct(3, 2), order, grad=1)
        yield Sample(s.distinct(2, 2, 3), order, (0, -1), grad=1)


def median_samples(s):
    yield Sample(s.distinct(5))
    yield Sample(s.distinct(4))
    yield Sample(s.distinct(2, 3), axis=0)
    yield Sample(s.distinct(2, 3, 2), axis=(0, -1), keepdims=True)
    yield Sample(s.distinct())
    yield Sample(s.real(2, 0), axis=1, label="empty")
    yield Sample(with_nan(s), axis=1, grad=0, label="nan")
    yield Sample(s.integers(2, 3), label="integers")


def quantile_samples(s):
    for method in ("linear", "lower", "higher", "nearest", "midpoint"):
        for level in (0.0, 0.3, 0.5, 0.75, 1.0):
            yield Sample(s.distinct(5), level, method=method, grad=1)
        yield Sample(s.distinct(4), 0.5, method=method, grad=1)
        yield Sample(s.distinct(2, 4), 0.5, axis=1, interpolation=method, grad=1)
    yield Sample(s.distinct(3, 4), [0.25, 0.5], axis=0)
    yield Sample(s.distinct(3, 4), (0.1, 0.6, 0.9), axis=1, keepdims=True)
    yield Sample(with_nan(s), 0.5, axis=1, grad=0, label="nan")
    yield Sample(s.integers(2, 3), 0.4, label="integers")


def nan_samples_of_distinct(s):
    yield Sample(s.distinct(4))
    yield Sample(s.distinct(2, 3), axis=1, keepdims=True)
    yield Sample(s.distinct(2, 3, 2), axis=(0, 2))
    yield Sample(with_nan(s), axis=1, grad=0, label="nan")
    yield Sample(np.full((2, 3), np.nan), axis=0, grad=0, label="nothing else")
    yield Sample(s.integers(2, 3), label="integers")


def nanquantile_samples(s):
    for method in ("linear", "lower", "higher", "nearest", "midpoint"):
        yield Sample(with_nan(s), 0.3, axis=1, method=method, grad=0, label=f"nan, {method}")
        yield Sample(s.distinct(5), 0.3, method=method, grad=1, label=method)
    yield Sample(s.distinct(3, 4), [0.25, 0.5], axis=0)
    yield Sample(s.distinct(3, 4), (0.1, 1.0), axis=1, keepdims=True)


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Iterable[Sample]]] = {
    "nansum": nan_samples,
    "nanmean": nan_samples,
    "amax": aminmax_samples,
    "amin": aminmax_samples,
    "aminmax": aminmax_samples,
    "linalg_norm": linalg_norm_samples,
    "norm": norm_samples,
    "matrix_norm": matrix_norm_samples,
    "median": median_samples,
    "mode": mode_samples,
    "quantile": quantile_samples,
    "nanquantile": nanquantile_samples,
    "nanmedian": nan_samples_of_distinct,
}


def norm_errors(s):
    yield ErrorSample(s.real(2, 2), 1, error=ValueError, match=r"say ord= .* p= .*\(2, 2\)")
    yield ErrorSample(s.real(2, 2, 2), 2, (0, 1), error=ValueError, match="over two axes")
    yield ErrorSample(s.real(2, 2), 2, p=2, error=ValueError, match="one order.*2, 2")
    yield ErrorSample(s.real(2, 2), 2, 0, axis=1, error=TypeError, match=r"each once.*\(2, 0\)")


def mode_errors(s):
    yield ErrorSample(s.real(2, 2), axis=2, error=IndexError, match="dim 2 is out of range")
    yield ErrorSample(s.real(2, 2), axis=None, error=TypeError, match="dim= is missing")


def matrix_norm_errors(s):
    yield ErrorSample(s.real(2, 2), 3, error=ValueError, match="Received: 3")
    yield ErrorSample(s.real(2), error=ValueError, match=r"shape \(2,\)")
    yield ErrorSample(s.real(2, 2), axis=(0, 0), error=ValueError, match="more than once")


def quantile_errors(s):
    yield ErrorSample(s.real(3), 1.5, error=ValueError, match="Received: 1.5")
    yield ErrorSample(s.real(3), "half", error=TypeError, match="Received: 'half'")
    yield ErrorSample(s.real(3), 0.5, method="near", error=ValueError, match="Received: 'near'")
    yield ErrorSample(s.real(3), 0.5, axis=1, error=IndexError, match="axis 1 is out of range")


COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Iterable[ErrorSample]]] = {
    "mode": mode_errors,
    "norm": norm_errors,
    "matrix_norm": matrix_norm_errors,
    "quantile": quantile_errors,
}
