"""Sums over a row in which one element at most counts: what an index picks is computed alone.

    sum(select(i == k, x, 0))

is x at the place k of the row, and nothing where there is no such place. The row need not be gone
through to find it: a loss of ten thousand classes reads one of their logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ....core.scalar.builder import PLACED, Expr

UNFIT = PLACED | {"reduce"}


class Pick(NamedTuple):
    """The element that a sum picks.

    place    in the row, the same for all of it; there may be no such place
    value    of the element there
    signs    negations of what was picked, the first to be done first
    """

    place: Expr
    value: Expr
    signs: tuple[Expr, ...]


def pick_of(expr: Expr, is_full: Callable[[Expr], bool]) -> Pick | None:
    """Return what a reduction picks; None if it is any other. `is_full`: varies along the row."""
    if expr.data != "sum":
        return None
    (chosen,), signs = expr.args, list[Expr]()
    while chosen.kind == "neg":
        signs.insert(0, chosen)
        (chosen,) = chosen.args
    if chosen.kind != "select" or not _is_zero(chosen.args[2]):
        return None
    condition, value, _ = chosen.args
    place = _place(condition, is_full)
    if place is None or not all(_can_stand_alone(e) for e in _along_row(value, is_full)):
        return None
    return Pick(place, value, tuple(signs))


def _is_zero(expr: Expr) -> bool:
    return expr.kind == "const" and expr.data.__class__ in (int, float, bool) and expr.data == 0


def _place(condition: Expr, is_full: Callable[[Expr], bool]) -> Expr | None:
    """Return what the place in the row is to be equal to."""
    if condition.kind != "eq":
        return None
    a, b = condition.args
    place = b if a.kind == "index" else a if b.kind == "index" else None
    return None if place is None or is_full(place) else place


def _along_row(expr: Expr, is_full: Callable[[Expr], bool]) -> Iterator[Expr]:
    """Yield what varies along the row of all that an expression is computed from."""
    stack, seen = [expr], set[int]()
    while stack:
        found = stack.pop()
        if id(found) not in seen and is_full(found):
            seen.add(id(found))
            stack.extend(found.args)
            yield found


def _can_stand_alone(expr: Expr) -> bool:
    return expr.kind not in UNFIT
