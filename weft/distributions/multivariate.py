"""Normal distributions of vectors."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import ArgumentError, ShapeError
from ..core.op import F
from ..core.shape import broadcast
from . import constraints
from ._shared import as_floats, constrained, standard_normal
from .distribution import Distribution


def transposed(x: Any) -> Any:
    """Return matrices with rows and columns exchanged."""
    return F.swapaxes(x, -1, -2)


def half_log_det(factor: Any) -> Any:
    """Return half the logarithm of the determinant of L @ L.T."""
    return F.sum(F.log(F.diagonal(factor, 0, -2, -1)), -1)


def mahalanobis(factor: Any, x: Any) -> Any:
    """Return |L^-1 x|**2 for vectors; batches broadcast."""
    batch = broadcast(tuple(factor.shape[:-2]), tuple(x.shape[:-1]))
    n = x.shape[-1]
    wide = F.broadcast_to(factor, (*batch, n, n))
    solved = F.triangular_solve(wide, F.broadcast_to(x, (*batch, n))[..., None])
    return F.sum(solved[..., 0] ** 2, -1)


def precision_to_factor(precision: Any) -> Any:
    """Return the Cholesky factor of the inverse of a matrix."""
    flipped = F.cholesky(F.flip(precision, (-2, -1)))
    upper = transposed(F.flip(flipped, (-2, -1)))
    unit = _identity(precision.shape[-1], precision)
    return F.triangular_solve(upper, F.broadcast_to(unit, tuple(upper.shape)))


def _identity(n: int, like: Any) -> Any:
    return F.cast(F.iota(n)[:, None] == F.iota(n), like.dtype)


class MultivariateNormal(Distribution):
    """The normal distribution of vectors, by covariance, precision or Cholesky factor.

    >>> import weft as wf
    >>> normal = wf.distributions.MultivariateNormal(wf.zeros(2), wf.eye(2))
    >>> normal.log_prob(wf.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = constrained(
        loc=constraints.real_vector,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )
    has_rsample = True

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        loc = as_floats(loc)
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        named = [(name, as_floats(m)) for name, m in given.items() if m is not None]
        if len(named) != 1 or loc.ndim < 1:
            raise ArgumentError(
                "MultivariateNormal: give loc of at least one dimension and exactly one of "
                "covariance_matrix, precision_matrix and scale_tril"
            )
        self._matrix, matrix = named[0]
        if matrix.ndim < 2 or tuple(matrix.shape[-2:]) != (loc.shape[-1],) * 2:
            raise ShapeError(
                f"MultivariateNormal: {self._matrix} must be (..., n, n) for loc (..., n). "
                f"Received: {tuple(matrix.shape)} and {tuple(loc.shape)}"
            )
        batch = broadcast(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        n = loc.shape[-1]
        self.loc = F.broadcast_to(loc, (*batch, n))
        self._given_matrix = F.broadcast_to(matrix, (*batch, n, n))
        super().__init__(batch, (n,), validate_args)
        self._factor = self._cholesky()

    def _cholesky(self) -> Any:
        if self._matrix == "scale_tril":
            return self._given_matrix
        if self._matrix == "covariance_matrix":
            return F.cholesky(self._given_matrix)
        return precision_to_factor(self._given_matrix)

    def _parameter_names(self) -> tuple[str, ...]:
        return "loc", self._matrix

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real_vector

    def _derived(self, name: str) -> Any:
        if name == self._matrix:
            return self._given_matrix
        factor = self._factor
        if name == "scale_tril":
            return factor
        if name == "covariance_matrix":
            return F.matmul(factor, transposed(factor))
        return F.cholesky_inverse(factor)

    @property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the covariance."""
        return self._derived("scale_tril")

    @property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        return self._derived("covariance_matrix")

    @property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        return self._derived("precision_matrix")

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return F.sum(self._factor**2, -1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        z = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + F.matmul(self._factor, z[..., None])[..., 0]

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        distance = mahalanobis(self._factor, self._value(value) - self.loc)
        n = self.event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - half_log_det(self._factor)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        n = self.event_shape[0]
        return 0.5 * n * (1 + math.log(2 * math.pi)) + half_log_det(self._factor)


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of covariance W @ W.T + diag(D), with few columns in W.

    Everything is computed with a matrix of the size of W.T @ W (Woodbury's identity).
    """

    arg_constraints = constrained(
        loc=constraints.real_vector,
        cov_factor=constraints.independent(constraints.real, 2),
        cov_diag=constraints.independent(constraints.positive, 1),
    )
    has_rsample = True

    def __init__(
        self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None
    ) -> None:
        loc, factor, diagonal = as_floats(loc), as_floats(cov_factor), as_floats(cov_diag)
        n = loc.shape[-1] if loc.ndim else 0
        if factor.ndim < 2 or factor.shape[-2] != n or diagonal.shape[-1:] != loc.shape[-1:]:
            raise ShapeError(
                "LowRankMultivariateNormal: loc (..., n), cov_factor (..., n, k) and cov_diag "
                f"(..., n) are needed. Received: {tuple(loc.shape)}, {tuple(factor.shape)} and "
                f"{tuple(diagonal.shape)}"
            )
        batch = broadcast(
            tuple(loc.shape[:-1]), tuple(factor.shape[:-2]), tuple(diagonal.shape[:-1])
        )
        self.loc = F.broadcast_to(loc, (*batch, n))
        self.cov_factor = F.broadcast_to(factor, (*batch, *factor.shape[-2:]))
        self.cov_diag = F.broadcast_to(diagonal, (*batch, n))
        super().__init__(batch, (n,), validate_args)
        scaled = transposed(self.cov_factor / self.cov_diag[..., None])
        inner = F.matmul(scaled, self.cov_factor)
        self._capacitance = F.cholesky(inner + _identity(inner.shape[-1], inner))

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real_vector

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return F.sum(self.cov_factor**2, -1) + self.cov_diag

    @property
    def covariance_matrix(self) -> Any:
        """Return the covariance."""
        low = F.matmul(self.cov_factor, transposed(self.cov_factor))
        return low + F.diag_embed(self.cov_diag)

    @property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the covariance."""
        return F.cholesky(self.covariance_matrix)

    @property
    def precision_matrix(self) -> Any:
        """Return the inverse of the covariance."""
        scaled = transposed(self.cov_factor / self.cov_diag[..., None])
        solved = F.triangular_solve(self._capacitance, scaled)
        return F.diag_embed(1 / self.cov_diag) - F.matmul(transposed(solved), solved)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        low = standard_normal((*shape[:-1], self.cov_factor.shape[-1]), self.loc)
        own = standard_normal(shape, self.loc)
        moved = F.matmul(self.cov_factor, low[..., None])[..., 0]
        return self.loc + moved + F.sqrt(self.cov_diag) * own

    def half_log_det(self) -> Any:
        """Return half the logarithm of the determinant of the covariance."""
        return half_log_det(self._capacitance) + 0.5 * F.sum(F.log(self.cov_diag), -1)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        apart = self._value(value) - self.loc
        scaled = apart / self.cov_diag
        inner = F.matmul(transposed(self.cov_factor), scaled[..., None])[..., 0]
        distance = F.sum(apart * scaled, -1) - mahalanobis(self._capacitance, inner)
        n = self.event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + distance) - self.half_log_det()

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        n = self.event_shape[0]
        return 0.5 * n * (1 + math.log(2 * math.pi)) + self.half_log_det()
