"""Calls whose sizes hardly ever come again: when to stop making a program for each.

A program takes as long to make as hundreds of eager calls, and is worth it if it is used again.
Sentences of any length in a list are not: nearly every batch is another combination. Where the last
programs for single sizes have each run once, and were long together, sizes that are new run
eagerly, and those that come for the second time are recorded. What is long is told by nodes and not
by a clock, so that a program does the same on every machine; a handful of sizes, and dozens where
programs are small, get theirs in any case.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

from .signature import CallSignature
from .trace import Trace

HANDFUL = 4  # programs that are made however long they are
MOST_IN_VAIN = 1 << 11  # nodes that were recorded in a row for programs that ran once
EACH = 32  # nodes that take as long as what a program takes besides its own
MOST_SEEN = 1 << 14  # combinations of sizes that are remembered, as numbers
MOST_KINDS = 64  # of calls
REASON = (
    "its arguments have other sizes in nearly every call: the last programs were long and ran once "
    "each, so new sizes are compiled when they come again; pad or sort batches to have fewer"
)


class NewSizes:
    """What became of the programs of one function that are for single sizes.

    said   whether somebody was told that calls run eagerly
    """

    def __init__(self) -> None:
        self.said = False
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()

    def note(self, signature: CallSignature, trace: Trace) -> None:
        """Note that a call was recorded."""
        kind = self._kinds.get(signature.sized)
        if kind is None:
            kind = self._kinds[signature.sized] = _Kind()
            while len(self._kinds) > MOST_KINDS:
                self._kinds.popitem(last=False)
        kind.note(trace)

    def are_put_off(self, signature: CallSignature) -> bool:
        """Tell whether a call of sizes that no program has is to run eagerly."""
        kind = self._kinds.get(signature.sized)
        return kind is not None and kind.puts_off(hash(signature.key))


class _Kind:
    """Calls that are alike but for sizes."""

    def __init__(self) -> None:
        self._last: deque[tuple[list[int], int]] = deque()  # programs' counters of runs, and nodes
        self._seen: OrderedDict[int, None] = OrderedDict()

    def note(self, trace: Trace) -> None:
        if trace.pattern is not None:  # it holds for many sizes
            self._last.clear()
            return
        recorded = trace.paths[-1].recording.graph  # a loop made of it is shorter, not cheaper
        self._last.append((trace.counter, EACH + len(recorded)))
        while len(self._last) > HANDFUL and self._nodes() - self._last[0][1] >= MOST_IN_VAIN:
            self._last.popleft()

    def _nodes(self) -> int:
        return sum(nodes for _, nodes in self._last)

    def puts_off(self, key: int) -> bool:
        if len(self._last) < HANDFUL or self._nodes() < MOST_IN_VAIN:
            return False
        if any(runs[0] > 1 for runs, _ in self._last):
            return False
        is_new = key not in self._seen
        self._seen[key] = None
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return is_new
