"""Optimizer state as nested dictionaries: what enters checkpoints and comes back from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dtype import is_float
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.snapshot import snapshot
from ..core.tensor import Tensor
from .executor import working_dtype
from .groups import checked_settings
from .transform import State

if TYPE_CHECKING:
    from .optimizer import Optimizer


def dump_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    """Return the state of an optimizer; tensors in it are copies."""
    params = list(optimizer.parameters())
    state = {
        str(number): dump_slots(optimizer.state[p])
        for number, p in enumerate(params)
        if p in optimizer.state
    }
    groups, first = [], 0
    for group in optimizer.param_groups:
        numbers = list(range(first, first + len(group["params"])))
        first += len(numbers)
        groups.append({**group, "params": numbers})
    return {"t": optimizer.t, "state": state, "param_groups": groups}


def load_optimizer(optimizer: Optimizer, saved: Mapping[str, Any]) -> None:
    """Put a saved state into an optimizer, after checking that all of it fits."""
    _check_layout(optimizer, saved)
    params = list(optimizer.parameters())
    states: dict[Tensor, State] = {}
    for key, slots in saved["state"].items():
        number = int(key)
        if not 0 <= number < len(params):
            raise ArgumentError(f"the state names parameter {number} of only {len(params)}")
        p = params[number]
        states[p] = _fitted(number, p, load_slots(slots))
    groups = [_settings(group) for group in saved["param_groups"]]
    optimizer.t = int(saved.get("t", 0))
    optimizer.state = states
    for group, settings in zip(optimizer.param_groups, groups, strict=True):
        group.update(settings)


def dump_slots(slots: Any) -> Any:
    """Return a nest of arrays and numbers with every array copied into a read-only tensor."""
    if isinstance(slots, Mapping):
        return {name: dump_slots(value) for name, value in slots.items()}
    if isinstance(slots, (list, tuple)):
        return [dump_slots(value) for value in slots]
    return snapshot(np.array(slots)) if isinstance(slots, (np.ndarray, np.generic)) else slots


def load_slots(slots: Any) -> Any:
    """Return such a nest with tensors and arrays copied into arrays of our own."""
    if isinstance(slots, Mapping):
        return {name: load_slots(value) for name, value in slots.items()}
    if isinstance(slots, (list, tuple)):
        return [load_slots(value) for value in slots]
    value = slots._value if isinstance(slots, Tensor) else slots
    return np.array(value, order="C") if isinstance(value, (np.ndarray, np.generic)) else value


def _check_layout(optimizer: Optimizer, saved: Any) -> None:
    name = type(optimizer).__name__
    if not isinstance(saved, Mapping) or not {"state", "param_groups"} <= saved.keys():
        raise ArgumentTypeError(
            f"{name}.load_state_dict takes what state_dict returned, with 'state' and "
            f"'param_groups'. Received: {saved!r:.60}"
        )
    ours = [len(group["params"]) for group in optimizer.param_groups]
    theirs = [len(group["params"]) for group in saved["param_groups"]]
    if ours != theirs:
        raise ArgumentError(
            f"{name} has groups of {ours} parameters; the state has groups of {theirs}"
        )


def _fitted(number: int, p: Tensor, state: State) -> State:
    """Return the slots of a parameter in its shape and precision."""
    dtype = working_dtype(p.dtype)
    for name, value in state.items():
        if not isinstance(value, np.ndarray):
            continue
        if value.shape != p.shape:
            raise ShapeError(
                f"parameter {number} has shape {p.shape}; its saved {name!r} has {value.shape}"
            )
        state[name] = value.astype(dtype, copy=False) if is_float(value.dtype) else value
    return state


def _settings(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters of a saved group; JSON has turned its tuples into lists."""
    return checked_settings({k: v for k, v in group.items() if k not in ("params", "param_names")})
