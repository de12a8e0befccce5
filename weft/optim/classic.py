"""Rules as older frameworks write them, where that differs from today's in more than spelling.

Chainer, Caffe and TensorFlow 1 keep the learning rate inside the momentum, so that a rate that
changes does not act on steps of the past, and add epsilon to the root of the uncorrected moment.
"""

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
    is_number,
    per_value,
)


def velocity(lr: Value, momentum: Value, *, nesterov: bool = False) -> GradientTransform:
    """Return v = momentum * v - lr * g, or the step that Nesterov's method looks ahead with."""

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        before = s["v"] * momentum
        v = before - g * lr
        step = v * momentum - g * lr if nesterov else v
        return step, {"v": v}

    return per_value(lambda p: {"v": F.zeros_like(p)}, update, slots=("v",))


class VelocitySGD(Optimizer):
    """Momentum with the learning rate inside: v = m v - lr g; p = p + v."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return decay, then the velocity, which is the step."""
        move = velocity(group["lr"], group["momentum"], nesterov=group["nesterov"])
        return chain(add_decayed_weights(group["weight_decay"]), move)


class ChainerNesterov(Optimizer):
    """Nesterov's method as Chainer computes it: v = m v - lr g; p = p + m^2 v - (1 + m) lr g.

    The velocity is the new one, where Nesterov's derivation has the old.
    """

    def __init__(self, params: Any, lr: float = 0.01, momentum: float = 0.9) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        lr, momentum = group["lr"], group["momentum"]

        def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
            v = s["v"] * momentum - g * lr
            return v * (momentum * momentum) - g * ((1 + momentum) * lr), {"v": v}

        return per_value(lambda p: {"v": F.zeros_like(p)}, update, slots=("v",))


class HatAdam(Optimizer):
    """Adam as its paper's section 2 ends: lr sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        eta: float = 1.0,
        decay_rate: float = 0.0,
        amsgrad: bool = False,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        names = ("lr", "betas", "eps", "eta", "decay_rate", "amsgrad")
        return hat_adam(*(group[name] for name in names))


def hat_adam(
    lr: Value,
    betas: tuple[Value, Value],
    eps: Value,
    eta: Value = 1.0,
    decay: Value = 0.0,
    amsgrad: bool = False,
) -> GradientTransform:
    """Return the step of HatAdam; `decay` times the parameter joins it, and `eta` scales both."""
    beta1, beta2 = betas
    slots = ("step", "m", "v", "vhat") if amsgrad else ("step", "m", "v")

    def init(p: Value) -> State:
        return {name: 0 if name == "step" else F.zeros_like(p) for name in slots}

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        m = s["m"] + (g - s["m"]) * (1 - beta1)
        v = s["v"] + (g * g - s["v"]) * (1 - beta2)
        changed = {"step": t, "m": m, "v": v}
        if amsgrad:
            changed["vhat"] = v = F.maximum(s["vhat"], v)
        rate = lr * (1 - beta2**t) ** 0.5 / (1 - beta1**t)
        step = m * rate / (F.sqrt(v) + eps)
        step = step if is_number(decay, 0) else step + p * decay
        return step * -eta, changed

    return per_value(init, update, slots=slots)


class GravesRMSprop(Optimizer):
    """RMSprop with a centred second moment and momentum (Graves 2013)."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-4,
        alpha: float = 0.95,
        momentum: float = 0.9,
        eps: float = 1e-4,
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        lr, alpha, momentum, eps = (group[name] for name in ("lr", "alpha", "momentum", "eps"))

        def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
            n = s["n"] * alpha + g * g * (1 - alpha)
            mean = s["g"] * alpha + g * (1 - alpha)
            delta = s["delta"] * momentum - g * lr / F.sqrt(n - mean * mean + eps)
            return delta, {"n": n, "g": mean, "delta": delta}

        slots = ("n", "g", "delta")
        return per_value(lambda p: {name: F.zeros_like(p) for name in slots}, update, slots=slots)


class InnerRMSprop(Optimizer):
    """RMSprop with epsilon inside the root."""

    def __init__(
        self, params: Any, lr: float = 0.01, alpha: float = 0.99, eps: float = 1e-8
    ) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        lr, alpha, eps = group["lr"], group["alpha"], group["eps"]

        def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
            ms = s["ms"] * alpha + g * g * (1 - alpha)
            return g * -lr / F.sqrt(ms + eps), {"ms": ms}

        return per_value(lambda p: {"ms": F.zeros_like(p)}, update, slots=("ms",))


class SMORMS3(Optimizer):
    """Squared mean over root mean squared cubed (Funk 2015): a rate for each element."""

    def __init__(self, params: Any, lr: float = 1e-3, eps: float = 1e-16) -> None:
        super().__init__(**given(locals()))

    def transform(self, group: Mapping[str, Any]) -> GradientTransform:
        """Return the step."""
        lr, eps = group["lr"], group["eps"]

        def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
            r = 1 / (s["mem"] + 1)
            mean, square = s["g"] * (1 - r) + g * r, s["g2"] * (1 - r) + g * g * r
            share = mean * mean / (square + eps)
            step = g * F.minimum(share, lr) / (F.sqrt(square) + eps)
            mem = s["mem"] * (1 - share) + 1
            return -step, {"mem": mem, "g": mean, "g2": square}

        def init(p: Value) -> State:
            return {"mem": F.ones_like(p), "g": F.zeros_like(p), "g2": F.zeros_like(p)}

        return per_value(init, update, slots=("mem", "g", "g2"))
