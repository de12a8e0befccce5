"""Distributions of matrices: Wishart's, and of Cholesky factors of correlations."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import ArgumentError
from ..core.op import F
from ..core.shape import broadcast
from . import constraints
from ._shared import as_floats, as_sizes, constrained, gamma_draw, standard_normal
from .distribution import Distribution, ExponentialFamily, holds
from .gamma import Beta
from .multivariate import MultivariateNormal, half_log_det, transposed


class Wishart(ExponentialFamily):
    """The sum of x @ x.T of df normal vectors x, for df > n - 1 not necessarily whole."""

    arg_constraints = constrained(
        df=constraints.positive,
        covariance_matrix=constraints.positive_definite,
        precision_matrix=constraints.positive_definite,
        scale_tril=constraints.lower_cholesky,
    )
    has_rsample = True

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = [m for m in (covariance_matrix, precision_matrix, scale_tril) if m is not None]
        if len(given) != 1:
            raise ArgumentError(
                "Wishart: give exactly one of covariance_matrix, precision_matrix and scale_tril"
            )
        zeros = F.zeros_like(as_floats(given[0])[..., 0])
        self._scale = MultivariateNormal(
            zeros, covariance_matrix, precision_matrix, scale_tril, validate_args=validate_args
        )
        n = self._scale.event_shape[0]
        batch = broadcast(tuple(as_floats(df).shape), self._scale.batch_shape)
        self._scale = self._scale.expand(batch)
        self.df = F.broadcast_to(as_floats(df), batch)
        super().__init__(batch, (n, n), validate_args)

    def _check_parameters(self) -> None:
        check = constraints.greater_than(self.event_shape[-1] - 1)
        if not holds(check, self.df):
            raise ArgumentError(
                f"Wishart: df must be above {self.event_shape[-1] - 1}. Received: {self.df!r}"
            )

    def _parameter_names(self) -> tuple[str, ...]:
        return "df", self._scale._matrix

    def _event_dims(self, name: str) -> int:
        return 0 if name == "df" else 2

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.positive_definite

    @property
    def scale_tril(self) -> Any:
        """Return the Cholesky factor of the scale."""
        return self._scale.scale_tril

    @property
    def covariance_matrix(self) -> Any:
        """Return the scale."""
        return self._scale.covariance_matrix

    @property
    def precision_matrix(self) -> Any:
        """Return the inverse of the scale."""
        return self._scale.precision_matrix

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        factor = self.df - self.event_shape[-1] - 1
        factor = F.where(factor <= 0, math.nan, factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Any:
        """Return the variance."""
        v = self.covariance_matrix
        diagonal = F.diagonal(v, 0, -2, -1)
        outer = diagonal[..., :, None] * diagonal[..., None, :]
        return self.df[..., None, None] * (v * v + outer)

    def rsample(self, sample_shape: Any = ()) -> Any:
        # Bartlett 1933: a lower triangle of normal numbers, with roots of chi-squares as diagonal.
        """Draw differentiably."""
        sizes, n = as_sizes(sample_shape), self.event_shape[-1]
        shape = (*sizes, *self.batch_shape)
        freedom = self.df[..., None] - F.cast(F.iota(n), self.df.dtype)
        squares = 2 * gamma_draw((*shape, n), freedom / 2)
        noise = F.tril(standard_normal((*shape, n, n), self.df), -1)
        factor = F.matmul(self.scale_tril, noise + F.diag_embed(F.sqrt(squares)))
        return F.matmul(factor, transposed(factor))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, n = self._value(value), self.event_shape[-1]
        factor = self.scale_tril
        batch = tuple(value.shape[:-2])
        wide = F.broadcast_to(factor, (*broadcast(batch, self.batch_shape), n, n))
        solved = F.cholesky_solve(F.broadcast_to(value, tuple(wide.shape)), wide)
        trace = F.sum(F.diagonal(solved, 0, -2, -1), -1)
        log_det = F.slogdet(value)[1]
        norm = self.df * (0.5 * n * math.log(2) + half_log_det(factor))
        norm = norm + F.multigammaln(self.df / 2, n)
        return (self.df - n - 1) / 2 * log_det - trace / 2 - norm

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        n, df = self.event_shape[-1], self.df
        places = F.cast(F.iota(n), df.dtype)
        digammas = F.sum(F.digamma((df[..., None] - places) / 2), -1)
        log_det = 2 * half_log_det(self.scale_tril)
        return (
            (n + 1) / 2 * (log_det + n * math.log(2))
            + F.multigammaln(df / 2, n)
            - (df - n - 1) / 2 * digammas
            + df * n / 2
        )


class LKJCholesky(Distribution):
    """Cholesky factors of correlation matrices of density proportional to det**(eta - 1).

    Drawn row by row, by the onion method (Lewandowski, Kurowicka and Joe 2009, section 3).
    """

    arg_constraints = constrained(concentration=constraints.positive)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ArgumentError(f"LKJCholesky: dim must be at least 2. Received: {dim}")
        self.dim = int(dim)
        self.concentration = as_floats(concentration)
        batch = tuple(self.concentration.shape)
        super().__init__(batch, (self.dim, self.dim), validate_args)
        places = F.cast(F.iota(self.dim - 1), self.concentration.dtype)
        marginal = self.concentration[..., None] + 0.5 * (self.dim - 2)
        self._beta = Beta(places * 0.5 + 0.5, marginal - 0.5 * places, validate_args=False)

    def _other_arguments(self) -> dict[str, Any]:
        return {"dim": self.dim}

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.corr_cholesky

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        shape = self._extended_shape(sample_shape)
        squares = self._beta.sample(as_sizes(sample_shape))[..., None]
        noise = F.tril(standard_normal(shape, self.concentration), -1)[..., 1:, :]
        directions = noise / F.sqrt(F.sum(noise * noise, -1, True))
        rows = F.sqrt(squares) * directions
        lower = F.concat([F.zeros_like(rows[..., :1, :]), rows], -2)
        left = F.maximum(1 - F.sum(lower * lower, -1), 1e-38)
        return F.stop_gradient(lower + F.diag_embed(F.sqrt(left)))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, n = self._value(value), self.dim
        diagonal = F.diagonal(value, 0, -2, -1)[..., 1:]
        places = F.cast(n - F.iota(n)[1:] - 1, value.dtype)
        order = 2 * (self.concentration - 1)[..., None] + places
        density = F.sum(order * F.log(diagonal), -1)
        alpha = self.concentration + 0.5 * (n - 1)
        norm = 0.5 * (n - 1) * math.log(math.pi) + F.multigammaln(alpha - 0.5, n - 1)
        return density - (norm - (n - 1) * F.lgamma(alpha))
