"""Resilient propagation: steps by signs of gradients alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import ArgumentError
from ..core.op import F
from .optimizer import Optimizer, given
from .transform import GradientTransform, State, Value, chain, choose, per_value, scale


def resilient_steps(
    lr: Value, etas: tuple[float, float], step_sizes: tuple[float, float]
) -> GradientTransform:
    """Return steps of a size that grows while signs stay and shrinks where one changes.

    Riedmiller & Braun 1993; where a sign changes no step is taken, and the next gradient is not
    compared with this one (Rprop- of Igel & Huesken 2000).
    """
    shrink, grow = etas
    smallest, largest = step_sizes

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        agreed = g * s["prev"]
        turned = agreed < 0.0
        one = F.ones_like(p)
        factor = F.where(agreed > 0.0, one * grow, F.where(turned, one * shrink, one))
        size = choose(s["step"] == 0, one * lr, s["step_size"]) * factor
        size = F.minimum(F.maximum(size, smallest), largest)
        used = F.where(turned, F.zeros_like(g), g)
        changed = {"step": s["step"] + 1, "prev": used, "step_size": size}
        return F.sign(used) * -size, changed

    def init(p: Value) -> State:
        return {"step": 0, "prev": F.zeros_like(p), "step_size": F.zeros_like(p)}

    return per_value(init, update, slots=("step", "prev", "step_size"))


class Rprop(Optimizer):
    """Step by the signs of gradients, with a step size for each element; for whole data sets.

    lr           the first step size
    etas         what a step size is multiplied with when the sign changes, and when it stays
    step_sizes   the smallest and the largest step size

    >>> import weft as wf
    >>> w = wf.tensor([4.0], requires_grad=True)
    >>> optimizer = wf.optim.Rprop([w], lr=0.5)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([3.5])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0),
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless one factor shrinks and the other grows."""
        etas = group["etas"]
        if len(etas) != 2 or not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ArgumentError(f"etas must be a number below 1 and one above it. Received: {etas}")
        if len(group["step_sizes"]) != 2:
            raise ArgumentError(f"step_sizes must be 2 numbers. Received: {group['step_sizes']}")

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the steps."""
        return chain(
            scale(-1.0 if group["maximize"] else 1.0),
            resilient_steps(group["lr"], group["etas"], group["step_sizes"]),
        )
