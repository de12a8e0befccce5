"""Normal, Bernoulli, categorical and even distributions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.op import F
from ...ops.random.draw import rand, randn
from ..variable import Variable, as_tensor, as_variable, wrapped
from .base import Distribution, kl_divergence, register_kl


class Normal(Distribution):
    """Normal distributions of given means and deviations."""

    def __init__(self, loc: Any, scale: Any = None, log_scale: Any = None) -> None:
        if (scale is None) == (log_scale is None):
            raise ValueError("give either scale or log_scale, and not both")
        self.loc = as_variable(loc)
        if scale is None:
            self.log_scale: Any = as_variable(log_scale)
            self.scale: Any = wrapped(F.exp(self.log_scale._tensor))
        else:
            self.scale = as_variable(scale)
            self.log_scale = wrapped(F.log(self.scale._tensor))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        return self.loc.shape

    @property
    def mean(self) -> Variable:
        """The means."""
        return self.loc

    @property
    def variance(self) -> Any:
        """The squared deviations."""
        return self.scale**2

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return self.log_scale + 0.5 * math.log(2 * math.pi * math.e)

    def log_prob(self, x: Any) -> Any:
        """Return the logarithm of the density at x."""
        z = (as_tensor(x) - self.loc._tensor) / self.scale._tensor
        return wrapped(F.square(z) * -0.5 - self.log_scale._tensor - 0.5 * math.log(2 * math.pi))

    def sample_n(self, n: int) -> Any:
        """Return n draws, through which gradients reach mean and deviation."""
        mean = self.loc._tensor
        noise = randn(n, *mean.shape, dtype=mean.dtype)
        return wrapped(noise * self.scale._tensor + mean)


class Uniform(Distribution):
    """Even distributions between two bounds."""

    def __init__(self, low: Any, high: Any) -> None:
        self.low, self.high = as_variable(low), as_variable(high)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        return self.low.shape

    def log_prob(self, x: Any) -> Any:
        """Return the logarithm of the density at x."""
        value, low, high = as_tensor(x), self.low._tensor, self.high._tensor
        inside = F.logical_and(value >= low, value < high)
        return wrapped(F.where(inside, -F.log(high - low), -math.inf))

    def sample_n(self, n: int) -> Any:
        """Return n draws."""
        low = self.low._tensor
        return wrapped(rand(n, *low.shape, dtype=low.dtype) * (self.high._tensor - low) + low)


class Bernoulli(Distribution):
    """Zeros and ones with given probabilities or logits."""

    def __init__(self, p: Any = None, logit: Any = None, binary_check: bool = False) -> None:
        if (p is None) == (logit is None):
            raise ValueError("give either p or logit, and not both")
        if logit is None:
            self.p: Any = as_variable(p)
            self.logit: Any = wrapped(F.log(self.p._tensor) - F.log1p(-self.p._tensor))
        else:
            self.logit = as_variable(logit)
            self.p = wrapped(F.sigmoid(self.logit._tensor))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        return tuple(self.logit.shape)

    @property
    def mean(self) -> Variable:
        """The probabilities of one."""
        return self.p

    def log_prob(self, x: Any) -> Any:
        """Return the logarithm of the probability of x."""
        logit = self.logit._tensor
        return wrapped(as_tensor(x) * logit - F.softplus(logit, 1.0, 1e9))

    def sample_n(self, n: int) -> Any:
        """Return n draws."""
        p = self.p._tensor.detach()
        return wrapped(F.cast(rand(n, *p.shape, dtype=p.dtype) < p, p.dtype))


class Categorical(Distribution):
    """Numbers of classes with given probabilities or scores, along the last axis."""

    def __init__(self, p: Any = None, logit: Any = None) -> None:
        if (p is None) == (logit is None):
            raise ValueError("give either p or logit, and not both")
        if logit is None:
            self.p: Any = as_variable(p)
            self.log_p: Any = wrapped(F.log(self.p._tensor))
        else:
            self.log_p = wrapped(F.log_softmax(as_tensor(logit), -1))
            self.p = wrapped(F.exp(self.log_p._tensor))

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        return tuple(self.p.shape[:-1])

    @property
    def entropy(self) -> Any:
        """The entropies."""
        return wrapped(-F.sum(self.p._tensor * self.log_p._tensor, -1))

    def log_prob(self, x: Any) -> Any:
        """Return the logarithm of the probability of classes."""
        number = F.expand_dims(F.cast(as_tensor(x), np.int64), -1)
        return wrapped(F.squeeze(F.take_along_axis(self.log_p._tensor, number, -1), -1))

    def sample_n(self, n: int) -> Any:
        """Return n draws."""
        scores = self.log_p._tensor.detach()
        noise = -F.log(-F.log(rand(n, *scores.shape, dtype=scores.dtype) + 1e-20) + 1e-20)
        return wrapped(F.cast(F.argmax(scores + noise, -1), np.int32))


class Independent(Distribution):
    """A distribution whose last axes are drawn together."""

    def __init__(self, distribution: Any, reinterpreted_batch_ndims: int | None = None) -> None:
        self.distribution = distribution
        count = len(distribution.batch_shape) - 1
        self._axes = count if reinterpreted_batch_ndims is None else reinterpreted_batch_ndims

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        shape = self.distribution.batch_shape
        return shape[: len(shape) - self._axes]

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of what is drawn together."""
        shape = self.distribution.batch_shape
        return shape[len(shape) - self._axes :] + self.distribution.event_shape

    @property
    def mean(self) -> Any:
        """The means."""
        return self.distribution.mean

    def log_prob(self, x: Any) -> Any:
        """Return the logarithm of the density at x, summed over what is drawn together."""
        return _summed(self.distribution.log_prob(x), self._axes)

    def sample_n(self, n: int) -> Variable:
        """Return n draws."""
        return self.distribution.sample_n(n)


def _summed(variable: Variable, axes: int) -> Any:
    return wrapped(F.sum(variable._tensor, tuple(range(-axes, 0)))) if axes else variable


@register_kl(Normal, Normal)
def _normal(p: Normal, q: Normal) -> Any:
    ratio = F.square(p.scale._tensor / q.scale._tensor)
    gap = F.square((p.loc._tensor - q.loc._tensor) / q.scale._tensor)
    return wrapped((ratio + gap - 1 - F.log(ratio)) * 0.5)


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Bernoulli, q: Bernoulli) -> Any:
    a, b = p.logit._tensor, q.logit._tensor
    return wrapped(F.sigmoid(a) * (a - b) - F.softplus(a, 1.0, 1e9) + F.softplus(b, 1.0, 1e9))


@register_kl(Categorical, Categorical)
def _categorical(p: Categorical, q: Categorical) -> Any:
    return wrapped(F.sum(p.p._tensor * (p.log_p._tensor - q.log_p._tensor), -1))


@register_kl(Independent, Independent)
def _independent(p: Independent, q: Independent) -> Any:
    return _summed(kl_divergence(p.distribution, q.distribution), p._axes)
