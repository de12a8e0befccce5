"""Optional packages, imported when a function first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.errors import MissingDependencyError


def load_optional(module: str, *, extra: str, purpose: str, package: str | None = None) -> Any:
    """Return an optional module, or say how to install it (by its package, if named otherwise)."""
    top = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.partition(".")[0] != top:
            raise  # the package is there and something that it needs is not
        raise MissingDependencyError(
            f'{purpose} needs the package {package or top}: pip install "weft[{extra}]"'
        ) from None
