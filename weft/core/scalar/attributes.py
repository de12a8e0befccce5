"""Attributes of an operator while its `lower` rule runs: parameters, unless the rule looks at them.

A number that only meets values (`x * slope`) stays a parameter of the kernel that is made, so that
one kernel serves all numbers. A rule that compares an attribute, or computes with it, gets what it
is, and the kernel is for that alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")


class Attribute:
    """An attribute known by name; one that is looked at is recorded in `seen`."""

    __slots__ = ("name", "negative", "seen", "value")

    def __init__(self, name: str, value: Any, seen: set[str], negative: bool = False) -> None:
        self.name = name
        self.value = value
        self.seen = seen
        self.negative = negative

    @property
    def text(self) -> str:
        """Return what it is called."""
        return f"-{self.name}" if self.negative else self.name

    def look(self) -> Any:
        """Return what it is: what follows is for that alone."""
        self.seen.add(self.name)
        return -self.value if self.negative else self.value

    def __neg__(self) -> Attribute:
        return Attribute(self.name, self.value, self.seen, not self.negative)

    def __abs__(self) -> Any:
        return abs(self.look())

    def __bool__(self) -> bool:
        return bool(self.look())

    def __float__(self) -> float:
        return float(self.look())

    def __index__(self) -> int:
        return operator.index(self.look())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.look())

    def __len__(self) -> int:
        return len(self.look())

    def __getitem__(self, index: Any) -> Any:
        return self.look()[index]

    __hash__ = None  # type: ignore[assignment]  # equality looks at it


def _looking(name: str, turned: bool) -> Callable[[Attribute, Any], Any]:
    run = getattr(operator, name)

    def method(self: Attribute, other: Any) -> Any:
        number = self.look()
        other = other.look() if isinstance(other, Attribute) else other
        return run(other, number) if turned else run(number, other)

    return method


for _name in (*_COMPARISONS, *_ARITHMETIC):
    setattr(Attribute, f"__{_name}__", _looking(_name, False))
for _name in _ARITHMETIC:
    setattr(Attribute, f"__r{_name}__", _looking(_name, True))
