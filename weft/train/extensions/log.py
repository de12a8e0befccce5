"""Log: one line per epoch, as JSON in a file and as a table on the console."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..extension import PRIORITY_READER, Extension
from ..summary import Summary
from .files import write_text

if TYPE_CHECKING:
    from ..trainer import Trainer

_HEADER_EVERY = 30  # rows, so that the names stay on the screen


class Log(Extension):
    """Write the means of what was observed since the last line.

    filename   JSON lines in the output directory; None: no file
    console    print a table
    keys       which values the table shows (default: all numbers)

    A resumed run continues the file after the line where it takes up the work. NaN and infinity,
    which JSON lacks, are written as the strings that Python's `float` reads.
    """

    trigger = (1, "epoch")
    priority = PRIORITY_READER
    _saved = ("_summary",)  # the means of the line that is not complete yet

    def __init__(
        self,
        filename: str | None = "log.jsonl",
        *,
        console: bool = True,
        keys: Sequence[str] | None = None,
    ) -> None:
        self.filename = filename
        self.console = console
        self.keys = keys
        self.entries: list[dict[str, Any]] = []
        self._summary = Summary()
        self._table = LogTable()

    def initialize(self, trainer: Trainer) -> None:
        """Read the lines of the run that is continued, and drop those beyond its checkpoint."""
        self._table = LogTable()
        if self.filename is None:
            return
        path = trainer.out_path(self.filename)
        found = read_log(path) if path.is_file() else []
        self.entries = [entry for entry in found if entry["iteration"] <= trainer.iteration]
        if path.is_file():
            text = "".join(_json_line(entry) for entry in self.entries)
            write_text(path, text)

    def observe(self, trainer: Trainer) -> None:
        """Take the observation of an iteration into the means."""
        self._summary.add(trainer.observation)

    def __call__(self, trainer: Trainer) -> None:
        """Write a line."""
        entry = {
            "epoch": _compact(trainer.epoch_detail),
            "iteration": trainer.iteration,
            **self._summary.means(),
            "elapsed_time": trainer.elapsed_time,
        }
        self._summary.reset()
        self.entries.append(entry)
        if self.filename is not None:
            with trainer.out_path(self.filename).open("a", encoding="utf-8") as file:
                file.write(_json_line(entry))
        if self.console:
            for line in self._table.lines(self._shown(entry)):
                trainer.write(line)

    def _shown(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        if self.keys is None:
            return dict(entry)
        return {key: entry.get(key) for key in ("epoch", "iteration", *self.keys, "elapsed_time")}


class LogTable:
    """Rows of numbers under a header, which is repeated when the columns change.

    >>> table = LogTable()
    >>> for line in table.lines({"epoch": 1, "loss": 0.25}):
    ...     print(line)
    epoch        loss
        1        0.25
    """

    def __init__(self) -> None:
        self._columns: list[str] = []
        self._rows = 0

    def lines(self, row: Mapping[str, Any]) -> list[str]:
        """Return the lines to print for a row: the header if it is due, and the row."""
        lines = []
        new = [key for key in row if key not in self._columns]
        if new or self._rows % _HEADER_EVERY == 0:
            self._columns = list(row) if new else self._columns
            lines.append("  ".join(_title(key).rjust(_width(key)) for key in self._columns))
        self._rows += 1
        cells = (_cell(row.get(key)).rjust(_width(key)) for key in self._columns)
        return [*lines, "  ".join(cells)]


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """Return the entries of a log; a last line that was cut off by a crash is left out."""
    entries = []
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and isinstance(entry.get("iteration"), int):
            entries.append({key: _from_json(value) for key, value in entry.items()})
    return entries


def _json_line(entry: Mapping[str, Any]) -> str:
    plain = {key: _to_json(value) for key, value in entry.items()}
    return json.dumps(plain, allow_nan=False) + "\n"


def _to_json(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _from_json(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value


def _compact(value: float) -> float:
    return int(value) if value == int(value) else value


def _title(key: str) -> str:
    return "elapsed" if key == "elapsed_time" else key


def _width(key: str) -> int:
    return max(len(_title(key)), 5 if key == "epoch" else 10)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.5g}"
