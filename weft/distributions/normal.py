"""The normal distribution and what has the same two parameters: loc and scale."""

from __future__ import annotations

import math
from typing import Any

from ..core.op import F
from . import constraints
from ._shared import broadcast_all, constrained, standard_normal, unit_uniform
from .distribution import Distribution, ExponentialFamily

HALF_LOG_TWO_PI = 0.5 * math.log(2 * math.pi)
EULER = 0.5772156649015329


class _LocationScale(Distribution):
    """A standard distribution, stretched by scale and moved by loc."""

    arg_constraints = constrained(loc=constraints.real, scale=constraints.positive)
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> Any:
        return constraints.real

    def _standard(self, value: Any) -> Any:
        return (self._value(value) - self.loc) / self.scale


class Normal(_LocationScale, ExponentialFamily):
    """The normal distribution of mean loc and standard deviation scale.

    >>> import weft as wf
    >>> wf.distributions.Normal(0.0, 1.0).log_prob(wf.tensor(0.0))
    tensor(-0.9189)
    """

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    mode = mean

    @property
    def stddev(self) -> Any:
        """Return the standard deviation."""
        return self.scale

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        return self.loc + self.scale * standard_normal(shape, self.loc)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        z = self._standard(value)
        return -0.5 * z * z - F.log(self.scale) - HALF_LOG_TWO_PI

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return F.normal_cdf(self._standard(value))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self.loc + self.scale * F.ndtri(value)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return 0.5 + HALF_LOG_TWO_PI + F.log(self.scale)


class Laplace(_LocationScale):
    """The distribution whose density falls exponentially on both sides of loc."""

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return 2 * self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        u = unit_uniform(self._extended_shape(sample_shape), self.loc) - 0.5
        return self.loc - self.scale * F.sign(u) * F.log1p(-2 * F.abs(u))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return -F.abs(self._standard(value)) - F.log(2 * self.scale)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        z = self._standard(value)
        return 0.5 - 0.5 * F.sign(z) * F.expm1(-F.abs(z))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        p = value - 0.5
        return self.loc - self.scale * F.sign(p) * F.log1p(-2 * F.abs(p))

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return 1 + F.log(2 * self.scale)


class Cauchy(_LocationScale):
    """The ratio of two normal variables; it has neither mean nor variance."""

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.full_like(self.loc, math.nan)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.loc

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return F.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return self.icdf(unit_uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        z = self._standard(value)
        return -math.log(math.pi) - F.log(self.scale) - F.log1p(z * z)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return F.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self.loc + self.scale * F.tan(math.pi * (value - 0.5))

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return math.log(4 * math.pi) + F.log(self.scale)


class Gumbel(_LocationScale):
    """The distribution of maxima: exp(-exp(-z)) is its distribution function."""

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc + self.scale * EULER

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.loc

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return (math.pi**2 / 6) * self.scale**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return self.icdf(unit_uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        z = self._standard(value)
        return -z - F.exp(-z) - F.log(self.scale)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return F.exp(-F.exp(-self._standard(value)))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        return self.loc - self.scale * F.log(-F.log(value))

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return F.log(self.scale) + (1 + EULER)


class _Half(Distribution):
    """The absolute value of a distribution that is symmetric around 0."""

    arg_constraints = constrained(scale=constraints.positive)
    has_rsample = True
    _whole: type[_LocationScale]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        (self.scale,) = broadcast_all(scale)
        self._base = self._whole(F.zeros_like(self.scale), self.scale, validate_args=False)
        super().__init__(self.scale.shape, (), validate_args)

    @property
    def support(self) -> Any:
        return constraints.nonnegative

    @property
    def mode(self) -> Any:
        return F.zeros_like(self.scale)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return F.abs(self._base.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        value = self._value(value)
        inside = self._base.log_prob(F.abs(value)) + math.log(2)
        return F.where(value >= 0, inside, -math.inf)

    def cdf(self, value: Any) -> Any:
        return 2 * self._base.cdf(self._value(value)) - 1

    def icdf(self, value: Any) -> Any:
        return self._base.icdf((value + 1) / 2)

    def entropy(self) -> Any:
        return self._base.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal variable of mean 0."""

    _whole = Normal

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy variable around 0."""

    _whole = Cauchy

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.full_like(self.scale, math.inf)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return F.full_like(self.scale, math.inf)
