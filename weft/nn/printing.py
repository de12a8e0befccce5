"""How modules print."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .module import Module


def format_module(module: Module, parts: list[tuple[str, str]]) -> str:
    """Return the repr of a module from its arguments and the reprs of its parts."""
    title, extra = type(module).__name__, module.extra_repr()
    if not parts:
        return f"{title}({extra})"
    lines = [extra] if extra else []
    lines += [f"({name}): {text}".replace("\n", "\n  ") for name, text in parts]
    return f"{title}(\n  " + "\n  ".join(lines) + "\n)"
