"""Names of layers: those that were not named are counted by class, as dense, dense_1 ..."""

from __future__ import annotations

import re
from typing import Any

from ..core.errors import ArgumentError

_counts: dict[str, int] = {}


def snake_case(name: str) -> str:
    """Return a class's name as names of layers are written.

    >>> snake_case("BatchNormalization"), snake_case("Conv2D"), snake_case("LSTM")
    ('batch_normalization', 'conv2d', 'lstm')
    """
    text = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z0-9])(?=[A-Z][a-z])", "_", name)
    return text.lower().lstrip("_")


def fresh_name(kind: str) -> str:
    """Return a name that no layer of this kind had since the counts began."""
    count = _counts.get(kind, 0)
    _counts[kind] = count + 1
    return f"{kind}_{count}" if count else kind


def checked_name(name: Any) -> str:
    """Return a name; dots part the names of layers inside layers."""
    if not isinstance(name, str) or not name or "." in name:
        raise ArgumentError(f"the name of a layer is text without dots. Received: {name!r}")
    return name


def forget_names() -> None:
    """Begin to count anew."""
    _counts.clear()
