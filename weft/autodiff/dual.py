"""Dual numbers: a value p and a tangent t, standing for p + eps t with eps**2 = 0.

Each belongs to a level, one running jvp; levels tell nested perturbations apart.
"""

from __future__ import annotations

from ..core.tensor import Tensor
from .layered import Layered, TransformLevel, make_layer


class Dual(Layered):
    """A value with its derivative along a direction, at one level of forward mode."""

    __slots__ = ()

    @property
    def tangent(self) -> Tensor | None:
        """Return the derivative; None is zero."""
        tangent: Tensor | None = self.extra
        return tangent

    def __repr__(self) -> str:
        return f"dual({self.primal!r}, tangent={self.tangent!r})"


def make_dual(primal: Tensor, tangent: Tensor | None, level: TransformLevel) -> Tensor:
    """Return a dual number, or the value itself if its tangent is zero."""
    return primal if tangent is None else make_layer(Dual, primal, tangent, level)
