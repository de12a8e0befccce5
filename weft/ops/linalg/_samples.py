"""Sample matrices with the properties that factorisations need, well away from degeneracy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...core.dtype import Array
from ...core.samples import ErrorSample, Sample, Sampler


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


def square_samples(s: Sampler) -> Iterator[Sample]:
    """Yield stacks of regular matrices of all kinds."""
    for shape in ((3, 3), (2, 2), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)):
        yield Sample(regular(s, *shape))
    yield Sample(regular(s, 3, 3).T, label="non-contiguous")
    yield Sample(np.array([[2, 1], [1, 3]]), grad=0, label="integers")


def square_errors(s: Sampler) -> Iterator[ErrorSample]:
    """Yield what is no stack of square matrices."""
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"square.*\(2, 3\)")
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
