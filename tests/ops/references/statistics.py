"""References of statistics, distances and combinations: NumPy, SciPy and plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy.spatial import distance

from weft.core.samples import ErrorSample, Sample, Sampler


def _norm(x, p):
    return np.linalg.norm(np.ravel(x), p)


def _cdist(x1, x2, p=2.0):
    lead = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    out = np.empty((*lead, x1.shape[-2], x2.shape[-2]))
    a = np.broadcast_to(x1, (*lead, *x1.shape[-2:]))
    b = np.broadcast_to(x2, (*lead, *x2.shape[-2:]))
    for place in np.ndindex(out.shape):
        *rest, i, j = place
        out[place] = _norm(a[(*rest, i)] - b[(*rest, j)], p) if x1.shape[-1] else 0.0
    return out


def _moments(root):
    def pair(x, axis=None, correction=1, keepdims=False):
        spread = np.var(x, axis=axis, ddof=correction, keepdims=keepdims)
        return np.sqrt(spread) if root else spread, np.mean(x, axis=axis, keepdims=keepdims)

    return pair


def _kthvalue(x, k, axis=-1, keepdims=False):
    order = np.argsort(x, axis=axis, kind="stable")
    index = np.take(order, [k - 1], axis=axis)
    value = np.take_along_axis(x, index, axis)
    shape = value.shape if keepdims else np.squeeze(value, axis).shape
    return value.reshape(shape), index.reshape(shape)


def _cov(x, correction=1, fweights=None, aweights=None):
    with np.errstate(all="ignore"):
        return np.cov(x, ddof=correction, fweights=fweights, aweights=aweights)


def _combinations(x, r=2, with_replacement=False):
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = [[x[i] for i in row] for row in choose(range(len(x)), r)]
    return np.array(rows, x.dtype).reshape(-1, r) if r else x[:0]


def _split(axis):
    return lambda x, parts: tuple(np.array_split(x, parts, min(axis, x.ndim - 1)))


REFERENCES: dict[str, Callable[..., Any]] = {
    "cdist": _cdist,
    "pdist": lambda x, p=2.0: distance.pdist(x, "minkowski", p=p) if len(x) > 1 else np.zeros(0),
    "dist": lambda x, y, p=2.0: _norm(x - y, p),
    "var_mean": _moments(root=False),
    "std_mean": _moments(root=True),
    "kthvalue": _kthvalue,
    "cov": _cov,
    "corrcoef": np.corrcoef,
    "cartesian_prod": lambda *xs: np.array(list(itertools.product(*xs))) if len(xs) > 1 else xs[0],
    "combinations": _combinations,
    "hsplit": _split(1),
    "vsplit": _split(0),
    "dsplit": _split(2),
    "diagflat": lambda x, offset=0: np.diagflat(x, offset),
}


# -- samples --------------------------------------------------------------------------------------


def _cdist_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), s.real(4, 3))
    yield Sample(s.real(2, 2, 3), s.real(1, 3, 3), label="stacks")
    for p in (1.0, 3.0, float("inf")):
        yield Sample(s.distinct(2, 3), s.distinct(2, 3) + 0.3, p, label=f"p = {p}", grad=1)
    yield Sample(s.real(0, 3), s.real(2, 3), label="no rows")


def _pdist_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(4, 3))
    yield Sample(s.distinct(3, 2), 1.0, label="p = 1", grad=1)
    yield Sample(s.real(1, 3), label="one row")


def _dist_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2, 3), s.real(2, 3))
    yield Sample(s.real(2, 3), s.real(3), 3.0, label="broadcast")


def _moment_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(5))
    yield Sample(s.real(2, 3), axis=1, keepdims=True)
    yield Sample(s.real(2, 3), axis=(0, 1), correction=0)


def _kthvalue_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.distinct(5), 2)
    yield Sample(s.distinct(3, 4), 3, 0)
    yield Sample(s.distinct(3, 4), 1, -1, True, label="keepdims")
    yield Sample(s.integers(2, 3), 1, label="integers")


def _cov_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(3, 4))
    yield Sample(s.real(2, 4), correction=0)
    yield Sample(s.real(4), label="one variable")
    counts, weights = np.array([1, 2, 1, 3]), np.array([0.5, 1.0, 2.0, 1.0])
    yield Sample(s.real(2, 4), fweights=counts, label="counts")
    yield Sample(s.real(2, 4), aweights=weights, label="weights")
    yield Sample(s.real(2, 4), fweights=counts, aweights=weights, label="both")


def _corrcoef_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(3, 5), grad=0, label="values")  # the diagonal stands at the limit 1
    yield Sample(s.real(5), grad=0, label="one variable")


def _cartesian_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(2), s.real(3))
    yield Sample(s.real(2), s.real(1), s.real(2))
    yield Sample(s.real(3), label="one vector")


def _combination_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(4))
    yield Sample(s.real(3), 3)
    yield Sample(s.real(3), 2, True, label="with replacement")
    yield Sample(s.real(2), 3, label="too few")
    yield Sample(s.real(2), 0, label="nothing chosen")


def _split_samples(*shape: int) -> Callable[[Sampler], Iterable[Sample]]:
    def samples(s: Sampler) -> Iterable[Sample]:
        yield Sample(s.real(*shape), 2)
        yield Sample(s.real(*shape), [1, 3], label="places")

    return samples


def _diagflat_samples(s: Sampler) -> Iterable[Sample]:
    yield Sample(s.real(3))
    yield Sample(s.real(2, 2), 1)
    yield Sample(s.real(), -1, label="0-d")


COMPOSITE_SAMPLES = {
    "cdist": _cdist_samples,
    "pdist": _pdist_samples,
    "dist": _dist_samples,
    "var_mean": _moment_samples,
    "std_mean": _moment_samples,
    "kthvalue": _kthvalue_samples,
    "cov": _cov_samples,
    "corrcoef": _corrcoef_samples,
    "cartesian_prod": _cartesian_samples,
    "combinations": _combination_samples,
    "hsplit": _split_samples(2, 4),
    "vsplit": _split_samples(4, 2),
    "dsplit": _split_samples(1, 2, 4),
    "diagflat": _diagflat_samples,
}


def _errors(*samples: ErrorSample) -> Callable[[Sampler], Iterable[ErrorSample]]:
    return lambda s: samples


X = np.zeros((2, 3))

COMPOSITE_ERROR_SAMPLES = {
    "cdist": _errors(
        ErrorSample(X, X[:, :2], error=ValueError, match=r"\(2, 3\) and \(2, 2\)"),
        ErrorSample(X, X[0], error=ValueError, match=r"x2 must be a matrix.*\(3,\)"),
        ErrorSample(X, X, -1.0, error=ValueError, match=r"p=-1.0"),
    ),
    "pdist": _errors(ErrorSample(X[0], error=ValueError, match=r"matrix.*\(3,\)")),
    "kthvalue": _errors(
        ErrorSample(X, 4, error=ValueError, match="from 1 to 3.*k=4"),
        ErrorSample(X, 0, error=ValueError, match="k=0"),
    ),
    "cov": _errors(
        ErrorSample(X[None], error=ValueError, match=r"at most 2.*\(1, 2, 3\)"),
        ErrorSample(X, aweights=X[0, :2], error=ValueError, match="each of 3 observations"),
    ),
    "cartesian_prod": _errors(
        ErrorSample(X, error=ValueError, match=r"tensors\[0\] must be a vector"),
        ErrorSample(error=ValueError, match="Received: none"),
    ),
    "combinations": _errors(
        ErrorSample(X, error=ValueError, match=r"vector.*\(2, 3\)"),
        ErrorSample(X[0], -1, error=ValueError, match="r=-1"),
    ),
    "hsplit": _errors(ErrorSample(X, 2, error=ValueError, match="size 3 is not divisible into 2")),
    "vsplit": _errors(ErrorSample(X[0], 1, error=ValueError, match="at least 2 dim")),
    "dsplit": _errors(ErrorSample(X, 1, error=ValueError, match="at least 3 dim")),
}
