"""Distributions whose quantile is a formula: uniform, exponential, Pareto and their like."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import ArgumentError
from ..core.op import F
from ..ops.random import draw
from . import constraints
from ._shared import broadcast_all, constrained, unit_uniform
from .distribution import Distribution, ExponentialFamily, holds
from .normal import EULER


class _ByQuantile(Distribution):
    """A distribution that is drawn from by its quantile."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        first = getattr(self, next(iter(self.arg_constraints)))
        return self.icdf(unit_uniform(self._extended_shape(sample_shape), first))


class Uniform(Distribution):
    """The uniform distribution over [low, high)."""

    arg_constraints = constrained(
        low=constraints.dependent(is_discrete=False), high=constraints.dependent(is_discrete=False)
    )
    has_rsample = True

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, (), validate_args)

    def _check_parameters(self) -> None:
        if not holds(constraints.less_than(self.high), self.low):
            raise ArgumentError(
                f"Uniform: low must be less than high. Received: {self.low!r} and {self.high!r}"
            )

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.full_like(self.low, math.nan)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        return self.low + draw.rand(shape, dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        inside = (value >= self.low) & (value < self.high)
        return F.where(inside, -F.log(self.high - self.low), -math.inf)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        value = self._value(value)
        return F.clip((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return F.log(self.high - self.low)


class Exponential(ExponentialFamily):
    """The waiting time of events that happen at a rate."""

    arg_constraints = constrained(rate=constraints.positive)
    has_rsample = True

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.nonnegative

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return 1 / self.rate

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.zeros_like(self.rate)

    @property
    def stddev(self) -> Any:
        """Return the standard deviation."""
        return 1 / self.rate

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.rate**-2.0

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        return draw.exponential(shape=shape, dtype=self.rate.dtype) / self.rate

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return F.log(self.rate) - self.rate * self._value(value)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return -F.expm1(-self.rate * self._value(value))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return -F.log1p(-value) / self.rate

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return 1 - F.log(self.rate)


class Pareto(_ByQuantile):
    """The distribution of density proportional to x**-(alpha + 1) for x >= scale."""

    arg_constraints = constrained(scale=constraints.positive, alpha=constraints.positive)

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None) -> None:
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        a = F.maximum(self.alpha, 1)  # infinite up to 1
        return a * self.scale / (a - 1)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.scale

    @property
    def variance(self) -> Any:
        """Return the variance."""
        a = F.maximum(self.alpha, 2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        return F.log(self.alpha / value) + self.alpha * F.log(self.scale / value)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return -F.expm1(self.alpha * F.log(self.scale / self._value(value)))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self.scale * F.exp(-F.log1p(-value) / self.alpha)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return F.log(self.scale / self.alpha) + 1 + 1 / self.alpha


class GeneralizedPareto(_ByQuantile):
    """The distribution of what exceeds a threshold: loc, scale, and concentration of the tail."""

    arg_constraints = constrained(
        loc=constraints.real, scale=constraints.positive, concentration=constraints.real
    )

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.greater_than_eq(self.loc)

    def _tail(self, value: Any) -> Any:
        """Return minus the logarithm of the probability beyond a value."""
        z = (self._value(value) - self.loc) / self.scale
        flat = F.abs(self.concentration) < 1e-6
        c = F.where(flat, 1.0, self.concentration)
        return F.where(flat, z, F.log1p(c * z) / c)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return -(1 + self.concentration) * self._tail(value) - F.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return -F.expm1(-self._tail(value))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        exponential = -F.log1p(-value)
        flat = F.abs(self.concentration) < 1e-6
        c = F.where(flat, 1.0, self.concentration)
        return self.loc + self.scale * F.where(flat, exponential, F.expm1(c * exponential) / c)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        c = self.concentration
        return F.where(c < 1, self.loc + self.scale / (1 - c), math.inf)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.loc

    @property
    def variance(self) -> Any:
        """Return the variance."""
        c = self.concentration
        return F.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.inf)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return F.log(self.scale) + self.concentration + 1


class Weibull(_ByQuantile):
    """The distribution of failure times: scale times an exponential variable to 1/concentration."""

    arg_constraints = constrained(scale=constraints.positive, concentration=constraints.positive)

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.positive

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.scale * F.exp(F.lgamma(1 + 1 / self.concentration))

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        k = F.maximum(self.concentration, 1)
        return self.scale * ((k - 1) / k) ** (1 / k)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        k = self.concentration
        second, first = F.lgamma(1 + 2 / k), F.lgamma(1 + 1 / k)
        return self.scale**2 * (F.exp(second) - F.exp(2 * first))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        ratio = self._value(value) / self.scale
        k = self.concentration
        return F.log(k / self.scale) + (k - 1) * F.log(ratio) - ratio**k

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return -F.expm1(-((self._value(value) / self.scale) ** self.concentration))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self.scale * (-F.log1p(-value)) ** (1 / self.concentration)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        k = self.concentration
        return EULER * (1 - 1 / k) + F.log(self.scale / k) + 1


class Kumaraswamy(_ByQuantile):
    """A distribution over (0, 1) much like the beta, with a formula for its quantile."""

    arg_constraints = constrained(
        concentration1=constraints.positive, concentration0=constraints.positive
    )

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.unit_interval

    def _moment(self, n: int) -> Any:
        a, b = self.concentration1, self.concentration0
        log_beta = F.lgamma(1 + n / a) + F.lgamma(b) - F.lgamma(1 + n / a + b)
        return b * F.exp(log_beta)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self._moment(1)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        a, b = self.concentration1, self.concentration0
        inside = (a >= 1) & (b >= 1) & ((a > 1) | (b > 1))
        found = ((a - 1) / (a * b - 1)) ** (1 / a)
        return F.where(inside, found, math.nan)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self._moment(2) - self.mean**2

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        a, b = self.concentration1, self.concentration0
        return F.log(a * b) + F.xlogy(a - 1, value) + F.xlog1py(b - 1, -(value**a))

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        a, b = self.concentration1, self.concentration0
        return -F.expm1(b * F.log1p(-(self._value(value) ** a)))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        a, b = self.concentration1, self.concentration0
        return (-F.expm1(F.log1p(-value) / b)) ** (1 / a)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        a, b = self.concentration1, self.concentration0
        return (1 - 1 / b) + (1 - 1 / a) * (F.digamma(b + 1) + EULER) - F.log(a) - F.log(b)
