"""Distributions, and the divergence of one from another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..variable import Variable

_DIVERGENCES: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


class Distribution:
    """Base of distributions of arrays; members are variables."""

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """The shape of independent draws."""
        raise NotImplementedError

    @property
    def event_shape(self) -> tuple[int, ...]:
        """The shape of what is drawn together."""
        return ()

    def log_prob(self, x: Any) -> Variable:
        """Return the logarithm of the density at x."""
        raise NotImplementedError

    def prob(self, x: Any) -> Any:
        """Return the density at x."""
        from ..functions.maths import exp  # noqa: PLC0415  (functions stand beside distributions)

        return exp(self.log_prob(x))

    def sample(self, sample_shape: Any = ()) -> Variable:
        """Return draws."""
        shape = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        count = 1
        for size in shape:
            count *= size
        drawn = self.sample_n(count)
        return drawn.reshape(shape + self.batch_shape + self.event_shape)

    def sample_n(self, n: int) -> Variable:
        """Return n draws, one below the other."""
        raise NotImplementedError


def register_kl(Dist1: type, Dist2: type) -> Callable[[Any], Any]:
    """Return a decorator for the divergence of one kind of distribution from another."""

    def keep(function: Any) -> Any:
        _DIVERGENCES[Dist1, Dist2] = function
        return function

    return keep


def kl_divergence(dist1: Distribution, dist2: Distribution) -> Any:
    """Return the divergence of two distributions, where it is known."""
    found = _DIVERGENCES.get((type(dist1), type(dist2)))
    if found is None:
        raise NotImplementedError(
            f"the divergence of {type(dist1).__name__} from {type(dist2).__name__} is not known: "
            "define it with register_kl"
        )
    return found(dist1, dist2)
