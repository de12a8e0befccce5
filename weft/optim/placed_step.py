"""Steps of an optimizer on a device: the same rules, on tensors, where parameters and slots are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.device_array import is_placed, moved
from ..core.modes import interpret_with, no_grad
from ..core.tensor import Tensor, wrap
from .transform import GradientTransform, State


def is_elsewhere(p: Tensor) -> bool:
    """Tell whether a parameter is in the memory of a device."""
    return is_placed(p._value)


def placed_state(transform: GradientTransform, value: Any) -> State:
    """Return the state of a parameter on a device before its first update."""
    with interpret_with(None), no_grad():  # also where a graph is built
        return _plain(transform.init([wrap(value)])[0])


def aligned(state: State, p: Tensor) -> State:
    """Return the slots of a parameter, those that are elsewhere moved to where it is."""
    for name, value in state.items():
        if hasattr(value, "shape") and is_placed(value) != is_elsewhere(p):
            state[name] = moved(value, p.device)
    return state


def run_placed(
    transform: GradientTransform, params: Sequence[Tensor], states: Sequence[State], wide: Any
) -> None:
    """Update parameters on a device, and their states; `wide` gives a value as rules see it."""
    with no_grad():
        values = [wrap(wide(p._value)) for p in params]
        grads = [p.grad.detach().to(x.dtype) for p, x in zip(params, values, strict=True)]
        slots = [_wrapped(state) for state in states]
        updates, changed = transform.update(grads, slots, values)
        for p, state, x, u, new in zip(params, states, values, updates, changed, strict=True):
            p._value = (x + u).to(p.dtype)._value
            state.update(_plain(new))


def _wrapped(state: Mapping[str, Any]) -> State:
    return {n: wrap(v) if is_placed(v) else v for n, v in state.items()}


def _plain(state: Mapping[str, Any]) -> State:
    return {n: v._value if isinstance(v, Tensor) else v for n, v in state.items()}
