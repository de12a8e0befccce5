"""Learning rates that follow a global step, and the step itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.op import F
from ..graph import Graph, get_default_graph
from ..indexing import where
from ..keys import GraphKeys
from ..math_ops import cast
from ..recording import Tensor, constant, convert_to_tensor, record
from ..variable import Variable
from ..variable_scope import get_variable

__all__ = [
    "cosine_decay",
    "cosine_decay_restarts",
    "create_global_step",
    "exponential_decay",
    "get_global_step",
    "get_or_create_global_step",
    "global_step",
    "inverse_time_decay",
    "linear_cosine_decay",
    "natural_exp_decay",
    "piecewise_constant",
    "polynomial_decay",
]


def _decayed(name: str, rate: Any, step: Any, steps: Any, compute: Callable[..., Any]) -> Tensor:
    if step is None:
        raise ValueError(f"global_step is required for {name}.")
    base = convert_to_tensor(rate)
    inputs = [base, cast(step, base.dtype), cast(steps, base.dtype)]
    made: Tensor = record(name, compute, inputs, name=name)
    return made


def exponential_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return learning_rate * decay_rate ^ (global_step / decay_steps)."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        power = step / steps
        return rate * F.pow(_like(decay_rate, rate), F.floor(power) if staircase else power)

    return _decayed(name or "ExponentialDecay", learning_rate, global_step, decay_steps, compute)


def _like(number: Any, x: Any) -> Any:
    return F.ones_like(x) * number


def natural_exp_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return learning_rate * exp(-decay_rate * global_step / decay_steps)."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        power = step / steps
        return rate * F.exp((F.floor(power) if staircase else power) * -decay_rate)

    return _decayed(name or "NaturalExpDecay", learning_rate, global_step, decay_steps, compute)


def inverse_time_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    decay_rate: Any,
    staircase: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return learning_rate / (1 + decay_rate * global_step / decay_steps)."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        power = step / steps
        return rate / (1 + (F.floor(power) if staircase else power) * decay_rate)

    return _decayed(name or "InverseTimeDecay", learning_rate, global_step, decay_steps, compute)


def polynomial_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return a rate that goes to end_learning_rate by a power of the steps that are left."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        if cycle:
            steps = steps * F.maximum(F.ceil(step / steps), 1.0)
        part = F.minimum(step, steps) / steps
        return (rate - end_learning_rate) * F.pow(1 - part, power) + end_learning_rate

    return _decayed(name or "PolynomialDecay", learning_rate, global_step, decay_steps, compute)


def cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return a rate that goes to alpha times itself along half a cosine."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        wave = 0.5 * (1 + F.cos(F.minimum(step, steps) / steps * math.pi))
        return rate * ((1 - alpha) * wave + alpha)

    return _decayed(name or "CosineDecay", learning_rate, global_step, decay_steps, compute)


def cosine_decay_restarts(
    learning_rate: Any,
    global_step: Any,
    first_decay_steps: Any,
    t_mul: float = 2.0,
    m_mul: float = 1.0,
    alpha: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Return cosine decay that begins anew, each time for t_mul times as many steps."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        part = step / steps
        if t_mul == 1.0:
            turn = F.floor(part)
            part = part - turn
        else:
            turn = F.floor(F.log(1 - part * (1 - t_mul)) / math.log(t_mul))
            begun = (1 - F.pow(_like(t_mul, rate), turn)) / (1 - t_mul)
            part = (part - begun) / F.pow(_like(t_mul, rate), turn)
        top = F.pow(_like(m_mul, rate), turn)
        return rate * ((1 - alpha) * 0.5 * top * (1 + F.cos(part * math.pi)) + alpha)

    return _decayed(name or "SGDRDecay", learning_rate, global_step, first_decay_steps, compute)


def linear_cosine_decay(
    learning_rate: Any,
    global_step: Any,
    decay_steps: Any,
    num_periods: float = 0.5,
    alpha: float = 0.0,
    beta: float = 0.001,
    name: str | None = None,
) -> Tensor:
    """Return cosine decay times linear decay."""

    def compute(rate: Any, step: Any, steps: Any) -> Any:
        done = F.minimum(step, steps) / steps
        wave = 0.5 * (1 + F.cos(done * (2 * num_periods * math.pi)))
        return rate * ((alpha + 1 - done) * wave + beta)

    return _decayed(name or "LinearCosineDecay", learning_rate, global_step, decay_steps, compute)


def piecewise_constant(x: Any, boundaries: Any, values: Any, name: str | None = None) -> Tensor:
    """Return the value of the interval in which x lies; boundaries belong to the left."""
    if len(boundaries) != len(values) - 1:
        raise ValueError("The length of boundaries should be 1 less than the length of values")
    step = convert_to_tensor(x)
    made = convert_to_tensor(values[-1])
    for bound, value in reversed(list(zip(boundaries, values, strict=False))):
        made = where(step <= constant(bound, step.dtype), convert_to_tensor(value), made)
    return made


piecewise_constant_decay = piecewise_constant


# -- the global step -------------------------------------------------------------------------------


def get_global_step(graph: Graph | None = None) -> Any:
    """Return the variable that counts steps, None if there is none."""
    found = (graph or get_default_graph()).get_collection(GraphKeys.GLOBAL_STEP)
    return found[0] if found else None


def create_global_step(graph: Graph | None = None) -> Variable:
    """Return a new variable that counts steps."""
    target = graph or get_default_graph()
    if get_global_step(target) is not None:
        raise ValueError('"global_step" already exists.')
    with target.as_default(), target.name_scope(None):
        keys = [GraphKeys.GLOBAL_VARIABLES, GraphKeys.GLOBAL_STEP]
        return get_variable(
            "global_step", [], "int64", initializer=_zero, trainable=False, collections=keys
        )


def _zero(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
    return constant(0, dtype, shape=shape)


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable that counts steps."""
    found: Variable | None = get_global_step(graph)
    return create_global_step(graph) if found is None else found


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Return the number of steps in a session."""
    return int(sess.run(global_step_tensor))
