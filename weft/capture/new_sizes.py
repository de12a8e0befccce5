"""Calls whose sizes hardly ever come again: when to stop making a program for each.

A program takes as long to make as hundreds of eager calls, and is worth it if it is used again.
Sentences of any length in a list are not: nearly every batch is another combination. Where the last
programs for single sizes have each run once, sizes that are new run eagerly, and those that come
for the second time are recorded. So a handful of sizes gets its programs in any case.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable

from .signature import CallSignature
from .trace import Trace

MOST_IN_VAIN = 4  # programs in a row that ran once
MOST_SEEN = 1 << 14  # combinations of sizes that are remembered, as numbers
MOST_KINDS = 64  # of calls
REASON = (
    f"its arguments have other sizes in nearly every call: the last {MOST_IN_VAIN} programs ran "
    "once each, so new sizes are compiled when they come again; pad or sort batches to have fewer"
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
        self._runs: deque[list[int]] = deque(maxlen=MOST_IN_VAIN)  # counters of the last programs
        self._seen: OrderedDict[int, None] = OrderedDict()

    def note(self, trace: Trace) -> None:
        if trace.pattern is None:
            self._runs.append(trace.counter)
        else:  # it holds for many sizes
            self._runs.clear()

    def puts_off(self, key: int) -> bool:
        if len(self._runs) < MOST_IN_VAIN or any(runs[0] > 1 for runs in self._runs):
            return False
        is_new = key not in self._seen
        self._seen[key] = None
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return is_new
