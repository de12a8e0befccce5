"""How modules print."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..core.tensor import Tensor

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


def format_options(module: Module, names: Iterable[str]) -> str:
    """Return attributes as arguments of a call: "name=value", or the value alone for "*name"."""
    parts = []
    for name in names:
        plain = name.removeprefix("*")
        value = getattr(module, plain)
        if plain in module._kinds or isinstance(value, Tensor):  # whether there is such a parameter
            value = value is not None
        parts.append(repr(value) if name != plain else f"{name}={value!r}")
    return ", ".join(parts)
