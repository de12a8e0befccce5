"""Traces of a function that hold for many sizes, and these for the sizes of calls that there were.

The latter take what they are fed at once, as traces for known shapes do, and share everything
with the former. Only so many are kept: one for new sizes is made in milliseconds.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .calls import JitCall
from .outside import Leaves
from .recorder import NotRecordedError
from .signature import CallSignature
from .sizes import SizedCalls, has_sizes
from .trace import Trace

MOST_KINDS = 64  # of calls, each with programs that have arenas
MOST_BOUND = 256  # combinations of sizes
MOST_PATHS = 16  # through one


class SizedTraces:
    """What one function has for calls whose sizes change.

    bound   traces for the shapes of calls that there were, by the signatures of these
    """

    def __init__(self) -> None:
        self.bound: OrderedDict[Any, list[Trace]] = OrderedDict()
        self._kinds: dict[Any, SizedCalls] = {}

    def find(self, signature: CallSignature, leaves: Leaves) -> Iterator[Trace]:
        """Yield what holds for the sizes of a call."""
        alike = self._kinds.get(signature.sized)
        return iter(()) if alike is None else alike.find(leaves)

    def bind(self, signature: CallSignature, trace: Trace) -> None:
        """Keep what has run a call as that which runs calls of these shapes at once."""
        if trace.has_sized_places:  # the shapes of arguments are not all there is
            return
        bound = self.bound.setdefault(signature.key, [])
        bound.insert(0, trace.for_shapes())
        _count_runs(bound[MOST_PATHS:])
        del bound[MOST_PATHS:]
        while len(self.bound) > MOST_BOUND:
            _, dropped = self.bound.popitem(last=False)
            _count_runs(dropped)

    def record(self, name: str, signature: CallSignature, call: JitCall) -> Trace | None:
        """Return a recording of a call for many sizes; None if none of them changes, or can."""
        alike = self._alike(signature)
        pattern = alike.pattern(call.leaves)
        while pattern is not None:
            alike.tried = pattern
            try:
                recording = call.record(name, signature.fed, alike.sizes(pattern, call.leaves))
            except (NotRecordedError, Exception):  # for its own sizes it may still be possible
                return None
            narrower = alike.without_fixed(pattern, recording, call.leaves)
            if narrower is None:
                return Trace(recording, signature.fed, pattern)
            pattern = narrower if has_sizes(narrower) else None
        alike.tried = None
        return None

    def see(self, signature: CallSignature, call: JitCall, trace: Trace) -> None:
        """Note a call that was recorded; keep what came of it if it is for many sizes."""
        self._alike(signature).see(call.leaves, trace)

    def traces(self) -> list[Trace]:
        """Return what is for many sizes, with all runs counted."""
        for bound in self.bound.values():
            _count_runs(bound)
        return [trace for alike in self._kinds.values() for trace in alike.traces()]

    def _alike(self, signature: CallSignature) -> SizedCalls:
        """Return what is known of calls that are alike but for sizes."""
        while len(self._kinds) >= MOST_KINDS and signature.sized not in self._kinds:
            self._kinds.pop(next(iter(self._kinds)))
        return self._kinds.setdefault(signature.sized, SizedCalls())


def _count_runs(bound: list[Trace]) -> None:
    """Add the runs for some sizes to those of what is for many."""
    for trace in bound:
        if trace.origin is not None:
            trace.origin.runs += trace.runs
            trace.runs = 0
