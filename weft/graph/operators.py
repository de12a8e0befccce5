"""Operators by name: those of the registry, and those that only graphs have."""

from __future__ import annotations

from typing import Any

from ..core.errors import GraphError
from ..core.op import find
from .communication import COMMUNICATION
from .control.ops import CONTROL
from .debug.nodes import EFFECTS
from .debug.ordering import AFTER
from .special import SPECIAL

_own: dict[str, Any] = {
    **SPECIAL,
    **CONTROL,
    **COMMUNICATION,
    **EFFECTS,
    AFTER.name: AFTER,
}


def operator_named(name: str) -> Any:
    """Return an operator by its name; raise if there is none."""
    found = _own.get(name) or find(name)
    if found is None:
        raise GraphError(f"there is no operator named {name!r:.60}")
    if getattr(found, "name", None) != name:  # a composite, or an alias
        raise GraphError(f"{name} is made of other operators and cannot be a node of a graph")
    return found
