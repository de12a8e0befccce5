"""The formulas of TensorFlow's optimizers: rules of Weft's where they are the same.

A rule takes the parameter, the gradient, the slots and the settings, and returns the new parameter
and the new slots. Settings are tensors without dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.op import F
from ...optim.scaling import scale_by_adadelta, scale_by_rss
from ...optim.transform import GradientTransform, trace

Slots = Mapping[str, Any]
Moved = tuple[Any, dict[str, Any]]


def _one(transform: GradientTransform, p: Any, g: Any, slots: Slots) -> tuple[Any, Any]:
    assert transform.each is not None
    return transform.each[1](g, {"step": 0, **slots}, p)


def descend(p: Any, g: Any, slots: Slots, lr: Any) -> Moved:
    """P = p - lr g."""
    return p - g * lr, {}


def momentum(p: Any, g: Any, slots: Slots, lr: Any, momentum: Any, *, nesterov: bool) -> Moved:
    """Follow a = m a + g: p = p - lr a, or Nesterov's step."""
    step, changed = _one(
        trace(momentum, nesterov=nesterov), p, g, {"momentum_buffer": slots["momentum"]}
    )
    return p - step * lr, {"momentum": changed["momentum_buffer"]}


def adam(
    p: Any,
    g: Any,
    slots: Slots,
    lr: Any,
    beta1: Any,
    beta2: Any,
    eps: Any,
    power1: Any,
    power2: Any,
) -> Moved:
    """Follow Adam with epsilon hat: the powers of both betas are variables of the optimizer."""
    m = slots["m"] + (g - slots["m"]) * (1 - beta1)
    v = slots["v"] + (g * g - slots["v"]) * (1 - beta2)
    rate = lr * F.sqrt(1 - power2) / (1 - power1)
    return p - m * rate / (F.sqrt(v) + eps), {"m": m, "v": v}


def adagrad(p: Any, g: Any, slots: Slots, lr: Any) -> Moved:
    """Follow p = p - lr g / sqrt(a) with a = a + g^2."""
    step, changed = _one(scale_by_rss(eps=0.0), p, g, {"sum": slots["accumulator"]})
    return p - step * lr, {"accumulator": changed["sum"]}


def adadelta(p: Any, g: Any, slots: Slots, lr: Any, rho: Any, eps: Any) -> Moved:
    """Follow steps whose size follows from steps of the past."""
    state = {"square_avg": slots["accum"], "acc_delta": slots["accum_update"]}
    step, changed = _one(scale_by_adadelta(rho, eps=eps), p, g, state)
    return p - step * lr, {"accum": changed["square_avg"], "accum_update": changed["acc_delta"]}


def rmsprop(p: Any, g: Any, slots: Slots, lr: Any, decay: Any, momentum: Any, eps: Any) -> Moved:
    """Divide by the root of the mean square, epsilon inside the root, the rate in the momentum."""
    square = slots["rms"] + (g * g - slots["rms"]) * (1 - decay)
    changed = {"rms": square}
    centre = square + eps
    if "mg" in slots:
        mean = slots["mg"] + (g - slots["mg"]) * (1 - decay)
        changed["mg"] = mean
        centre = square - mean * mean + eps
    moved = slots["momentum"] * momentum + g * lr * F.rsqrt(centre)
    return p - moved, {**changed, "momentum": moved}


def ftrl(
    p: Any, g: Any, slots: Slots, lr: Any, power: Any, l1: Any, l2: Any, *, shrinkage: float
) -> Moved:
    """Follow the regularised leader (McMahan et al. 2013)."""
    total = slots["accum"] + g * g
    pulled = g + p * (2 * shrinkage) if shrinkage else g
    new, old = F.pow(total, -power), F.pow(slots["accum"], -power)
    linear = slots["linear"] + pulled - p * (new - old) / lr
    quadratic = new / lr + l2 * 2
    step = (F.sign(linear) * l1 - linear) / quadratic
    moved = F.where(F.abs(linear) > l1, step, F.zeros_like(p))
    return moved, {"accum": total, "linear": linear}


def proximal_descend(p: Any, g: Any, slots: Slots, lr: Any, l1: Any, l2: Any) -> Moved:
    """Follow the gradient, then shrink."""
    return _shrunk(p - g * lr, lr, l1, l2), {}


def proximal_adagrad(p: Any, g: Any, slots: Slots, lr: Any, l1: Any, l2: Any) -> Moved:
    """Follow Adagrad, then shrink."""
    total = slots["accumulator"] + g * g
    rate = lr * F.rsqrt(total)
    return _shrunk(p - g * rate, rate, l1, l2), {"accumulator": total}


def _shrunk(p: Any, rate: Any, l1: Any, l2: Any) -> Any:
    return F.sign(p) * F.maximum(F.abs(p) - rate * l1, 0.0) / (1 + rate * l2)
