"""References of LU, LDL and Householder's form: SciPy's, or the product of the factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from weft.core.samples import ErrorSample, Sample, Sampler
from weft.ops.linalg._samples import definite, regular, symmetric

from .linalg import each


def _each_pair(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of stacks from one that gives two arrays for a matrix."""

    def run(x: Any, *rest: Any, **kwargs: Any) -> Any:
        parts = [each(lambda a, i=i: fn(a, *rest, **kwargs)[i])(x) for i in (0, 1)]
        return tuple(parts)

    return run


def _lu_factor(x: Any, pivot: bool = True) -> Any:
    if pivot:
        factors, pivots = lapack.dgetrf(x)[:2]
        return factors, (pivots + 1).astype(np.int32)
    a = x.copy()
    for j in range(len(a)):
        for i in range(j + 1, len(a)):
            a[i, j] /= a[j, j]
            a[i, j + 1 :] -= a[i, j] * a[j, j + 1 :]
    return a, np.arange(1, len(a) + 1, dtype=np.int32)


def _permutation(pivots: Any, rows: int) -> Any:
    found = []
    for row in pivots.reshape(int(np.prod(pivots.shape[:-1])), pivots.shape[-1]):
        order = list(range(rows))
        for i, other in enumerate(row):
            order[i], order[other - 1] = order[other - 1], order[i]
        found.append(order)
    return np.array(found, np.int64).reshape(*pivots.shape[:-1], rows)


def _lu(x: Any, pivot: bool = True) -> Any:
    return tuple(each(lambda a, i=i: scipy.linalg.lu(a)[i])(x) for i in range(3))


def _unpacked(
    factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    m, n = factors.shape
    k = min(m, n)
    p, nothing = np.eye(m)[:, _permutation(pivots, m)], np.zeros((0, 0))
    lower, upper = np.tril(factors[:, :k], -1) + np.eye(m, k), np.triu(factors[:k])
    parts = (lower, upper) if unpack_data else (nothing, nothing)
    return (p if unpack_pivots else nothing, *parts)


def _matrix_of(factors: Any, pivots: Any) -> Any:
    p, lower, upper = _unpacked(factors, pivots)
    return p @ lower @ upper


def _lu_solve(factors: Any, pivots: Any, b: Any, left: bool = True, adjoint: bool = False) -> Any:
    a = _matrix_of(factors, pivots)
    a = a.T if adjoint else a
    return np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T


def _ldl_factor(x: Any) -> Any:
    if not x.size:
        return x, np.zeros(x.shape[:-1], np.int32)
    factors, pivots, _ = lapack.dsytrf(np.tril(x), lower=1)
    return np.tril(factors), pivots.astype(np.int32)


def _ldl_solve(factors: Any, pivots: Any, b: Any) -> Any:
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    factors, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (factors, b))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    out = [lapack.dsytrs(factors[i], pivots[i], b[i], lower=1)[0] for i in np.ndindex(batch)]
    return np.stack(out).reshape(b.shape)


def _minor_info(x: Any) -> Any:
    found = [
        next((k for k in range(1, len(a) + 1) if np.linalg.eigvalsh(a[:k, :k])[0] <= 0), 0)
        for a in (x[index] for index in np.ndindex(x.shape[:-2]))
    ]
    return np.array(found, np.int32).reshape(x.shape[:-2])


def _householder(x: Any, tau: Any) -> Any:
    m, n = x.shape[-2:]
    q = np.broadcast_to(np.eye(m), (*x.shape[:-2], m, m))
    for i in range(tau.shape[-1]):
        v = np.where(np.arange(m) > i, x[..., i], np.arange(m) == i)
        q = q @ (np.eye(m) - tau[..., i, None, None] * v[..., :, None] * v[..., None, :])
    return q[..., :n]


def _ormqr(x: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    m = x.shape[-2]
    padded = np.concatenate([x, np.zeros((*x.shape[:-1], m - x.shape[-1]))], -1)
    q = _householder(padded, tau)
    q = q.T if transpose else q
    return q @ other if left else other @ q


def _geqrf(x: Any) -> Any:
    return lapack.dgeqrf(x)[:2]


def _inverse(x: Any, check_errors: bool = False) -> Any:
    singular = np.array([np.linalg.matrix_rank(a) < len(a) for a in x])
    inverse = np.where(singular[:, None, None], np.nan, 0.0) * x
    inverse[~singular] = np.linalg.inv(x[~singular])
    return inverse, np.where(singular, x.shape[-1], 0).astype(np.int32)


def _zeros(x: Any) -> Any:
    return np.zeros(x.shape[:-2], np.int32)


REFERENCES: dict[str, Callable[..., Any]] = {
    "lu_factor": _each_pair(_lu_factor),
    "pivots_permutation": _permutation,
    "lu": _lu,
    "lu_unpack": _unpacked,
    "lu_solve": _lu_solve,
    "lu_factor_ex": lambda x, **_: (*_each_pair(_lu_factor)(x), _zeros(x)),
    "ldl_factor": _each_pair(_ldl_factor),
    "ldl_solve": _ldl_solve,
    "ldl_factor_ex": lambda x, **_: (*_each_pair(_ldl_factor)(x), _zeros(x)),
    "cholesky_info": _minor_info,
    "cholesky_ex": lambda x, upper=False, check_errors=False: (
        np.swapaxes(np.linalg.cholesky(x), -1, -2) if upper else np.linalg.cholesky(x),
        _zeros(x),
    ),
    "inv_ex": _inverse,
    "solve_ex": lambda a, b, left=True, check_errors=False: (
        np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T,
        _zeros(a),
    ),
    "cholesky_inverse": lambda factor, upper=False: np.linalg.inv(
        factor.T @ factor if upper else factor @ factor.T
    ),
    "householder_product": _householder,
    "ormqr": _ormqr,
    "geqrf": _each_pair(_geqrf),
    # Their vectors are unique up to signs: tests/ops/test_lowrank.py has the others.
    "svd_lowrank": lambda x, q, niter=2: (x[:, :0], x[0, :0], x.T[:, :0]),
    "pca_lowrank": lambda x, q, center=True: (x[:, :0], x[0, :0], x.T[:, :0]),
    "tensorinv": lambda x, ind=2: np.linalg.tensorinv(x, ind),
    "tensorsolve": lambda a, b, dims=None: np.linalg.tensorsolve(a, b, dims),
}


def _triangle(s: Sampler, n: int) -> Any:
    return np.tril(s.real(n, n)) + 3 * np.eye(n)


def _solve_samples(s: Sampler) -> Any:
    factors, pivots = _lu_factor(regular(s, 3, 3))
    pivots = pivots.astype(np.int32)
    yield Sample(factors, pivots, s.real(3, 2))
    yield Sample(factors, pivots, s.real(3, 2), adjoint=True)
    yield Sample(factors, pivots, s.real(2, 3), left=False)


def _unpack_samples(s: Sampler) -> Any:
    factors, pivots = _lu_factor(regular(s, 3, 2))
    yield Sample(factors, pivots)
    yield Sample(factors, pivots, unpack_data=False, grad=0)
    yield Sample(factors, pivots, unpack_pivots=False)


def _reflector_samples(s: Sampler) -> Any:
    yield Sample(s.real(3, 2), s.positive(2))
    yield Sample(s.real(2, 3, 3), s.positive(2, 2))


def _ormqr_samples(s: Sampler) -> Any:
    yield Sample(s.real(3, 2), s.positive(2), s.real(3, 2))
    yield Sample(s.real(3, 2), s.positive(2), s.real(2, 3), left=False, transpose=True)


def _inverse_samples(s: Sampler) -> Any:
    yield Sample(regular(s, 2, 2, 2))
    yield Sample(np.stack([np.eye(2), np.ones((2, 2))]), grad=0, label="singular")


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "lu": lambda s: [Sample(regular(s, 3, 3)), Sample(regular(s, 2, 3, 2))],
    "lu_unpack": _unpack_samples,
    "lu_solve": _solve_samples,
    "lu_factor_ex": lambda s: [Sample(regular(s, 2, 2, 2))],
    "ldl_factor_ex": lambda s: [Sample(symmetric(s, 3, 3), grad=0)],
    "cholesky_ex": lambda s: [
        Sample(definite(s, 2, 2, 2)),
        Sample(definite(s, 3, 3), upper=True),
    ],
    "inv_ex": _inverse_samples,
    "solve_ex": lambda s: [
        Sample(regular(s, 3, 3), s.real(3, 2)),
        Sample(regular(s, 3, 3), s.real(3)),
        Sample(regular(s, 3, 3), s.real(2, 3), left=False),
    ],
    "cholesky_inverse": lambda s: [
        Sample(_triangle(s, 3)),
        Sample(_triangle(s, 2).T.copy(), upper=True),
    ],
    "householder_product": _reflector_samples,
    "ormqr": _ormqr_samples,
    "svd_lowrank": lambda s: [Sample(s.real(3, 2), 0, grad=0)],
    "pca_lowrank": lambda s: [Sample(s.real(2, 3), 0, grad=0)],
    "tensorinv": lambda s: [
        Sample(regular(s, 4, 4).reshape(2, 2, 4), ind=2),
        Sample(regular(s, 4, 4).reshape(4, 2, 2), ind=1),
    ],
    "tensorsolve": lambda s: [
        Sample(regular(s, 4, 4).reshape(2, 2, 4), s.real(2, 2)),
        Sample(np.moveaxis(regular(s, 4, 4).reshape(2, 2, 4), 2, 0), s.real(2, 2), dims=(0,)),
    ],
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "lu_solve": lambda s: [
        ErrorSample(
            s.real(2, 2), np.array([1, 2]), s.real(2), error=ValueError, match=r"b must be.*\(2,\)"
        ),
        ErrorSample(
            np.eye(2), np.array([1, 9]), s.real(2, 1), error=ValueError, match="pivots must be"
        ),
    ],
    "lu_factor_ex": lambda s: [
        ErrorSample(np.zeros((2, 2)), check_errors=True, error=ValueError, match="info 1")
    ],
    "cholesky_ex": lambda s: [
        ErrorSample(-np.eye(2), check_errors=True, error=ValueError, match="info 1")
    ],
    "householder_product": lambda s: [
        ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match="wider than high"),
        ErrorSample(s.real(3, 2), s.real(3), error=ValueError, match=r"at most 2.*\(3,\)"),
    ],
    "ormqr": lambda s: [
        ErrorSample(s.real(3, 2), s.real(2), s.real(2, 2), error=ValueError, match="does not fit")
    ],
    "tensorinv": lambda s: [
        ErrorSample(s.real(2, 3), ind=1, error=ValueError, match=r"\(2,\) and \(3,\)"),
        ErrorSample(s.real(2, 2), ind=0, error=ValueError, match="at least 1.*0"),
    ],
    "tensorsolve": lambda s: [
        ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"\(2, 3\) and \(2,\)")
    ],
}
