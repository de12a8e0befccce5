"""Distributions made of gamma variables; gradients reach all parameters through their draws."""

from __future__ import annotations

import math
from typing import Any

from ..core.errors import ShapeError
from ..core.op import F
from . import constraints
from ._shared import TINY, as_floats, broadcast_all, constrained, gamma_draw, standard_normal
from .distribution import Distribution, ExponentialFamily


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and of a rate.

    >>> import weft as wf
    >>> a = wf.tensor(2.0, requires_grad=True)
    >>> wf.distributions.Gamma(a, 1.0).rsample().backward()
    >>> bool(a.grad > 0)
    True
    """

    arg_constraints = constrained(concentration=constraints.positive, rate=constraints.positive)
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.nonnegative

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.maximum((self.concentration - 1) / self.rate, 0)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.concentration / self.rate**2

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        drawn = gamma_draw(self._extended_shape(sample_shape), self.concentration)
        return F.maximum(drawn / self.rate, TINY)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        a, rate = self.concentration, self.rate
        return F.xlogy(a, rate) + F.xlogy(a - 1, value) - rate * value - F.lgamma(a)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return F.igamma(self.concentration, self.rate * self._value(value))

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        a = self.concentration
        return a - F.log(self.rate) + F.lgamma(a) + (1 - a) * F.digamma(a)


class Chi2(Gamma):
    """The sum of the squares of df standard normal variables."""

    arg_constraints = constrained(df=constraints.positive)

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        half = 0.5 * as_floats(df)
        super().__init__(half, F.full_like(half, 0.5), validate_args)

    @property
    def df(self) -> Any:
        """Return the degrees of freedom."""
        return self.concentration * 2


class InverseGamma(Distribution):
    """The reciprocal of a gamma variable."""

    arg_constraints = constrained(concentration=constraints.positive, rate=constraints.positive)
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        self._base = Gamma(self.concentration, self.rate, validate_args=False)
        super().__init__(self.concentration.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.positive

    @property
    def mean(self) -> Any:
        """Return the mean."""
        a = self.concentration
        return F.where(a > 1, self.rate / (a - 1), math.inf)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.rate / (self.concentration + 1)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        a = self.concentration
        return F.where(a > 2, self.rate**2 / ((a - 1) ** 2 * (a - 2)), math.inf)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return 1 / self._base.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        return self._base.log_prob(1 / value) - 2 * F.log(value)

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        return F.igammac(self.concentration, self.rate / self._value(value))

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        a = self.concentration
        return a + F.log(self.rate) + F.lgamma(a) - (1 + a) * F.digamma(a)


class Dirichlet(ExponentialFamily):
    """The distribution of probabilities: gamma variables over their sum."""

    arg_constraints = constrained(concentration=constraints.independent(constraints.positive, 1))
    has_rsample = True

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        self.concentration = as_floats(concentration)
        if self.concentration.ndim < 1:
            raise ShapeError("Dirichlet: concentration must have at least one dimension")
        *batch, events = self.concentration.shape
        super().__init__(batch, (events,), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.simplex

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.concentration / F.sum(self.concentration, -1, True)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        above = F.maximum(self.concentration - 1, 0)
        found = above / F.sum(above, -1, True)
        below = F.all(self.concentration < 1, -1, True)
        largest = F.max(self.concentration, -1, True)
        peak = F.cast(self.concentration == largest, found.dtype)
        return F.where(below, peak / F.sum(peak, -1, True), found)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        total = F.sum(self.concentration, -1, True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        drawn = gamma_draw(self._extended_shape(sample_shape), self.concentration)
        return drawn / F.sum(drawn, -1, True)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, a = self._value(value), self.concentration
        return F.sum(F.xlogy(a - 1, value), -1) + F.lgamma(F.sum(a, -1)) - F.sum(F.lgamma(a), -1)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        a = self.concentration
        total, k = F.sum(a, -1), a.shape[-1]
        spread = F.sum(F.lgamma(a) - (a - 1) * F.digamma(a), -1)
        return spread - F.lgamma(total) - (k - total) * F.digamma(total)


class Beta(ExponentialFamily):
    """The distribution of a probability: x / (x + y) of two gamma variables."""

    arg_constraints = constrained(
        concentration1=constraints.positive, concentration0=constraints.positive
    )
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.unit_interval

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        a, b = self.concentration1, self.concentration0
        return F.where((a > 1) & (b > 1), (a - 1) / (a + b - 2), math.nan)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        a, b = self.concentration1, self.concentration0
        total = a + b
        return a * b / (total**2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        first = gamma_draw(shape, self.concentration1)
        return first / (first + gamma_draw(shape, self.concentration0))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, a, b = self._value(value), self.concentration1, self.concentration0
        norm = F.lgamma(a + b) - F.lgamma(a) - F.lgamma(b)
        return F.xlogy(a - 1, value) + F.xlog1py(b - 1, -value) + norm

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        a, b = self.concentration1, self.concentration0
        log_beta = F.lgamma(a) + F.lgamma(b) - F.lgamma(a + b)
        both = (a + b - 2) * F.digamma(a + b)
        return log_beta - (a - 1) * F.digamma(a) - (b - 1) * F.digamma(b) + both


class FisherSnedecor(Distribution):
    """The ratio of two chi-square variables over their degrees of freedom."""

    arg_constraints = constrained(df1=constraints.positive, df2=constraints.positive)
    has_rsample = True

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.positive

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        found = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return F.where(self.df1 > 2, found, math.nan)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        a, b = self.df1, self.df2
        found = 2 * b**2 * (a + b - 2) / (a * (b - 2) ** 2 * (b - 4))
        return F.where(b > 4, found, math.nan)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        top = gamma_draw(shape, self.df1 * 0.5) / self.df1
        bottom = gamma_draw(shape, self.df2 * 0.5) / self.df2
        return F.maximum(top / bottom, TINY)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, a, b = self._value(value), self.df1 / 2, self.df2 / 2
        ratio = self.df1 / self.df2
        norm = F.lgamma(a + b) - F.lgamma(a) - F.lgamma(b)
        inside = a * F.log(ratio) + (a - 1) * F.log(value)
        return norm + inside - (a + b) * F.log1p(ratio * value)


class StudentT(Distribution):
    """A normal variable over the root of a chi-square variable over its degrees of freedom."""

    arg_constraints = constrained(
        df=constraints.positive, loc=constraints.real, scale=constraints.positive
    )
    has_rsample = True

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return self.loc

    @property
    def variance(self) -> Any:
        """Return the variance."""
        heavy = F.where(self.df > 1, math.inf, math.nan)
        return F.where(self.df > 2, self.scale**2 * self.df / (self.df - 2), heavy)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        squares = 2 * gamma_draw(shape, self.df * 0.5)
        x = standard_normal(shape, self.loc)
        return self.loc + self.scale * (x * F.rsqrt(squares / self.df))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        y = (self._value(value) - self.loc) / self.scale
        half = self.df / 2
        norm = F.log(self.scale) + 0.5 * F.log(self.df * math.pi)
        norm = norm + F.lgamma(half) - F.lgamma(half + 0.5)
        return -(half + 0.5) * F.log1p(y * y / self.df) - norm

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        half = self.df / 2
        log_beta = F.lgamma(half) + F.lgamma(half * 0 + 0.5) - F.lgamma(half + 0.5)
        spread = (half + 0.5) * (F.digamma(half + 0.5) - F.digamma(half))
        return F.log(self.scale) + spread + 0.5 * F.log(self.df) + log_beta
