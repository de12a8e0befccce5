"""Transforms that scale gradients by statistics of the past: the adaptive methods.

Each names its paper. State slots carry PyTorch's names. `step` counts the updates of a parameter
and is a Python number in eager mode, so bias corrections are computed in double precision.
"""

from __future__ import annotations

from typing import Any

from ..core.op import F
from .transform import MOVES_ALL, GradientTransform, State, Value, choose, norm, per_value


def scale_by_adam(
    b1: Value = 0.9,
    b2: Value = 0.999,
    *,
    eps: Value = 1e-8,
    amsgrad: bool = False,
    eps_hat: bool = False,
) -> GradientTransform:
    """Scale by bias-corrected first and second moments (Kingma & Ba 2015, algorithm 1).

    With `amsgrad`, by the largest second moment so far (Reddi et al. 2018). With `eps_hat`, eps is
    added to the root before it is corrected (the form at the end of section 2). Of rows without a
    gradient the moments stay as they are; the corrections count all steps.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        m = _average(s["exp_avg"], g, b1)
        v = _average(s["exp_avg_sq"], g * g, b2)
        changed = {"step": t, "exp_avg": m, "exp_avg_sq": v}
        if amsgrad:
            changed["max_exp_avg_sq"] = v = F.maximum(s["max_exp_avg_sq"], v)
        correction = 1.0 - b1**t
        # m/c1 / (sqrt(v/c2) + eps), with c1 moved into the denominator to save a pass.
        scale = correction / (1.0 - b2**t) ** 0.5
        return m / (F.sqrt(v) * scale + eps * (scale if eps_hat else correction)), changed

    slots = ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if amsgrad else ()))
    return _with_zeros(update, slots, whole=None)


def scale_by_adamax(b1: Value = 0.9, b2: Value = 0.999, *, eps: Value = 1e-8) -> GradientTransform:
    """Scale by the first moment and a decaying maximum (Kingma & Ba 2015, algorithm 2)."""

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        m = _average(s["exp_avg"], g, b1)
        top = F.maximum(s["exp_inf"] * b2, abs(g) + eps)
        return m / (top * (1.0 - b1**t)), {"step": t, "exp_avg": m, "exp_inf": top}

    return _with_zeros(update, ("exp_avg", "exp_inf"))


def scale_by_nadam(
    b1: Value = 0.9, b2: Value = 0.999, *, eps: Value = 1e-8, momentum_decay: Value = 4e-3
) -> GradientTransform:
    """Scale as Adam with Nesterov momentum and its warm-up (Dozat 2016, algorithm 2)."""

    def momentum_at(t: Value) -> Value:
        return b1 * (1.0 - 0.5 * 0.96 ** (t * momentum_decay))

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        mu, following = momentum_at(t), momentum_at(t + 1)
        product = s["mu_product"] * mu
        m = _average(s["exp_avg"], g, b1)
        v = _average(s["exp_avg_sq"], g * g, b2)
        ahead = m * (following / (1.0 - product * following)) + g * ((1.0 - mu) / (1.0 - product))
        changed = {"step": t, "mu_product": product, "exp_avg": m, "exp_avg_sq": v}
        return ahead / (F.sqrt(v) * (1.0 - b2**t) ** -0.5 + eps), changed

    return per_value(
        lambda p: {**_zeros(p, ("exp_avg", "exp_avg_sq")), "mu_product": 1.0},
        update,
        slots=("step", "exp_avg", "exp_avg_sq", "mu_product"),
    )


def scale_by_radam(b1: Value = 0.9, b2: Value = 0.999, *, eps: Value = 1e-8) -> GradientTransform:
    """Scale as Adam with the variance rectified, plain momentum while it is undefined.

    Liu et al. 2020, algorithm 2, with the threshold rho_t > 5 of the authors' code.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        t = s["step"] + 1
        m = _average(s["exp_avg"], g, b1)
        v = _average(s["exp_avg_sq"], g * g, b2)
        corrected = m * (1.0 / (1.0 - b1**t))
        longest = 2.0 / (1.0 - b2) - 1.0
        length = longest - 2.0 * t * b2**t / (1.0 - b2**t)
        changed = {"step": t, "exp_avg": m, "exp_avg_sq": v}
        if (length > 5.0) is False:
            return corrected, changed
        rectified = corrected / (F.sqrt(v) + eps) * _rectifier(length, longest, 1.0 - b2**t)
        return choose(length > 5.0, rectified, corrected), changed

    return _with_zeros(update, ("exp_avg", "exp_avg_sq"))


def _rectifier(length: Value, longest: Value, correction: Value) -> Value:
    """Return r_t of Liu et al. 2020 times the bias correction of the second moment."""
    numerator = (length - 4.0) * (length - 2.0) * longest
    return (correction * numerator / ((longest - 4.0) * (longest - 2.0) * length)) ** 0.5


def scale_by_rss(
    *, initial_accumulator_value: Value = 0.0, eps: Value = 1e-10, lr_decay: Value = 0.0
) -> GradientTransform:
    """Scale by the root of the sum of all squared gradients (Duchi et al. 2011: Adagrad)."""

    def init(p: Value) -> State:
        return {"step": 0, "sum": F.zeros_like(p) + initial_accumulator_value}

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        total = s["sum"] + g * g
        scaled = g / (F.sqrt(total) + eps)
        slowed = scaled * (1.0 / (1.0 + s["step"] * lr_decay)) if lr_decay else scaled
        return slowed, {"step": s["step"] + 1, "sum": total}

    return per_value(init, update, slots=("step", "sum"), whole=None)


def scale_by_adadelta(rho: Value = 0.9, *, eps: Value = 1e-6) -> GradientTransform:
    """Scale by the ratio of past updates to past gradients (Zeiler 2012, algorithm 1)."""

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        squares = _average(s["square_avg"], g * g, rho)
        delta = g * F.sqrt((s["acc_delta"] + eps) / (squares + eps))
        deltas = _average(s["acc_delta"], delta * delta, rho)
        return delta, {"step": s["step"] + 1, "square_avg": squares, "acc_delta": deltas}

    return _with_zeros(update, ("square_avg", "acc_delta"))


def scale_by_rms(
    alpha: Value = 0.99, *, eps: Value = 1e-8, centered: bool = False
) -> GradientTransform:
    """Scale by a moving root mean square (Tieleman & Hinton 2012: RMSprop).

    With `centered`, by the standard deviation (Graves 2013, equations 38 to 41).
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        squares = _average(s["square_avg"], g * g, alpha)
        changed = {"step": s["step"] + 1, "square_avg": squares}
        spread = squares
        if centered:
            changed["grad_avg"] = mean = _average(s["grad_avg"], g, alpha)
            # Rounding can take the difference of nearly equal numbers below zero.
            spread = F.maximum(squares - mean * mean, 0.0)
        return g / (F.sqrt(spread) + eps), changed

    return _with_zeros(update, ("square_avg", *(("grad_avg",) if centered else ())))


def scale_by_lion(b1: Value = 0.9, b2: Value = 0.99) -> GradientTransform:
    """Take the sign of an interpolated momentum (Chen et al. 2023, algorithm 2)."""

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        direction = F.sign(_average(s["exp_avg"], g, b1))
        return direction, {"step": s["step"] + 1, "exp_avg": _average(s["exp_avg"], g, b2)}

    return _with_zeros(update, ("exp_avg",))


def scale_by_trust_ratio() -> GradientTransform:
    """Scale each update to the length of its parameter (You et al. 2020, algorithm 2: LAMB).

    Where either length is zero the update is left as it is.
    """

    def update(g: Value, s: State, p: Value) -> tuple[Value, State]:
        length, size = norm(p), norm(g)
        usable = F.logical_and(length > 0.0, size > 0.0)
        return g * F.where(usable, length / F.where(usable, size, 1.0), 1.0), {}

    return per_value(lambda p: {}, update, elementwise=False)


def _average(old: Value, new: Value, decay: Value) -> Value:
    return old * decay + new * (1.0 - decay)


def _zeros(p: Value, slots: tuple[str, ...]) -> State:
    return {"step": 0, **{name: F.zeros_like(p) for name in slots}}


def _with_zeros(
    update: Any, slots: tuple[str, ...], *, whole: str | None = MOVES_ALL
) -> GradientTransform:
    """Return the elementwise transform whose slots start at zero."""
    return per_value(lambda p: _zeros(p, slots), update, slots=("step", *slots), whole=whole)
