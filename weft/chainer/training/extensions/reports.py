"""Logs, tables and pictures of what was observed."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.imports import is_available
from ....train.extensions.files import write_whole
from ....train.extensions.plot import draw_curves, save_figure
from ...reporter import DictSummary, as_number, is_number
from ..extension import Extension
from ..triggers import as_trigger


class LogReport(Extension):
    """Collect means of what was observed, and write them to a JSON file."""

    def __init__(
        self,
        keys: Sequence[str] | None = None,
        trigger: Any = (1, "epoch"),
        postprocess: Callable[[dict[str, Any]], Any] | None = None,
        filename: str | None = "log",
        **options: Any,
    ) -> None:
        self._keys, self._when, self._postprocess = keys, as_trigger(trigger), postprocess
        self._filename = options.get("log_name", filename)
        self.log: list[dict[str, Any]] = []
        self._summary = DictSummary()

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        observation = trainer.observation
        names = observation.keys() if self._keys is None else self._keys
        self._summary.add({key: observation[key] for key in names if key in observation})
        if not self._when(trainer):
            return
        entry: dict[str, Any] = self._summary.compute_mean()
        updater = trainer.updater
        entry.update(
            epoch=updater.epoch, iteration=updater.iteration, elapsed_time=trainer.elapsed_time
        )
        if self._postprocess is not None:
            self._postprocess(entry)
        self.log.append(entry)
        self._summary = DictSummary()
        if self._filename is not None:
            path = trainer.out_path(self._filename.format(**entry))
            write_whole(
                path, lambda p: p.write_text(json.dumps(self.log, indent=4), encoding="utf-8")
            )

    def serialize(self, serializer: Any) -> None:
        """Write the log to a serializer, or read it from one."""
        text = serializer("_log", json.dumps(self.log))
        self.log = json.loads(str(text))


class PrintReport(Extension):
    """Print chosen columns of a log, one line for each entry."""

    def __init__(
        self, entries: Sequence[str], log_report: Any = "LogReport", out: Any = None
    ) -> None:
        self._entries, self._log_report = list(entries), log_report
        self._out = out
        self._printed = 0
        self._widths = [max(10, len(name)) for name in self._entries]

    def initialize(self, trainer: Any) -> None:
        """Print the header."""
        if isinstance(self._log_report, LogReport):
            self._log_report.initialize(trainer)
        titles = "  ".join(
            f"{name:{width}}" for name, width in zip(self._entries, self._widths, strict=True)
        )
        self._print(titles)

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        log = self._log_report
        if isinstance(log, str):
            log = trainer.get_extension(log)
        else:
            log(trainer)
        while self._printed < len(log.log):
            row = log.log[self._printed]
            cells = (
                self._cell(row.get(n), w) for n, w in zip(self._entries, self._widths, strict=True)
            )
            self._print("  ".join(cells))
            self._printed += 1

    def _cell(self, value: Any, width: int) -> str:
        if value is None:
            return " " * width
        shown = f"{value:.6g}" if isinstance(value, float) else str(value)
        return f"{shown:<{width}}"

    def _print(self, line: str) -> None:
        print(line, file=self._out or sys.stdout, flush=True)


class PlotReport(Extension):
    """Draw curves of observed values (needs matplotlib)."""

    def __init__(
        self,
        y_keys: Any,
        x_key: str = "iteration",
        trigger: Any = (1, "epoch"),
        postprocess: Any = None,
        filename: str = "plot.png",
        **options: Any,
    ) -> None:
        self._y_keys = [y_keys] if isinstance(y_keys, str) else list(y_keys)
        self._x_key, self._when = x_key, as_trigger(trigger)
        self._filename = options.get("file_name", filename)
        self._summary = DictSummary()
        self._points: dict[str, list[tuple[float, float]]] = {key: [] for key in self._y_keys}

    @staticmethod
    def available() -> bool:
        """Tell whether pictures can be drawn."""
        return is_available("matplotlib")

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        self._summary.add({k: v for k, v in trainer.observation.items() if k in self._points})
        if not self._when(trainer):
            return
        x = float(getattr(trainer.updater, self._x_key))
        for key, value in self._summary.compute_mean().items():
            self._points[key].append((x, value))
        self._summary = DictSummary()
        series = {
            key: ([p[0] for p in points], [p[1] for p in points])
            for key, points in self._points.items()
            if points
        }
        if series:
            save_figure(trainer.out_path(self._filename), draw_curves(series))


class ProgressBar(Extension):
    """Show how far training is, in a line of the terminal."""

    def __init__(
        self,
        training_length: Any = None,
        update_interval: int = 100,
        bar_length: int = 50,
        out: Any = None,
    ) -> None:
        self._length, self._interval, self._bar = training_length, update_interval, bar_length
        self._out = out
        self._started = time.perf_counter()

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        if trainer.updater.iteration % self._interval:
            return
        length = self._length or self._of(trainer)
        updater = trainer.updater
        done = updater.iteration if length[1] == "iteration" else updater.epoch_detail
        share = min(done / length[0], 1.0) if length[0] else 0.0
        marks = "#" * int(share * self._bar)
        rate = updater.iteration / max(time.perf_counter() - self._started, 1e-9)
        bar = f"[{marks:.<{self._bar}}] {share:6.2%}"
        line = f"total {bar}  {updater.iteration} iter, {rate:.5g} iters/sec"
        print(line, end="\r", file=self._out or sys.stdout, flush=True)

    def _of(self, trainer: Any) -> tuple[float, str]:
        end = trainer.stop_trigger
        if hasattr(end, "period"):
            return float(end.period), end.unit
        return 0.0, "iteration"

    def finalize(self) -> None:
        """Leave the line."""
        print(file=self._out or sys.stdout)


class FailOnNonNumber(Extension):
    """End training with an error when a parameter is NaN or infinite."""

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        for name, optimizer in trainer.updater.get_all_optimizers().items():
            for path, parameter in optimizer.target.namedparams(include_uninit=False):
                if not np.isfinite(parameter.array).all():
                    raise RuntimeError(
                        f"Kill the process since parameters in optimizer {name!r} diverge: {path} "
                        f"in iteration {trainer.updater.iteration}"
                    )


class MicroAverage(Extension):
    """Report the ratio of two observed sums under another name."""

    def __init__(
        self, numerator_key: str, denominator_key: str, result_key: str, trigger: Any = (1, "epoch")
    ) -> None:
        self._keys, self._result, self._when = (
            (numerator_key, denominator_key),
            result_key,
            as_trigger(trigger),
        )
        self._sums = [0.0, 0.0]

    def __call__(self, trainer: Any) -> None:
        """See an iteration."""
        for i, key in enumerate(self._keys):
            if key in trainer.observation and is_number(trainer.observation[key]):
                self._sums[i] += as_number(trainer.observation[key])
        if self._when(trainer):
            top, bottom = self._sums
            trainer.observation[self._result] = top / bottom if bottom else math.nan
            self._sums = [0.0, 0.0]
