"""`tf.compat`: names of both versions, and texts."""

from __future__ import annotations

from typing import Any

from ...faces.absent import absent_names
from . import v1 as v1

__all__ = ["as_bytes", "as_str", "as_str_any", "as_text"]


def as_bytes(text: Any, encoding: str = "utf-8") -> bytes:
    """Return text as bytes."""
    return text.encode(encoding) if isinstance(text, str) else bytes(text)


def as_text(data: Any, encoding: str = "utf-8") -> str:
    """Return bytes as text."""
    return data.decode(encoding) if isinstance(data, bytes) else str(data)


as_str = as_str_any = as_text

__getattr__ = absent_names(globals(), {"v2": "this is version 1: import weft as wf, or weft.keras"})
