"""Transforms of numbers, one by one."""

from __future__ import annotations

import math
from typing import Any

from ..core.op import F
from . import constraints
from ._shared import as_tensor, sum_last
from .transforms import Transform


class ExpTransform(Transform):
    """y = exp(x)."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Any) -> Any:
        return F.exp(x)

    def _inverse(self, y: Any) -> Any:
        return F.log(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return x


class PowerTransform(Transform):
    """y = x**exponent for positive x."""

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.exponent = as_tensor(exponent)

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative."""
        return F.sign(self.exponent)

    def _call(self, x: Any) -> Any:
        return x**self.exponent

    def _inverse(self, y: Any) -> Any:
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return F.log(F.abs(self.exponent * y / x))

    def _key(self) -> tuple[Any, ...]:
        return (id(self.exponent),)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)); the inverse is the logit."""

    codomain = constraints.unit_interval
    sign = 1

    def _call(self, x: Any) -> Any:
        return F.sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        return F.log(y) - F.log1p(-y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + exp(x))."""

    codomain = constraints.positive
    sign = 1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return F.log(-F.expm1(-y)) + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        return -F.softplus(-x)


class TanhTransform(Transform):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)
    sign = 1

    def _call(self, x: Any) -> Any:
        return F.tanh(x)

    def _inverse(self, y: Any) -> Any:
        return F.atanh(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        # log(1 - tanh(x)**2) without cancellation
        """Return the logarithm of the stretch at x."""
        return 2 * (math.log(2) - x - F.softplus(-2 * x))


class AbsTransform(Transform):
    """y = |x|; going back gives the positive one."""

    bijective = False
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return F.abs(x)

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """y = loc + scale * x."""

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._dims = as_tensor(loc), as_tensor(scale), event_dim
        if event_dim:
            self.domain = self.codomain = constraints.independent(constraints.real, event_dim)

    @property
    def sign(self) -> Any:
        """Return the sign of the derivative."""
        return F.sign(self.scale)

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the stretch at x."""
        stretch = F.log(F.abs(self.scale)) + F.zeros_like(x)
        return sum_last(stretch, self._dims)

    def _key(self) -> tuple[Any, ...]:
        return id(self.loc), id(self.scale), self._dims
