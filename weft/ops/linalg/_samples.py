"""Sample matrices with the properties that factorisations need, well away from degeneracy."""

from __future__ import annotations

import numpy as np

from ...core.dtype import Array
from ...core.samples import Sampler


def orthonormal(s: Sampler, *shape: int) -> Array:
    """Return matrices with orthonormal columns (rows if there are more columns)."""
    *batch, m, n = shape
    big, small = max(m, n), min(m, n)
    q = np.linalg.qr(s.real(*batch, big, small))[0]
    return q if m >= n else np.ascontiguousarray(np.swapaxes(q, -1, -2))


def spectrum(s: Sampler, *shape: int) -> Array:
    """Return values that differ by at least 0.5, the smallest of them about one."""
    return 1.0 + np.arange(shape[-1]) + s.rng.uniform(0.0, 0.5, shape)


def regular(s: Sampler, *shape: int) -> Array:
    """Return matrices of full rank with distinct singular values, none small."""
    *batch, m, n = shape
    rank = min(m, n)
    u, v = orthonormal(s, *batch, m, rank), orthonormal(s, *batch, rank, n)
    return u * spectrum(s, *batch, rank)[..., None, :] @ v


def definite(s: Sampler, *shape: int) -> Array:
    """Return symmetric positive definite matrices with distinct eigenvalues."""
    q = orthonormal(s, *shape)
    return q * spectrum(s, *shape[:-1])[..., None, :] @ np.swapaxes(q, -1, -2)


def symmetric(s: Sampler, *shape: int) -> Array:
    """Return symmetric matrices with distinct eigenvalues of both signs."""
    return definite(s, *shape) - 2.25 * np.eye(shape[-1])
