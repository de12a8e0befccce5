"""Decide questions about sizes that runs are told by sizes at hand, and note what was decided.

A program for many sizes is made with some at hand. Where a choice depends on them (is a row long?)
it is made as for these, and noted as a condition: the program is right for all sizes for which its
conditions hold.

    with deciding({n: 64}) as decisions:
        n < 100          # True
    decisions.hold({n: 32}), decisions.hold({n: 200})      # True, False

Where the very number is needed (`int(n)`) it can be given too, if that is asked for: then what is
made is right for that number alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import UnknownSizeError
from .expression import HOOK, Dim, SizeVar, evaluate

_RELATIONS = {"<": lambda size: size < 0, ">": lambda size: size > 0, "!=": lambda size: size != 0}


class Condition(NamedTuple):
    """What a size must be: less than 0, say, or not less."""

    size: Dim
    relation: str
    wanted: bool

    def holds(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether it is so for given sizes."""
        return bool(_RELATIONS[self.relation](evaluate(self.size, sizes))) == self.wanted

    def __str__(self) -> str:
        return f"{'' if self.wanted else 'not '}{self.size} {self.relation} 0"


class Decisions:
    """Sizes at hand, and the conditions under which all would be decided as for them.

    pinned   sizes whose number was needed, where numbers are given; None where they are not
    """

    def __init__(self, sizes: Mapping[SizeVar, int], *, numbers: bool = False) -> None:
        self.sizes = dict(sizes)
        self.conditions: dict[Condition, None] = {}
        self.pinned: set[SizeVar] | None = set() if numbers else None

    def decide(self, size: Dim, relation: str) -> bool | None:
        """Return whether a size is less than 0, say; None if the sizes at hand do not tell."""
        if any(variable not in self.sizes for variable in size.variables()):
            return None
        wanted = bool(_RELATIONS[relation](evaluate(size, self.sizes)))
        self.conditions[Condition(size, relation, wanted)] = None
        return wanted

    def number(self, size: Dim) -> int | None:
        """Return the number that a size is, which it must be from now on; None if none is given."""
        if self.pinned is None or any(v not in self.sizes for v in size.variables()):
            return None
        number: int = evaluate(size, self.sizes)
        self.conditions[Condition(size - number, "!=", False)] = None
        self.pinned.update(size.variables())
        return number

    def hold(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell whether all would be decided in the same way for other sizes."""
        return all(condition.holds(sizes) for condition in self.conditions)

    def may_hold(self, sizes: Mapping[SizeVar, int]) -> bool:
        """Tell the same as far as some sizes tell it, the others being told later."""
        known = [c for c in self.conditions if all(v in sizes for v in c.size.variables())]
        return all(condition.holds(sizes) for condition in known)


_current: ContextVar[Decisions | None] = ContextVar("decisions", default=None)


@contextmanager
def deciding(sizes: Mapping[SizeVar, int], *, numbers: bool = False) -> Iterator[Decisions]:
    """Let what depends on sizes be decided by those at hand, in the block that follows.

    With `numbers` sizes can be asked for their number too.
    """
    decisions = Decisions(sizes, numbers=numbers)
    with _current_set(decisions):
        yield decisions


@contextmanager
def leaving_open() -> Iterator[None]:
    """Let questions stay open in the block that follows: what is asked must hold for all."""
    with _current_set(None):
        yield


@contextmanager
def _current_set(decisions: Decisions | None) -> Iterator[None]:
    token = _current.set(decisions)
    try:
        yield
    finally:
        _current.reset(token)


def _decide(size: Any, relation: str) -> bool | None:
    decisions = _current.get()
    return None if decisions is None else decisions.decide(size, relation)


def _number(size: Any) -> int | None:
    decisions = _current.get()
    return None if decisions is None else decisions.number(size)


def sizes_at_hand() -> Mapping[SizeVar, int]:
    """Return the sizes by which questions are decided now, if any."""
    decisions = _current.get()
    return {} if decisions is None else decisions.sizes


def raise_if_told(error: Exception) -> None:
    """Raise what says that a number is needed, if sizes are at hand.

    What is done without the number would be done in another way than with it.
    """
    if isinstance(error, UnknownSizeError) and sizes_at_hand():
        raise error


HOOK.decide = _decide
HOOK.number = _number
