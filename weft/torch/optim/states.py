"""States and texts of optimizers as PyTorch has them: its layout, names and settings."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...core import tensor as core
from ...optim.groups import MULTIPLIERS
from ...optim.state import dump_optimizer
from ..adoption import adopt
from ..names import names
from ..tensor import wrap

# How PyTorch executes steps: settings that change nothing here, and stand in its groups.
_ALL = names("SGD Adam AdamW RMSprop Adagrad NAdam Rprop ASGD Adadelta Adamax RAdam")
_EXECUTION = {
    "differentiable": (False, _ALL),
    "foreach": (None, _ALL),
    "fused": (None, names("SGD Adam AdamW Adagrad")),
    "capturable": (False, [name for name in _ALL if name not in ("SGD", "Adagrad")]),
}
_SECOND = re.compile(r"_\d+$")  # what tells slots of one name in a chain apart
UNCOUNTED = ("SGD",)  # whose states count no steps


def state_dict(optimizer: Any) -> dict[str, Any]:
    """Return the state of an optimizer, which PyTorch's optimizer of that name can load."""
    name = type(optimizer).__name__
    own = dump_optimizer(optimizer)
    state = {int(n): _slots(name, slots) for n, slots in own["state"].items() if slots}
    return {"state": state, "param_groups": [_group(name, g) for g in own["param_groups"]]}


def _slots(name: str, slots: dict[str, Any]) -> dict[str, Any]:
    """Return what is kept of a parameter; numbers are tensors."""
    found: dict[str, Any] = {}
    for slot, value in slots.items():
        plain = _SECOND.sub("", slot)
        if plain not in found and not (plain == "step" and name in UNCOUNTED):
            found[plain] = _tensor(plain, value)
    return found


def _tensor(slot: str, value: Any) -> Any:
    if isinstance(value, core.Tensor):
        return adopt(core.wrap(value._value))
    if isinstance(value, (int, float)):
        return wrap(np.asarray(value, np.float32 if slot == "step" else np.float64))
    return value


def _group(name: str, group: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a group: factors of the rate that are 1 are left out."""
    kept = {n: v for n, v in group.items() if not (n in MULTIPLIERS and v == MULTIPLIERS[n])}
    return {**execution(name), **kept}


def execution(name: str) -> dict[str, Any]:
    """Return PyTorch's settings of how an optimizer is executed."""
    return {setting: value for setting, (value, having) in _EXECUTION.items() if name in having}


def shown(optimizer: Any) -> str:
    """Return the groups of an optimizer, a setting a line."""
    name = type(optimizer).__name__
    lines = [f"{name} ("]
    for index, group in enumerate(optimizer.param_groups):
        lines.append(f"Parameter Group {index}")
        settings = {**execution(name), **group}
        left_out = ("params", "param_names", *MULTIPLIERS)
        lines += [f"    {n}: {_plain(settings[n])}" for n in sorted(settings) if n not in left_out]
    return "\n".join([*lines, ")"])


def _plain(value: Any) -> Any:
    """Return a setting as it is usually written: 0 instead of 0.0."""
    return 0 if isinstance(value, float) and value == 0 else value
