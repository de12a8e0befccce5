"""Who made a NaN: run a program node by node, and go back from what it is found in.

A NaN that is lost on the way, in the arm that a `where` does not take, is nobody's concern. One
that came from outside, by a feed or a state, no operation made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from ..core.anomaly import has_nan, searching
from ..core.errors import AnomalyError
from .layout import ProgramStep
from .run import Array, Program, Results, Sizes, nan_error


def search_nan(program: Program, feeds: Sequence[Array], sizes: Sizes | None = None) -> Results:
    """Run a program; raise AnomalyError for the operation that made a NaN of its results, if any.

    Nothing is written. In control flow the operation inside is named.
    """
    try:
        return _NanSearch(program).run(feeds, {} if sizes is None else sizes)
    except AnomalyError as error:
        error.trapped = True
        raise


class _Culprit(NamedTuple):
    """A step that made a NaN of operands without any, and how to take it again."""

    step: ProgramStep
    operands: list[Any]
    sizes: Sizes


class _NanSearch:
    """One run of a program, of which it is known where NaNs were."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._taken: dict[int, ProgramStep] = {}  # by the slots of their results that have a NaN
        self._culprits: dict[int, _Culprit] = {}  # likewise, in the order in which they were met

    def run(self, feeds: Sequence[Array], sizes: Sizes) -> Results:
        """Run; raise if one of the results has a NaN that was made on the way."""
        token = searching.set(None)  # bodies run as ever, until one is known to be at fault
        try:
            results = self.program.run(feeds, sizes, self._take)
        finally:
            searching.reset(token)
        wanted = [*self.program.fetches, *(value for _, value in self.program.commits)]
        culprit = self._behind([self.program.slot(value) for value in wanted])
        if culprit is not None:
            self._raise(culprit)
        return results

    def _take(self, step: ProgramStep, slots: list[Any], sizes: Sizes) -> None:
        operands = [slots[i] for i in step.inputs]
        before = dict(sizes) if step.nested else sizes
        self.program.take(step, slots, sizes)
        bad = [i for i in step.outputs if i >= 0 and has_nan(slots[i])]
        self._taken.update(dict.fromkeys(bad, step))
        if bad and not any(map(has_nan, operands)):
            culprit = _Culprit(step, operands, before)
            self._culprits.update(dict.fromkeys(bad, culprit))

    def _behind(self, slots: list[int]) -> _Culprit | None:
        """Return the first step that made a NaN which led to one of some values."""
        found: set[int] = set()
        seen: set[int] = set()
        while slots:
            slot = slots.pop()
            if slot in seen or slot not in self._taken:
                continue
            seen.add(slot)
            if slot in self._culprits:
                found.add(slot)
            slots += self._taken[slot].inputs
        return next((c for slot, c in self._culprits.items() if slot in found), None)

    def _raise(self, culprit: _Culprit) -> NoReturn:
        if culprit.step.nested:
            self._look_inside(culprit)
        raise nan_error(culprit.step.node, culprit.operands)

    def _look_inside(self, culprit: _Culprit) -> None:
        """Take control flow again, while its bodies are searched too."""
        slots: list[Any] = [None] * (self.program.layout.size + 1)
        for i, operand in zip(culprit.step.inputs, culprit.operands, strict=True):
            slots[i] = operand
        token = searching.set(search_nan)
        try:
            self.program.take(culprit.step, slots, dict(culprit.sizes))
        finally:
            searching.reset(token)


def came_with(program: Program, feeds: Sequence[Array]) -> str | None:
    """Return the name of a feed or a state that has a NaN before a program runs."""
    fed = (v.name for v, array in zip(program.feeds, feeds, strict=True) if has_nan(array))
    held = (state.name for _, state in program.states if has_nan(state.read()))
    return next(fed, None) or next(held, None)
