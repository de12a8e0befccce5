"""Versions of installed packages; a module of its own, because asking takes a slow import."""

from __future__ import annotations

import importlib.metadata
import sys


def version(package: str) -> str | None:
    """Return the version of an installed package, or None."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        if package != "weft":
            return None
    # A source tree that is on the path but not installed knows its version all the same.
    return getattr(sys.modules.get("weft"), "__version__", None)
