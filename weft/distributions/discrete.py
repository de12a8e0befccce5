"""Distributions over whole numbers."""

from __future__ import annotations

import math
from typing import Any

from ..core.op import F
from ..ops.random import draw
from . import constraints
from ._shared import (
    as_floats,
    broadcast_all,
    constrained,
    enumerated,
    fine_uniform,
    logits_to_probs,
    one_of,
    probs_to_logits,
    unit_uniform,
)
from .distribution import Distribution, ExponentialFamily
from .gamma import Gamma


class Chances(Distribution):
    """A distribution given by probs or by logits; the other follows."""

    _is_binary = True
    _probs: Any
    _logits: Any

    def _take(self, probs: Any, logits: Any) -> Any:
        self._given, value = one_of(probs, logits, type(self).__name__)
        value = as_floats(value)
        setattr(self, f"_{self._given}", value)
        return value

    @property
    def probs(self) -> Any:
        """Return probabilities."""
        if not hasattr(self, "_probs"):
            self._probs = logits_to_probs(self._logits, self._is_binary)
        return self._probs

    @property
    def logits(self) -> Any:
        """Return log-odds of one event, or normalised log-probabilities of categories."""
        if not hasattr(self, "_logits"):
            self._logits = probs_to_logits(self._probs, self._is_binary)
        return self._logits


class _Trial(Chances):
    """What one trial, which succeeds by a chance, decides."""

    arg_constraints = constrained(probs=constraints.unit_interval, logits=constraints.real)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._take(probs, logits).shape, (), validate_args)


class _Trials(Chances):
    """What many trials decide: total_count of them, or of those that fail."""

    total_count: Any

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        value = self._take(probs, logits)
        self.total_count, value = broadcast_all(total_count, value)
        setattr(self, f"_{self._given}", value)
        super().__init__(value.shape, (), validate_args)


class Bernoulli(_Trial, ExponentialFamily):
    """One with a probability, else zero."""

    has_enumerate_support = True

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.boolean

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.probs

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        found = F.cast(self.probs >= 0.5, self.probs.dtype)
        return F.where(self.probs == 0.5, math.nan, found)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        shape = self._extended_shape(sample_shape)
        return draw.bernoulli(F.stop_gradient(self.probs), shape)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        logits = self.logits
        return value * logits - F.softplus(logits)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return F.softplus(self.logits) - self.probs * self.logits

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values along a new first axis."""
        return enumerated(2, self.batch_shape, self.probs.dtype, expand)


class Geometric(_Trial):
    """How many failures come before the first success."""

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return 1 / self.probs - 1

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        probs = F.stop_gradient(self.probs)
        u = unit_uniform(self._extended_shape(sample_shape), probs)
        return F.floor(F.log(u) / F.log1p(-probs))

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return F.xlog1py(self._value(value), -self.probs) + F.log(self.probs)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return (F.softplus(self.logits) - self.probs * self.logits) / self.probs


class Binomial(_Trials):
    """How many of total_count trials succeed."""

    arg_constraints = constrained(
        total_count=constraints.nonnegative_integer,
        probs=constraints.unit_interval,
        logits=constraints.real,
    )

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        super().__init__(total_count, probs, logits, validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.minimum(F.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        probs = F.stop_gradient(self.probs)
        u = fine_uniform(self._extended_shape(sample_shape))
        drawn = F.binomial_draw(F.stop_gradient(self.total_count), probs, u)
        return F.cast(drawn, probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, n = self._value(value), self.total_count
        ways = F.lgamma(n + 1) - F.lgamma(value + 1) - F.lgamma(n - value + 1)
        return ways + value * self.logits - n * F.softplus(self.logits)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        values = self.enumerate_support(expand=False)
        log_prob = self.log_prob(values)
        return -F.sum(F.exp(log_prob) * log_prob, 0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values along a new first axis."""
        count = int(F.max(self.total_count).item())
        if bool((F.min(self.total_count) != count).item()):
            raise NotImplementedError("Binomial: total_count must be one number for all")
        return enumerated(1 + count, self.batch_shape, self.probs.dtype, expand)


class NegativeBinomial(_Trials):
    """How many successes come before total_count failures."""

    arg_constraints = constrained(
        total_count=constraints.greater_than_eq(0),
        probs=constraints.half_open_interval(0.0, 1.0),
        logits=constraints.real,
    )

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.total_count * F.exp(self.logits)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.maximum(F.floor((self.total_count - 1) * F.exp(self.logits)), 0)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.mean / F.sigmoid(-self.logits)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        rate = Gamma(self.total_count, F.exp(-self.logits), validate_args=False)
        drawn = rate.sample(sample_shape)
        return F.cast(F.poisson_draw(drawn, fine_uniform(tuple(drawn.shape))), drawn.dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value, n = self._value(value), self.total_count
        chances = n * F.log_sigmoid(-self.logits) + value * F.log_sigmoid(self.logits)
        ways = F.lgamma(n + value) - F.lgamma(1 + value) - F.lgamma(n)
        return chances + F.where(n + value == 0, 0.0, ways)


class Poisson(ExponentialFamily):
    """How many events of a rate happen in a unit of time."""

    arg_constraints = constrained(rate=constraints.nonnegative)

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.nonnegative_integer

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.rate

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.floor(self.rate)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        rate = F.stop_gradient(self.rate)
        u = fine_uniform(self._extended_shape(sample_shape))
        return F.cast(F.poisson_draw(rate, u), rate.dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        return F.xlogy(value, self.rate) - self.rate - F.lgamma(value + 1)
