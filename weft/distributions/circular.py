"""Von Mises's distribution of angles."""

from __future__ import annotations

import math
from typing import Any

from ..core.op import F
from . import constraints
from ._shared import broadcast_all, constrained, fine_uniform
from .distribution import Distribution


class VonMises(Distribution):
    """The distribution of angles, in [-pi, pi), that is nearest to a normal one."""

    arg_constraints = constrained(loc=constraints.real, concentration=constraints.positive)

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    @property
    def support(self) -> Any:
        """Return the constraint on values."""
        return constraints.real

    @property
    def mean(self) -> Any:
        """Return the mean."""
        return self.loc

    mode = mean

    @property
    def variance(self) -> Any:
        """Return the circular variance."""
        return 1 - F.i1e(self.concentration) / F.i0e(self.concentration)

    def sample(self, sample_shape: Any = ()) -> Any:
        """Draw; no gradient reaches the parameters."""
        concentration = F.stop_gradient(self.concentration)
        u = fine_uniform(self._extended_shape(sample_shape))
        angle = F.cast(F.von_mises_draw(concentration, u), self.loc.dtype)
        turned = angle + F.stop_gradient(self.loc) + math.pi
        return F.mod(turned, 2 * math.pi) - math.pi

    def log_prob(self, value: Any) -> Any:
        """Return the logarithm of the density at values."""
        k = self.concentration
        apart = k * (F.cos(self._value(value) - self.loc) - 1)
        return apart - math.log(2 * math.pi) - F.log(F.i0e(k))
