"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.op import F
from .optimizer import Optimizer, given
from .transform import (
    GradientTransform,
    State,
    Value,
    add_decayed_weights,
    chain,
    choose,
    per_value,
    scale,
)


def averaged_descent(lr: Value, lambd: Value, alpha: Value, t0: Value) -> GradientTransform:
    """Return steps that shrink as lr / (1 + lambd lr t)^alpha, with their average in `ax`.

    Bottou's form of Polyak & Juditsky 1992. The average begins anew until update `t0`. Rate and
    weight of an update are those that followed from the update before it, as in PyTorch: they are
    slots, for a schedule may change `lr` between the two.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        eta = choose(s["step"] == 0, lr, s["eta"])
        u = (g + p * lambd) * -eta
        new = p + u
        ax = choose(s["mu"] == 1.0, new, s["ax"] + (new - s["ax"]) * s["mu"])
        late = t - t0
        changed = {"step": t, "eta": lr / (1.0 + lambd * lr * t) ** alpha, "ax": ax}
        return u, {**changed, "mu": 1.0 / choose(late > 1.0, late, 1.0)}

    def init(p: Value) -> State:
        return {"step": 0, "eta": 0.0, "mu": 1.0, "ax": F.zeros_like(p)}

    return per_value(init, update, slots=("step", "eta", "mu", "ax"))


class ASGD(Optimizer):
    """Descend with shrinking steps, and keep the average of the path in the slot `ax`.

    lambd   decay of the parameters, and of the rate
    alpha   the power by which the rate shrinks
    t0      the update with which averaging begins

    >>> import weft as wf
    >>> w = wf.tensor([4.0], requires_grad=True)
    >>> optimizer = wf.optim.ASGD([w], lr=0.25, lambd=0.0)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([2.])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then the averaged descent."""
        return chain(
            scale(-1.0 if group["maximize"] else 1.0),
            add_decayed_weights(group["weight_decay"]),
            averaged_descent(group["lr"], group["lambd"], group["alpha"], group["t0"]),
        )
