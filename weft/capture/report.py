"""What became of the calls of a jitted function: for those who want to know why it is slow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .trace import Trace

MOST_EVENTS = 256  # that are remembered


class JitEvent(NamedTuple):
    """Something that happened once: a recording, or that there was none, or none for more.

    kind    "recorded", "eager" or "apart"
    text    of what, and why
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class JitReport:
    """Counts calls, and remembers what recordings there were and why."""

    def __init__(self) -> None:
        self.events: deque[JitEvent] = deque(maxlen=MOST_EVENTS)
        self.recordings = 0
        self.eager = 0

    def recorded(self, types: str, reasons: Iterable[str]) -> None:
        """Note that a call was recorded, and why those that were known did not hold."""
        self.recordings += 1
        why = "; ".join(reasons)
        self.events.append(JitEvent("recorded", types + (f", because {why}" if why else "")))

    def refused(self, types: str, reason: str, where: str | None) -> None:
        """Note that calls of a kind run eagerly from now on."""
        self.events.append(JitEvent("eager", f"{types}, because: {reason} ({where or '?'})"))

    def kept_apart(self, error: Exception) -> None:
        """Note that a path did not become one program with others, because of an error."""
        self.events.append(JitEvent("apart", f"from other paths: {type(error).__name__}: {error}"))

    def text(self, name: str) -> str:
        """Return all of it, a line each."""
        lines = [f"{name}: {self.recordings} recording(s), {self.eager} call(s) ran eagerly"]
        return "\n".join([*lines, *(f"  {event}" for event in self.events)])


def why_not(traces: Sequence[Trace]) -> list[str]:
    """Return why none of the paths that are known was that of a call."""
    changed = [text for trace in traces for text in trace.python_guards.failed()]
    if changed:
        return list(dict.fromkeys(changed))[:4]
    lines = dict.fromkeys(look.where or "?" for trace in traces for look in trace.looks)
    if lines:
        return [f"a value that is read was another (at {', '.join(lines)})"]
    return ["modules, optimizers or tensors from outside have changed"]


def stats_of(traces: Iterable[Trace]) -> dict[str, Any]:
    """Return what the programs of traces have in common: kernels, memory, runs.

    `fixed_because` says why code is for one size each, where sizes were seen to change.
    """
    kernels: dict[str, int] = {}
    reasons: dict[str, str] = {}
    arena = runs = count = 0
    for trace in traces:
        count, runs = count + 1, runs + trace.runs
        for found in (executable.stats() for executable in trace.executables()):
            arena += found["arena_bytes"]
            reasons |= {k: v for k, v in found.items() if k == "fixed_because"}
            for kind, number in found["kernels"].items():
                kernels[kind] = kernels.get(kind, 0) + number
    found = {"paths": count, "compiled_calls": runs, "kernels": kernels, "arena_bytes": arena}
    return found | reasons
