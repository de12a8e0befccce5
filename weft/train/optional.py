"""Packages that only some extensions need, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..core.errors import MissingDependencyError


def require(module: str, extra: str, what: str) -> Any:
    """Return an optional module; if it is missing, say who needs it and how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingDependencyError(
            f'{what} needs the package {package}: pip install "weft[{extra}]" ({error})'
        ) from error


def is_available(module: str) -> bool:
    """Tell whether an optional module can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
