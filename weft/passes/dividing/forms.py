"""What of a value a process has: all of it, its part along an axis, or its part of a sum.

One form becomes another when somebody needs it, and is kept: a part is cut from a whole without
moving anything; parts are gathered or exchanged; parts of a sum are added up, or added up and
divided at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import F
from ...graph.graph import Graph
from ...graph.node import Value
from ...graph.state import CHAIN_STATE
from ...graph.symbol import make_symbol
from .choices import ProcessPlace

Combine = str | Callable[..., Any]


class ValueForms:
    """The forms of one value of the old graph, as values of the new one.

    whole   all of it, if there is that
    parts   parts, by the axis along which they are
    """

    __slots__ = ("_base", "_combine", "_partial", "parts", "whole")

    def __init__(self) -> None:
        self.whole: Value | None = None
        self.parts: dict[int, Value] = {}
        self._partial: Value | None = None
        self._base: Value | None = None
        self._combine: Combine = "sum"

    @classmethod
    def of_whole(cls, value: Value) -> ValueForms:
        """Return a value that is there whole."""
        made = cls()
        made.whole = value
        return made

    @classmethod
    def of_part(cls, value: Value, axis: int) -> ValueForms:
        """Return a value of which there is a part."""
        made = cls()
        made.parts[axis] = value
        return made

    @classmethod
    def of_sum(cls, value: Value, combine: Combine, base: Value | None = None) -> ValueForms:
        """Return a value that parts of all processes make, combined, and added to what all have."""
        made = cls()
        made._partial, made._combine, made._base = value, combine, base
        return made

    @property
    def open_sum(self) -> tuple[Value, Value | None] | None:
        """Return this process's part of a sum that nobody has needed yet, and what is added."""
        if self.whole is not None or self.parts or self._partial is None or self._combine != "sum":
            return None
        return self._partial, self._base

    def take(self, axis: int | None, link: ExchangeChain) -> Value:
        """Return the value whole (None), or this process's part of it along an axis."""
        if axis is None:
            if self.whole is None:
                self.whole = self._joined(link)
            return self.whole
        if axis not in self.parts:
            self.parts[axis] = self._parted(axis, link)
        return self.parts[axis]

    def _joined(self, link: ExchangeChain) -> Value:
        if self.parts:
            axis, part = next(iter(self.parts.items()))
            return link.exchanged(part, "gather", axis)
        assert self._partial is not None
        if not isinstance(self._combine, str):
            return link.combined(self._partial, self._combine)
        found = link.exchanged(self._partial, self._combine)
        return found if self._base is None else link.added(self._base, found)

    def _parted(self, axis: int, link: ExchangeChain) -> Value:
        if self.whole is None and self.parts:
            other, part = next(iter(self.parts.items()))
            return link.exchanged(part, "all_to_all", axis, other)
        if self.whole is None and self._combine == "sum":
            assert self._partial is not None
            found = link.exchanged(self._partial, "scatter", axis)
            return found if self._base is None else link.added(link.cut(self._base, axis), found)
        return link.cut(self.take(None, link), axis)


class ExchangeChain:
    """Adds exchanges to a graph, one behind another, in the same order on all processes.

    last   what the next one, or a node of the program that communicates, comes behind
    """

    def __init__(self, graph: Graph, place: ProcessPlace) -> None:
        self.graph, self.place = graph, place
        self.last: Value | None = None

    def exchanged(self, x: Value, how: str, axis: int = 0, join: int = 0) -> Value:
        """Return what an exchange makes of the values of all processes."""
        found: Value = self._exchange(make_symbol(self.graph, x), how, axis, join).value
        return found

    def combined(self, x: Value, combine: Callable[..., Any]) -> Value:
        """Return what several exchanges make of them."""
        found: Value = combine(make_symbol(self.graph, x), self._exchange).value
        return found

    def cut(self, x: Value, axis: int) -> Value:
        """Return this process's part of a value that all have."""
        part = x.shape[axis] // self.place.size
        first = self.place.rank * part
        spec = (*[(None, None, None)] * axis, (first, first + part, None))
        found: Value = F.getitem(make_symbol(self.graph, x), spec).value
        return found

    def added(self, x: Value, y: Value) -> Value:
        """Return the sum of two values."""
        found: Value = F.add(make_symbol(self.graph, x), make_symbol(self.graph, y)).value
        return found

    def _exchange(self, x: Any, how: str, axis: int = 0, join: int = 0) -> Any:
        if self.last is None:
            self.last = self.graph.state_value(CHAIN_STATE)
        link = make_symbol(self.graph, self.last)
        group, size, _ = self.place
        after, y = F.exchange(link, x, how, group, size, axis, join, "a placement")
        self.last = after.value
        return y
