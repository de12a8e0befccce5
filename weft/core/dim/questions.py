"""Questions about sizes, which rules ask in place of comparisons that unknown sizes leave open."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..errors import UnknownSizeError
from .decisions import sizes_at_hand
from .expression import HOOK, Dim, RunTimeSize, difference, evaluate, unknown_size, variables


def is_known(shape: Iterable[Any]) -> bool:
    """Tell whether all sizes of a shape are integers."""
    return not any(isinstance(size, Dim) for size in shape)


def is_told(shape: Iterable[Any]) -> bool:
    """Tell whether all sizes of a shape are integers, or follow from what runs are told."""
    return all(isinstance(v, RunTimeSize) for size in shape for v in variables(size))


def may_equal(a: Any, b: Any) -> bool:
    """Tell whether two sizes, or two shapes, can be equal when all is known."""
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(may_equal, a, b))
    return not (a != b)  # noqa: SIM202  (of unknown sizes, == means surely equal)


def differ_unless_empty(a: Any, b: Any) -> bool:
    """Tell whether two sizes can only be equal if an unknown size is 0: 3 n and 4 n, say."""
    if (isinstance(a, int) and a == 0) or (isinstance(b, int) and b == 0):
        return bool(a != b)  # empty is what is meant
    difference = a - b
    if is_told([difference]):  # none of them is 0
        return bool(a != b)
    filled = {variable: unknown_size(variable.name) + 1 for variable in variables(difference)}
    return bool(evaluate(difference, filled) != 0)


def surely_less(a: Any, b: Any) -> bool:
    """Tell whether a size is less than another whatever the unknown sizes are.

    While there are sizes at hand they answer, as for any comparison (see decisions.py).
    """
    if a.__class__ is int and b.__class__ is int:
        return bool(a < b)
    low, high = difference(a, b)
    return high < 0 or (low < 0 and bool(HOOK.decide(a - b, "<")))


def may_stretch(size: Any, to: Any) -> bool:
    """Tell whether an axis can broadcast to a size: it may be 1, or equal to it."""
    return size == 1 or may_equal(size, to) or may_equal(size, 1)


def known_size(size: Any, what: str) -> int:
    """Return a size that must be known; raise an error that says what it is needed for."""
    if isinstance(size, Dim):
        number = HOOK.number(size)
        if number is not None:
            return number
        raise UnknownSizeError(
            f"{what} depends on the size {size!r}, which is not known until the graph runs; "
            "give the placeholder a known size"
        )
    return size  # type: ignore[no-any-return]  # an integer


def typical(size: Any) -> Any:
    """Return a size with some common value in place of each unknown one: to compare costs by.

    That is the one at hand, if there is one; unlike a comparison of sizes, nothing is noted.
    """
    return evaluate(size, {**dict.fromkeys(variables(size), 32), **sizes_at_hand()})
