"""Distributions over categories: one of them, as a number or one-hot, and counts of several."""

from __future__ import annotations

import math
from typing import Any

from ..core.dtype import int64
from ..core.errors import ShapeError
from ..core.op import F
from ..core.shape import broadcast
from ..ops.random import draw
from . import constraints
from ._shared import as_sizes, clamp_probs, constrained, enumerated
from .discrete import Binomial, Chances
from .distribution import Distribution


class Categorical(Chances):
    """One of K categories; probs or logits have shape (..., K)."""

    arg_constraints = constrained(probs=constraints.simplex, logits=constraints.real_vector)
    has_enumerate_support = True
    _is_binary = False

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        value = self._take(probs, logits)
        if value.ndim < 1:
            raise ShapeError(f"Categorical: {self._given} must have at least one dimension")
        if self._given == "probs":
            self._probs = value / F.sum(value, -1, True)
        else:
            self._logits = value - F.logsumexp(value, -1, True)
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def param_shape(self) -> Any:
        """Return the shape of probs."""
        return (*self.batch_shape, self._num_events)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return F.full_like(self.probs[..., 0], math.nan)

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.argmax(self.probs, -1)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return F.full_like(self.probs[..., 0], math.nan)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        shape = self._extended_shape(sample_shape)
        logits = F.broadcast_to(F.stop_gradient(self.logits), (*shape, self._num_events))
        return draw.categorical(logits)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        index = F.cast(self._value(value), int64)
        logits = self.logits
        shape = F.broadcast_to(index, broadcast(tuple(index.shape), tuple(logits.shape[:-1])))
        spread = F.broadcast_to(logits, (*shape.shape, self._num_events))
        return F.take_along_axis(spread, shape[..., None], -1)[..., 0]

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        logits = F.maximum(self.logits, -3e38)  # 0 times minus infinity is 0 here
        return -F.sum(logits * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values along a new first axis."""
        return enumerated(self._num_events, self.batch_shape, int64, expand)


class OverCategories(Distribution):
    """A distribution over vectors that have a place for each of K categories."""

    arg_constraints = constrained(probs=constraints.simplex, logits=constraints.real_vector)

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=False)
        self._given = self._categorical._given
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args)

    @property
    def probs(self) -> Any:
        """Return probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        """Return normalised log-probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        """Return the shape of probs."""
        return self._categorical.param_shape


class OneHotCategorical(OverCategories):
    """One of K categories, as a vector with a one at its place."""

    has_enumerate_support = True

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.one_hot

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.probs

    @property
    def mode(self) -> Any:
        """Return the most probable value."""
        return F.cast(F.one_hot(F.argmax(self.probs, -1), self.event_shape[0]), self.probs.dtype)

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        drawn = self._categorical.sample(sample_shape)
        return F.cast(F.one_hot(drawn, self.event_shape[0]), self.probs.dtype)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        return F.sum(self._value(value) * F.maximum(self.logits, -3e38), -1)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        """Return all values along a new first axis."""
        n = self.event_shape[0]
        unit = F.cast(F.iota(n)[:, None] == F.iota(n), self.probs.dtype)
        values = F.reshape(unit, (n, *(1,) * len(self.batch_shape), n))
        return F.broadcast_to(values, (n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot draws through which gradients reach probs as if they were the draw."""

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Draw differentiably."""
        probs = self.probs
        return self.sample(sample_shape) + (probs - F.stop_gradient(probs))


class Multinomial(OverCategories):
    """How often each of K categories occurs in total_count draws."""

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = int(total_count)
        super().__init__(probs, logits, validate_args)

    def _other_arguments(self) -> dict[str, Any]:
        return {"total_count": self.total_count}

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        """Return the variance."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        places = self._categorical.sample((self.total_count, *as_sizes(sample_shape)))
        hot = F.cast(F.one_hot(places, self.event_shape[0]), self.probs.dtype)
        return F.sum(hot, 0)

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        value = self._value(value)
        ways = F.lgamma(F.sum(value, -1) + 1) - F.sum(F.lgamma(value + 1), -1)
        logits = F.where((value == 0) & (self.logits == -math.inf), 0.0, self.logits)
        return ways + F.sum(logits * value, -1)

    def entropy(self) -> Any:
        """Return the entropy in nats."""
        n, probs = self.total_count, clamp_probs(self.probs)
        counts = Binomial(n, probs, validate_args=False)
        values = F.reshape(F.cast(F.iota(n + 1), probs.dtype), (n + 1, *(1,) * probs.ndim))
        weights = F.exp(counts.log_prob(values))
        spread = F.sum(weights * F.lgamma(values + 1), (0, -1))
        return n * self._categorical.entropy() - math.lgamma(n + 1) + spread
