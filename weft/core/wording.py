"""Errors in the words of the framework whose tensors were given.

Weft's checks say what was met in its own words, and as facts (`WeftError.facts`). Tensors of a face
have a class in front of Weft's, with the framework's words: what is raised for them is what the
framework raises. Nothing is asked for before there is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

Arguments = Callable[[], dict[str, Any]]
Words = Callable[[Exception, str, dict[str, Any]], Exception]


def worded(
    error: Exception, function: str, arguments: Arguments, operands: Iterable[Any]
) -> Exception:
    """Return what to raise for an error that a function met: in the words of its operands.

    arguments   gives the function's arguments by name
    operands    the tensors among them, also in lists
    """
    words = words_of(operands)
    return error if words is None else words(error, function, arguments())


def words_of(operands: Iterable[Any]) -> Words | None:
    """Return the words of the first operand that has some."""
    for x in operands:
        if x.__class__ in (list, tuple):
            found = words_of(x)
        else:
            found = getattr(x.__class__, "_words", None)
        if found is not None:
            return found
    return None
