"""Continuous relaxations of discrete distributions, and the continuous Bernoulli.

Maddison et al. 2017 (arXiv:1611.00712); Jang et al. 2017 (arXiv:1611.01144).
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from ..core.op import F
from . import constraints
from ._shared import (
    as_floats,
    clamp_probs,
    constrained,
    unit_uniform,
)
from .categorical import OverCategories
from .composed import TransformedDistribution
from .discrete import Chances
from .distribution import Distribution
from .number_transforms import ExpTransform, SigmoidTransform
from .transforms import Transform


class LogitRelaxedBernoulli(Chances):
    """The logit of a relaxed Bernoulli variable."""

    arg_constraints = constrained(probs=constraints.unit_interval, logits=constraints.real)
    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = as_floats(temperature)
        super().__init__(self._take(probs, logits).shape, (), validate_args)

    def _other_arguments(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs)
        u = clamp_probs(unit_uniform(shape, probs))
        noise = F.log(u) - F.log1p(-u)
        return (noise + F.log(probs) - F.log1p(-probs)) / self.temperature

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        apart = self.logits - value * self.temperature
        return F.log(self.temperature) + apart - 2 * F.softplus(apart)


class ExpRelaxedCategorical(OverCategories):
    """The logarithm of a relaxed one-hot variable."""

    has_rsample = True

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = as_floats(temperature)
        super().__init__(probs, logits, validate_args)

    def _other_arguments(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real_vector

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(unit_uniform(shape, self.logits))
        scores = (self.logits - F.log(-F.log(u))) / self.temperature
        return scores - F.logsumexp(scores, -1, True)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, k = self._value(value), self.event_shape[0]
        scale = math.lgamma(k) + (k - 1) * F.log(self.temperature)
        score = self.logits - value * self.temperature
        return F.sum(score - F.logsumexp(score, -1, True), -1) + scale


class _Relaxed(TransformedDistribution):
    """A discrete distribution that gradients go through: a function of unbounded noise.

    A class gives the distribution of the noise and the transform.
    """

    _noise: ClassVar[Any]
    _transform: ClassVar[type[Transform]]

    def __init__(
        self,
        temperature: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        noise = self._noise(temperature, probs, logits, validate_args)
        self._relaxed, self._given = noise, noise._given
        super().__init__(noise, self._transform(), validate_args)

    def expand(self, batch_shape: Any) -> Any:
        """Return the distribution expanded to a batch shape."""
        return Distribution.expand(self, batch_shape)

    def _other_arguments(self) -> dict[str, Any]:
        return {"temperature": self.temperature}

    @property
    def temperature(self) -> Any:
        """Return the temperature."""
        return self._relaxed.temperature

    @property
    def probs(self) -> Any:
        """Return probabilities: of one, or of the categories."""
        return self._relaxed.probs

    @property
    def logits(self) -> Any:
        """Return log-odds of one, or normalised log-probabilities of the categories."""
        return self._relaxed.logits


class RelaxedBernoulli(_Relaxed):
    """A variable in (0, 1) that is the nearer to 0 or 1 the lower the temperature is."""

    arg_constraints = LogitRelaxedBernoulli.arg_constraints
    _noise, _transform = LogitRelaxedBernoulli, SigmoidTransform


class RelaxedOneHotCategorical(_Relaxed):
    """Probabilities that are the nearer to one-hot the lower the temperature is."""

    arg_constraints = ExpRelaxedCategorical.arg_constraints
    _noise, _transform = ExpRelaxedCategorical, ExpTransform


class ContinuousBernoulli(Chances):
    """The density over [0, 1] proportional to probs**x (1 - probs)**(1 - x).

    Loaiza-Ganem and Cunningham 2019 (arXiv:1907.06845). Near probs = 1/2, inside `lims`, where
    formulas cancel, Taylor expansions take their place.
    """

    arg_constraints = constrained(probs=constraints.unit_interval, logits=constraints.real)
    has_rsample = True

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        value = self._take(probs, logits)
        self._lims = lims
        if self._given == "probs":
            self._probs = clamp_probs(value)
        super().__init__(value.shape, (), validate_args)

    def _other_arguments(self) -> dict[str, Any]:
        return {"lims": self._lims}

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.unit_interval

    def _split(self) -> tuple[Any, Any]:
        """Return where formulas hold, and probabilities that are safe for them."""
        low, high = self._lims
        outside = (self.probs <= low) | (self.probs > high)
        return outside, F.where(outside, self.probs, low)

    def _log_norm(self) -> Any:
        outside, p = self._split()
        span = F.log1p(-p) - F.log(p)
        found = F.log(F.abs(span)) - F.log(F.abs(1 - 2 * p))
        x = (self.probs - 0.5) ** 2
        return F.where(outside, found, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        outside, p = self._split()
        found = p / (2 * p - 1) + 1 / (F.log1p(-p) - F.log(p))
        x = self.probs - 0.5
        return F.where(outside, found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x * x) * x)

    @property
    def stddev(self) -> Any:
        """Return the standard deviation."""
        return F.sqrt(self.variance)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        outside, p = self._split()
        span = F.log1p(-p) - F.log(p)
        found = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / span**2
        x = (self.probs - 0.5) ** 2
        return F.where(outside, found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        return self.icdf(unit_uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        return value * self.logits - F.softplus(self.logits) + self._log_norm()

    def cdf(self, value: Any) -> Any:
        """Return the probability of at most these values."""
        value = self._value(value)
        outside, p = self._split()
        found = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inside = F.where(outside, found, value)
        return F.where(value <= 0, 0.0, F.where(value >= 1, 1.0, inside))

    def icdf(self, value: Any) -> Any:
        """Return the values below which such probabilities lie."""
        outside, p = self._split()
        part = F.log1p(-p + value * (2 * p - 1)) - F.log1p(-p)
        return F.where(outside, part / (F.log(p) - F.log1p(-p)), value)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        from_probs = F.log1p(-clamp_probs(self.probs))
        return self.mean * -self.logits - self._log_norm() - from_probs
