"""Running stretches of a program captured, as far as they can be.

A stretch is first tried as a whole. Where recording it finds something that cannot be captured (a
print, a number that must be known, a draw of NumPy's) the statement that does it stays as it is
from then on, and what stands before and behind it is captured by itself. What computes too little
to be worth a program stays as well.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Sequence
from sys import gettrace
from typing import Any, Protocol

from ...autodiff.exchangers import exchangers
from ...capture.attempts import NOT_RUN
from ...capture.calls import RecordingRules
from ...capture.debugging import is_debugged
from ...capture.recorded_call import RecordedCall
from ...capture.recorder import NotRecordedError
from ...core.modes import current_interpreter, modes
from .stretches import StepStretch

FEWEST = 4  # operations that are worth a program
MOST = 8192  # operations of a recording
LONGEST = 32  # elements of a container that a captured part is given
VAIN = 6  # recordings that may come to nothing


class Attempted(Protocol):
    """A function that runs by compiled programs, or returns NOT_RUN and says why."""

    @property
    def failure(self) -> BaseException | None:
        """Return why the last call could not be recorded."""

    @property
    def recordings(self) -> int:
        """Return how often it was recorded."""

    def __call__(self, *args: Any) -> Any:
        """Run it."""

    def explain(self) -> str:
        """Return why it was recorded each time, a line each."""


Make = Callable[[Callable[..., Any], RecordingRules], Attempted]
Outcome = tuple[int, dict[str, Any]]


class Steps:
    """The stretches of a module; programs know it as `__weft__`.

    module   the variables of the module
    make     captures a function
    """

    def __init__(
        self, stretches: Sequence[StepStretch], module: dict[str, Any], make: Make
    ) -> None:
        self.stretches = [StretchRun(stretch, module, make, self) for stretch in stretches]

    @property
    def on(self) -> bool:
        """Tell whether steps are captured now: nobody else records, or looks at every line.

        Where processes exchange gradients, each must do it as the others do: a statement that only
        one of them refuses must not make its step another one.
        """
        if exchangers or (modes.interpreters and current_interpreter() is not None):
            return False
        return gettrace() is None or not is_debugged()

    def staying(self) -> list[str]:
        """Return what stays as it is written, a line each, with the reason."""
        return [line for run in self.stretches for line in run.staying()]


class StretchRun:
    """A stretch that runs as far as it can be captured.

    kept   statements that stay as they are, and why
    """

    def __init__(
        self, stretch: StepStretch, module: dict[str, Any], make: Make, steps: Steps
    ) -> None:
        self.stretch = stretch
        self.kept: dict[int, str] = {}
        self._cuts: set[int] = set()
        self._module, self._make, self._steps = module, make, steps
        self._names = [stretch.reads(i) for i in range(len(stretch.statements))]
        self._parts: dict[tuple[int, int], StretchPart] = {}
        self._chains: dict[int, list[StretchPart]] = {}
        self._is_active = stretch.parent is None

    def __call__(self, start: int, given: tuple[Any, ...]) -> Outcome:
        """Run statements from a number on; return how far, and what variables are then."""
        if not self._is_active and not self._becomes_active():
            return start, {}
        while True:
            done, values, stopped = self._run(start, given)
            if stopped is None or not self._learn(stopped) or done > start:
                return done, values

    def _run(
        self, start: int, given: tuple[Any, ...]
    ) -> tuple[int, dict[str, Any], StretchPart | None]:
        """Run captured parts from a statement on; return what came of it, and which one did not."""
        chain = self._chains.get(start)
        if chain is None:
            chain = self._chains[start] = self._chain(start)
        values: dict[str, Any] = {}
        if not chain:
            return start, values, None
        names = self._names[start]
        variables, lists = dict(zip(names, given, strict=False)), given[len(names) :]
        done = start
        for part in chain:
            found = part(variables, lists, start)
            if found is None:
                return done, values, part
            values.update(found)
            variables.update(found)
            done = part.end
            if part.is_vain:
                self._learn(part)
        return done, values, None

    def staying(self) -> list[str]:
        """Return what stays as it is written, a line each, with the reason."""
        name = os.path.basename(self.stretch.filename)
        return [f"{name}:{self.stretch.line(i)}: {why}" for i, why in sorted(self.kept.items())]

    def _becomes_active(self) -> bool:
        """Tell whether the statement around it stays as it is, so that this one is looked at."""
        assert self.stretch.parent is not None
        around, index = self.stretch.parent
        self._is_active = index in self._steps.stretches[around.number].kept
        return self._is_active

    def _chain(self, start: int) -> list[StretchPart]:
        """Return the parts that are captured one after the other from a statement on."""
        count = len(self.stretch.statements)
        end = next((i for i in range(start, count) if i in self.kept), count)
        bounds = [start, *(i for i in sorted(self._cuts) if start < i < end), end]
        return [self._part(a, b) for a, b in itertools.pairwise(bounds) if a < b]

    def _part(self, start: int, end: int) -> StretchPart:
        found = self._parts.get((start, end))
        if found is None:
            made = StretchPart(self.stretch, start, end, self._module, self._make)
            found = self._parts[start, end] = made
        return found

    def _learn(self, part: StretchPart) -> bool:
        """Let what a part could not capture stay as it is; tell whether anything changed."""
        why = part.why_not()
        if why is None:
            return False
        self._chains.clear()
        self._parts.pop((part.start, part.end), None)
        index, reason, whole = why
        if whole:
            self.kept.update(dict.fromkeys(range(part.start, part.end), reason))
        elif index is not None:
            self.kept[index] = reason
        elif part.end - part.start > 1:
            self._cuts.add((part.start + part.end) // 2)
        else:
            self.kept[part.start] = reason
        return True


class StretchPart:
    """Statements of a stretch that are captured together."""

    def __init__(
        self, stretch: StepStretch, start: int, end: int, module: dict[str, Any], make: Make
    ) -> None:
        self.start, self.end = start, end
        self._stretch, self._module = stretch, module
        self._made = stretch.function(start, end, module)
        rules = RecordingRules(pins=False, most=MOST, check=self._check)
        self._attempt = make(self._made.function, rules)
        self._lists: list[Any] = []
        self._places: dict[int, list[int]] = {}
        self._is_small = False
        self._unfit: tuple[int, str] | None = None
        self._runs = 0

    def __call__(
        self, variables: dict[str, Any], lists: Sequence[Any], first: int
    ) -> dict[str, Any] | None:
        """Run it; None if it was not."""
        made = self._made
        args = [variables[name] for name in made.given]
        if made.sinks:
            self._lists = [lists[i] for i in self._positions(first)]
        self._unfit = self._misfit(args)
        if self._unfit is not None:
            return None
        found = self._attempt(*args)
        if found is NOT_RUN:
            return None
        self._runs += 1
        for holder, value in zip(self._lists, found[len(made.results) :], strict=True):
            holder.append(value)
        return dict(zip(made.results, found, strict=False))

    def _positions(self, first: int) -> list[int]:
        """Return where its lists are among those that are given from a statement on."""
        known = self._places.get(first)
        if known is None:
            order = self._stretch.sinks(first)
            known = self._places[first] = [order.index(i) for i in self._made.sinks]
        return known

    def _misfit(self, args: Sequence[Any]) -> tuple[int, str] | None:
        """Return the statement that is given what no program takes, and why."""
        for index, holder in zip(self._made.sinks, self._lists, strict=True):
            if type(holder) is not list:
                return index, f"appends to a {type(holder).__name__}"
        for name, value in zip(self._made.given, args, strict=True):
            if isinstance(value, (list, tuple, dict)) and len(value) > LONGEST:
                why = f"is given a {type(value).__name__} of {len(value)} elements"
                return self._stretch.first_reader(name, self.start, self.end), why
        return None

    @property
    def is_vain(self) -> bool:
        """Tell whether it is recorded over and over, and hardly one recording runs twice."""
        count = self._attempt.recordings
        return count >= VAIN and self._runs < 2 * count

    def _last_line(self) -> int:
        """Return the line that the last recording was made because of; 0 for an unknown one."""
        name = re.escape(os.path.basename(self._stretch.filename))
        found = re.findall(rf"\({name}:(\d+)\)", self._attempt.explain().splitlines()[-1])
        return int(found[0]) if found else 0

    def why_not(self) -> tuple[int | None, str, bool] | None:
        """Return why it was not run: by which statement, the reason, and whether all of it.

        None if it may be run next time.
        """
        if self._unfit is not None:
            return (*self._unfit, False)
        failure = self._attempt.failure
        if failure is None:
            if not self.is_vain:
                return None
            index = self._stretch.index_of(self._last_line(), self.start, self.end)
            return index, "is recorded anew in each trip", index is None
        reason = failure.reason if isinstance(failure, NotRecordedError) else repr(failure)
        return self._index_of(failure), reason, self._is_small

    def _index_of(self, failure: BaseException) -> int | None:
        """Return the statement that a recording ended at."""
        code, trace = self._made.function.__code__, failure.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code is code:
                return self._stretch.index_of(trace.tb_lineno, self.start, self.end)
            trace = trace.tb_next
        name, _, line = (getattr(failure, "where", None) or "").rpartition(":")
        if name != os.path.basename(self._stretch.filename) or not line.isdigit():
            return None
        if int(line) == code.co_firstlineno:  # which is said where no line is known
            return None
        return self._stretch.index_of(int(line), self.start, self.end)

    def _check(self, recording: RecordedCall) -> None:
        """Refuse a recording that is not worth it, or that looked at what it must not."""
        counted = sum(bool(node.inputs) for node in recording.final.nodes)
        self._is_small = counted < FEWEST
        if self._is_small:
            raise NotRecordedError(f"computes {counted} operations")
        if any(recording.watch.has_met(holder) for holder in self._lists):
            raise NotRecordedError("reads a list that it appends to")
        written = {*self._made.given, *self._made.results}
        if self._stretch.scope.is_module and recording.watch.uses_any(self._module, written):
            raise NotRecordedError("uses variables of the module by other names")
