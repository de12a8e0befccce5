"""`tf.compat.v1`: the face itself."""

from __future__ import annotations

from typing import Any

from ... import tf1 as _tf1


def __getattr__(name: str) -> Any:
    """Return what the face has under a name."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_tf1, name)


def __dir__() -> list[str]:
    """Return the names of the face."""
    return dir(_tf1)
