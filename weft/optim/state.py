"""Optimizer state as nested dictionaries: what enters checkpoints and comes back from them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.device_array import is_placed, to_host
from ..core.dtype import is_float
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.snapshot import snapshot
from ..core.tensor import Tensor
from .eager_step import working_dtype
from .groups import check_names, checked_settings
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
    """Put a saved state into an optimizer, after checking that all of it fits.

    PyTorch's states have the same layout and names; what only says how its steps are executed is
    left out, and tensors that are numbers become numbers.
    """
    check_layout(optimizer, saved)
    groups = [
        _settings(optimizer, group, given)
        for group, given in zip(optimizer.param_groups, saved["param_groups"], strict=True)
    ]
    owners = [
        (p, {**group, **settings})
        for group, settings in zip(optimizer.param_groups, groups, strict=True)
        for p in group["params"]
    ]
    states: dict[Tensor, State] = {}
    for key, slots in saved["state"].items():
        number = _number(key, len(owners))
        p, group = owners[number]
        expected = optimizer.expected_state(p, group)
        given = _given(number, load_slots(slots), expected, own="t" in saved)
        fitted = {name: _slot(number, p, name, v, expected) for name, v in given.items()}
        states[p] = {**expected, **fitted}
    steps = (state.get("step", 0) for state in states.values())
    optimizer.t = int(saved["t"]) if "t" in saved else int(max(steps, default=0))
    optimizer.state = states
    for group, settings in zip(optimizer.param_groups, groups, strict=True):
        group.update(settings)


def dump_slots(slots: Any) -> Any:
    """Return a nest of arrays and numbers with every array copied into a read-only tensor."""
    if isinstance(slots, Mapping):
        return {name: dump_slots(value) for name, value in slots.items()}
    if isinstance(slots, (list, tuple)):
        return [dump_slots(value) for value in slots]
    if is_placed(slots):  # which nobody can write to
        return snapshot(slots)
    return snapshot(np.array(slots)) if isinstance(slots, (np.ndarray, np.generic)) else slots


def load_slots(slots: Any) -> Any:
    """Return such a nest with tensors and arrays copied into arrays of our own."""
    if isinstance(slots, Mapping):
        return {name: load_slots(value) for name, value in slots.items()}
    if isinstance(slots, (list, tuple)):
        return [load_slots(value) for value in slots]
    value = to_host(slots._value if isinstance(slots, Tensor) else slots)
    return np.array(value, order="C") if hasattr(value, "__array__") else value


def check_layout(optimizer: Optimizer, saved: Any) -> None:
    """Raise unless something looks like a state for the groups of an optimizer."""
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


def _number(key: Any, count: int) -> int:
    """Return the number of a parameter, which JSON makes a word."""
    try:
        number = int(key)
    except (TypeError, ValueError):
        raise ArgumentError(f"the state numbers parameters. Received: {key!r:.60}") from None
    if not 0 <= number < count:
        raise ArgumentError(f"the state names parameter {number} of only {count}")
    return number


def _given(number: int, saved: Any, expected: State, *, own: bool) -> State:
    """Return the slots of a parameter by the names that the optimizer has for them.

    A state of our own may hold more, or lack some: of options that were switched off, or on, since.
    """
    if not isinstance(saved, Mapping):
        raise ArgumentTypeError(
            f"the state of parameter {number} must be a dictionary. Received: {saved!r:.60}"
        )
    given = {name: value for name, value in saved.items() if value is not None}
    if not own and given:
        given = {_slot_name(name, expected): value for name, value in given.items()}
        for name in expected:
            if _SECOND.sub("", name) == "step":  # PyTorch counts no steps of momentum
                given.setdefault(name, given.get("step", 1))
    unlike = expected.keys() - given.keys() if not own else given.keys().isdisjoint(expected)
    if given and expected and unlike:
        raise ArgumentError(
            f"the optimizer keeps {_named(expected)} of each parameter; the state of parameter "
            f"{number} has {_named(saved)}"
        )
    return given


_SECOND = re.compile(r"_\d+$")  # what tells slots of one name in a chain apart


def _slot_name(name: str, expected: State) -> str:
    """Return the name of a slot in a chain, where it may have a number."""
    found = [n for n in expected if name in (n, _SECOND.sub("", n))]
    return found[0] if len(found) == 1 else name


def _slot(number: int, p: Tensor, name: str, value: Any, expected: State) -> Any:
    """Return one slot: an array like the parameter, or a number."""
    shape = np.shape(value)
    kept: Any = expected.get(name)
    is_array = isinstance(kept, np.ndarray) or is_placed(kept)
    wanted = tuple(kept.shape) if is_array else p.shape if kept is None and shape else ()
    if shape != wanted:
        raise ShapeError(
            f"parameter {number} has shape {p.shape}; its saved {name!r} has {shape}"
            + (f", but should have {wanted}" if wanted else ", but should be a number")
        )
    if isinstance(value, np.ndarray) and (is_array or shape):
        dtype = working_dtype(p.dtype)
        return value.astype(dtype, copy=False) if is_float(value.dtype) else value
    found = value.item() if isinstance(value, np.ndarray) else value
    if isinstance(found, str):
        raise ArgumentTypeError(
            f"parameter {number}: the saved {name!r} must be a number. Received: {found!r:.60}"
        )
    return type(kept)(found) if isinstance(kept, (int, float)) else found


def _named(slots: Mapping[str, Any]) -> str:
    return ", ".join(map(repr, slots))


# How PyTorch executes its steps, which changes nothing that they compute.
_EXECUTION = ("foreach", "fused", "capturable", "differentiable")


def _settings(
    optimizer: Optimizer, group: Mapping[str, Any], saved: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the hyperparameters of a saved group; JSON has turned its tuples into lists."""
    left_out = ("params", "param_names", *(name for name in _EXECUTION if name not in group))
    given = {name: value for name, value in saved.items() if name not in left_out}
    check_names(given, group)
    settings = checked_settings(given)
    optimizer.check_group({**group, **settings})
    return settings
