"""Tables of names, written as text, and what is said of them."""

from __future__ import annotations


def names(text: str) -> list[str]:
    """Return the words of a text."""
    return text.split()


def description(doc: str | None) -> str | None:
    """Return a docstring up to its examples, whose results are Weft's and not a face's."""
    return doc and doc.partition(">>>")[0].rstrip()
