"""Profiles: where the time of an executable goes, as a table and as a trace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from ....core.errors import ArgumentError
from .listing import KernelInfo
from .tables import aligned, shortened
from .timing import KernelSpans, Span

ORDERS = ("order", "time")
SHOWN_NAMES = 40


class RunTimes(NamedTuple):
    """One run: when it began and ended, and the times of its kernels."""

    begin: float
    end: float
    kernels: list[KernelSpans]


@dataclass(frozen=True)
class KernelProfile:
    """The times of one kernel over several runs.

    calls     how often it ran
    minimum   seconds of its fastest call; rates refer to it
    mean      seconds of a call on average
    share     of the time of all kernels, by their fastest calls
    """

    kernel: KernelInfo
    calls: int
    minimum: float
    mean: float
    share: float

    @property
    def bytes_per_second(self) -> float:
        """Return how fast it moves its bytes."""
        return _rate(self.kernel.bytes, self.minimum)

    @property
    def flops_per_second(self) -> float:
        """Return how fast it computes."""
        return _rate(self.kernel.flops, self.minimum)


class Profile:
    """The times of an executable's kernels over several runs.

    kernels   a KernelProfile for each, in the order in which they run
    seconds   of the fastest run as a whole
    """

    def __init__(self, kernels: Sequence[KernelInfo], runs: Sequence[RunTimes]) -> None:
        self.runs = list(runs)
        self.seconds = min(run.end - run.begin for run in runs)
        times = [[run.kernels[i].seconds for run in runs] for i in range(len(kernels))]
        total = sum(map(min, times))
        self.kernels = [
            KernelProfile(kernel, len(took), min(took), fmean(took), _rate(min(took), total))
            for kernel, took in zip(kernels, times, strict=True)
        ]

    def __repr__(self) -> str:
        return self.table()

    def table(self, sort: str = "order") -> str:
        """Return the times as text; sort by "order" of running or by "time", slowest first."""
        if sort not in ORDERS:
            raise ArgumentError(
                f"Profile.table: sort must be one of {', '.join(ORDERS)}. Received: {sort!r}"
            )
        shown = self.kernels
        if sort == "time":
            shown = sorted(shown, key=lambda found: -found.minimum)
        rows = [_HEAD, *map(_row, shown)]
        return f"{aligned(rows, right=_RIGHT)}\n{self._summary()}"

    def _summary(self) -> str:
        kernels = sum(found.minimum for found in self.kernels)
        return (
            f"{len(self.kernels)} kernels, {len(self.runs)} runs; fastest run "
            f"{self.seconds * 1e6:.1f} us, kernels {kernels * 1e6:.1f} us"
        )

    def save_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the fastest run as a trace that chrome://tracing and ui.perfetto.dev open.

        A row is a thread: kernels stand on that of the caller, with their chunks on the rows of
        the threads that did them.
        """
        run = min(self.runs, key=lambda run: run.end - run.begin)
        infos = [found.kernel for found in self.kernels]
        content = {"traceEvents": list(_events(infos, run)), "displayTimeUnit": "ns"}
        Path(path).write_text(json.dumps(content), encoding="utf-8")


def _rate(amount: float, seconds: float) -> float:
    return amount / seconds if seconds > 0 else 0.0


# -- the table -------------------------------------------------------------------------------------

_HEAD = (
    *("#", "kernel", "kind", "shape", "calls", "min us", "mean us", "share"),
    *("MB", "GB/s", "Mflop", "GF/s", "from"),
)
_RIGHT = frozenset((0, *range(4, 12)))


def _row(found: KernelProfile) -> tuple[str, ...]:
    kernel = found.kernel
    return (
        str(kernel.number),
        shortened(kernel.name, SHOWN_NAMES),
        kernel.kind,
        "x".join(map(str, kernel.shape)) or "1",
        str(found.calls),
        f"{found.minimum * 1e6:.2f}",
        f"{found.mean * 1e6:.2f}",
        f"{found.share:.1%}",
        f"{kernel.bytes / 1e6:.3f}",
        f"{found.bytes_per_second / 1e9:.1f}",
        f"{kernel.flops / 1e6:.3f}",
        f"{found.flops_per_second / 1e9:.1f}",
        shortened(", ".join(kernel.where), SHOWN_NAMES),
    )


# -- the trace -------------------------------------------------------------------------------------

_PROCESS = 1


def _events(kernels: Sequence[KernelInfo], run: RunTimes) -> Iterator[dict[str, Any]]:
    spans = [span for found in run.kernels for span in (found.whole, *found.chunks)]
    for thread in sorted({0, *(span.thread for span in spans)}):
        yield _thread_name(thread)
    yield _event("run", "run", Span(run.begin, run.end), run.begin, {})
    for kernel, found in zip(kernels, run.kernels, strict=True):
        yield _event(kernel.name, kernel.kind, found.whole, run.begin, _arguments(kernel))
        for i, span in enumerate(found.chunks):
            named = f"{kernel.name} [{i}]"
            yield _event(named, "chunk", span, run.begin, {"kernel": kernel.number, "chunk": i})


def _thread_name(thread: int) -> dict[str, Any]:
    name = f"worker {thread}" if thread else "caller"
    place = {"pid": _PROCESS, "tid": thread}
    return {"name": "thread_name", "ph": "M", **place, "args": {"name": name}}


def _event(
    name: str, category: str, span: Span, start: float, arguments: dict[str, Any]
) -> dict[str, Any]:
    """Return a complete event; its times are microseconds from the start of the run."""
    return {
        "name": name,
        "cat": category,
        "ph": "X",
        "ts": (span.begin - start) * 1e6,
        "dur": span.seconds * 1e6,
        "pid": _PROCESS,
        "tid": span.thread,
        "args": arguments,
    }


def _arguments(kernel: KernelInfo) -> dict[str, Any]:
    return {
        "kernel": kernel.number,
        "shape": list(kernel.shape),
        "nodes": list(kernel.nodes),
        "ops": list(kernel.ops),
        "where": list(kernel.where),
        "bytes": kernel.bytes,
        "flops": kernel.flops,
    }
