"""Optional packages, imported when a function first needs them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.errors import MissingDependencyError


def load_optional(module: str, *, package: str, extra: str, purpose: str) -> Any:
    """Return an optional module, or say how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".", maxsplit=1)[0]:
            raise  # the package is there and something that it needs is not
        raise MissingDependencyError(
            f'{purpose} needs the package {package}: pip install "weft[{extra}]"'
        ) from None
