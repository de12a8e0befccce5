"""Adafactor: second moments of matrices kept as a row and a column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ..core.dtype import float_limits
from ..core.errors import ArgumentError
from ..core.op import F
from .optimizer import Optimizer, given
from .transform import GradientTransform, State, Value, chain, choose, norm, per_value, scale

Epsilons = tuple[float | None, float]


def factored_steps(
    lr: Value, beta2_decay: Value, eps: Epsilons, d: Value, weight_decay: Value
) -> GradientTransform:
    """Return relative steps by factored second moments (Shazeer & Stern 2018, algorithms 4 and 5).

    The update is clipped to a root mean square of `d`, and scaled to that of the parameter.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        floor = float(float_limits(p.dtype).eps) if eps[0] is None else eps[0]
        estimate, changed = _second_moment(g, s, t**beta2_decay, floor)
        scaled = g / F.sqrt(F.maximum(estimate, floor * floor))
        root = math.sqrt(max(1, math.prod(p.shape)))
        limit = t**-0.5
        rate = choose(lr < limit, lr, limit)
        length = F.maximum(norm(p) * (1.0 / root), eps[1]) * rate
        step = scaled * (length / F.maximum(norm(scaled) * (1.0 / (root * d)), 1.0))
        return -(step + p * (lr * weight_decay)), {"step": t, **changed}

    return per_value(_init, update, elementwise=False, slots=("step",))


def _init(p: Value) -> State:
    if len(p.shape) < 2:
        return {"step": 0, "variance": F.zeros_like(p)}
    sums = {"row_var": F.sum(p, axis=-1, keepdims=True), "col_var": F.sum(p, -2, keepdims=True)}
    return {"step": 0, **{name: F.zeros_like(value) for name, value in sums.items()}}


def _second_moment(g: Value, s: State, weight: Value, floor: float) -> tuple[Value, State]:
    """Return the estimate of the second moment, and the slots that it follows from."""

    def moved(name: str, new: Value) -> Value:
        return s[name] + (new - s[name]) * weight

    squares = g * g
    if len(g.shape) < 2:
        variance = moved("variance", squares)
        return variance, {"variance": variance}
    rows = moved("row_var", F.mean(squares, axis=-1, keepdims=True))
    columns = moved("col_var", F.mean(squares, axis=-2, keepdims=True))
    total = F.maximum(F.mean(rows, axis=-2, keepdims=True), floor)
    return rows * columns / total, {"row_var": rows, "col_var": columns}


class Adafactor(Optimizer):
    """Scale by second moments of which matrices keep a row and a column (Shazeer & Stern 2018).

    lr            the largest relative step; it shrinks as the root of the number of updates
    beta2_decay   the power of that number by which old squares lose their weight
    eps           the smallest second moment's root (None: what the dtype resolves), and the
                  smallest root mean square of a parameter
    d             the root mean square that updates are clipped to

    >>> import weft as wf
    >>> w = wf.tensor([[4.0, 4.0]], requires_grad=True)
    >>> optimizer = wf.optim.Adafactor([w], lr=0.5)
    >>> optimizer.minimize((w * w).sum())
    >>> w.detach()
    tensor([[2., 2.]])
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: Epsilons = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def check_group(self, group: Mapping[str, Any]) -> None:
        """Raise unless the decay is a decay, and clipping leaves room."""
        if not isinstance(group["eps"], tuple) or len(group["eps"]) != 2 or group["eps"][1] is None:
            raise ArgumentError(
                f"eps must be a pair: None or a number, and a number. Received: {group['eps']}"
            )
        if group["beta2_decay"] > 0.0:
            raise ArgumentError(f"beta2_decay must be <= 0. Received: {group['beta2_decay']}")
        if group["d"] < 1.0:
            raise ArgumentError(f"d must be >= 1. Received: {group['d']}")

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the steps."""
        names = ("lr", "beta2_decay", "eps", "d", "weight_decay")
        ascent = scale(-1.0 if group["maximize"] else 1.0)
        return chain(ascent, factored_steps(*(group[name] for name in names)))
