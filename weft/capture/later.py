"""Programs that are compiled in the background, while calls run eagerly."""

from __future__ import annotations

from ..eager.background import background
from .outside import Leaves
from .trace import Trace


class LaterTraces:
    """The traces of a function whose programs are not there yet."""

    def __init__(self) -> None:
        self._pending: dict[int, Trace] = {}

    def begin(self, trace: Trace, leaves: Leaves) -> bool:
        """Have the program of a trace compiled; return False where no thread can do it."""
        if trace.split_run is not None:  # what it is fed follows from a first part of it
            return False
        given = trace.held.extended(leaves)
        arrays = trace.call.arrays([get(given) for get in trace.feeds])

        def compile_now() -> None:
            try:
                trace.call.executable(arrays)
            finally:  # what failed is compiled again by a call, which says what is wrong
                self._pending.pop(id(trace), None)

        self._pending[id(trace)] = trace
        if background.submit(compile_now):
            return True
        del self._pending[id(trace)]
        return False

    def is_pending(self, trace: Trace) -> bool:
        """Tell whether the program of a trace is not there yet."""
        return id(trace) in self._pending
