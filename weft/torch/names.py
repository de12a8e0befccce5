"""Tables of names, written as text."""

from __future__ import annotations


def names(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()
