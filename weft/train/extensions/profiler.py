"""Profiler: where the time of training goes."""

from __future__ import annotations

import cProfile
import pstats
from io import StringIO
from typing import TYPE_CHECKING

from ..checks import checked_int
from ..extension import PRIORITY_READER, Extension

if TYPE_CHECKING:
    from ..trainer import Trainer


class Profiler(Extension):
    """Profile some iterations by function, and all of them by phase (update, each extension).

    start      the iteration of the run after which to begin, past warm-up
    count      how many iterations to profile by function; 0: none
    top        how many functions to list
    filename   the report in the output directory; beside it `.prof` holds the profile, for snakeviz
               and the like
    """

    priority = PRIORITY_READER

    def __init__(
        self, start: int = 5, count: int = 20, *, top: int = 30, filename: str = "profile.txt"
    ) -> None:
        self.start = checked_int("start", start, 0)
        self.count = checked_int("count", count, 0)
        self.top = checked_int("top", top, 0)
        self.filename = filename
        self._profile: cProfile.Profile | None = None
        self._running = False
        self._seen = 0

    def initialize(self, trainer: Trainer) -> None:
        """Start counting iterations anew."""
        self._profile, self._seen = None, 0
        self._begin_if_due()

    def observe(self, trainer: Trainer) -> None:
        """Begin or end profiling after an iteration."""
        self._seen += 1
        if self._running and self._seen >= self.start + self.count:
            self._pause()
        self._begin_if_due()

    def finish(self, trainer: Trainer) -> None:
        """Write the report."""
        self._pause()
        report = phase_table(trainer)
        if self._profile is not None:
            self._profile.dump_stats(trainer.out_path(self.filename).with_suffix(".prof"))
            report += "\n" + self._function_table()
        trainer.out_path(self.filename).write_text(report, encoding="utf-8")

    def finalize(self) -> None:
        """Stop profiling, also after an error."""
        self._pause()

    def _begin_if_due(self) -> None:
        if self.count and self._seen == self.start and self._profile is None:
            self._profile = cProfile.Profile()
            self._profile.enable()
            self._running = True

    def _pause(self) -> None:
        if self._running and self._profile is not None:
            self._profile.disable()
            self._running = False

    def _function_table(self) -> str:
        assert self._profile is not None
        text = StringIO()
        pstats.Stats(self._profile, stream=text).sort_stats("cumulative").print_stats(self.top)
        return text.getvalue()


def phase_table(trainer: Trainer) -> str:
    """Return the seconds spent in updates and in each extension as a table."""
    total = sum(trainer.timings.values()) or 1.0
    rows = sorted(trainer.timings.items(), key=lambda item: -item[1])
    lines = [f"{'phase':<30}{'seconds':>12}{'share':>9}"]
    lines += [f"{name:<30}{seconds:>12.4f}{seconds / total:>9.1%}" for name, seconds in rows]
    return "\n".join(lines) + "\n"
