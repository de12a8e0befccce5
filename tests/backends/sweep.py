"""Hold a back end to the reference in all that there is, whatever its compiler does.

    python -m tests.backends.sweep opencl:0 --log sweep.jsonl [--only registry] [--seconds 300]
        [--last-first]

What `pytest --long tests/backends/test_conformance.py` runs, in pieces, each of them in a process
that is ended when it takes too long: a compiler that hangs, or a driver that crashes, costs a
sample and not the sweep. A piece that fails is taken apart until it is known which sample fails.
Results are written to the log; what is in it already is not run again. A second process may begin
at the end, and meet the first one. `shim:0` and `shim:1` (shim.py) are devices here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import traceback
from collections import Counter
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, NamedTuple

FIRST_SECONDS = 60  # that a process may take to begin
SIZES = {
    "registry": 24,
    "float32": 24,
    "derivatives": 12,
    "control": 4,
    "graphs": 5,
    "smooth graphs": 5,
}


class Piece(NamedTuple):
    """A part of one kind of programs: those from a number on, up to another."""

    what: str
    first: int
    last: int

    @property
    def halves(self) -> list[Piece]:
        """Return two smaller ones."""
        middle = (self.first + self.last) // 2
        return [self._replace(last=middle), self._replace(first=middle)]

    @property
    def numbers(self) -> set[tuple[str, int]]:
        """Return its programs, by kind and number."""
        return {(self.what, number) for number in range(self.first, self.last)}

    @property
    def is_single(self) -> bool:
        """Tell whether it cannot be taken apart."""
        return self.last - self.first == 1


# -- in the process that is watched ----------------------------------------------------------------


def serve(device: str) -> None:
    """Run pieces, one for each line that is read; write a line of results for each."""
    from tests.backends.programs import KINDS  # noqa: PLC0415  (the other process needs none of it)
    from tests.backends.shim import install  # noqa: PLC0415  (likewise)

    install()
    print(json.dumps({kind: len(programs) for kind, programs in KINDS.items()}), flush=True)
    for line in sys.stdin:
        what, first, last = json.loads(line)
        try:
            answer = KINDS[what].failures(device, first, last)
        except Exception as error:  # a piece that cannot be run is taken apart
            answer = {"error": "".join(traceback.format_exception_only(error))[:600]}
        print(json.dumps(answer), flush=True)


# -- in the one that watches -----------------------------------------------------------------------


class Watched:
    """A process that runs pieces, and is replaced when it takes too long or ends."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.counts: dict[str, int] = {}
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin anew."""
        self.end()
        command = [sys.executable, "-m", "tests.backends.sweep", self.device, "--serve"]
        self._process = subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._lines: Queue[str] = Queue()
        Thread(target=self._read, args=(self._process, self._lines), daemon=True).start()
        self.counts = json.loads(self._lines.get(timeout=FIRST_SECONDS * 5))

    def _read(self, process: subprocess.Popen[str], lines: Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put("")  # it has ended

    def run(self, piece: Piece, seconds: float) -> dict[str, Any]:
        """Return the results of a piece; an error if it has taken too long, or ended."""
        if self._process is None:
            self.start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(piece) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=seconds)
        except Empty:
            self.end()
            return {"error": f"hung: no answer within {seconds:.0f} seconds"}
        if line:
            found: dict[str, Any] = json.loads(line)
            return found
        self.end()
        return {"error": "the process has ended"}

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def sweep(
    watched: Watched, log: Path, only: list[str], seconds: float, *, last_first: bool = False
) -> Counter[str]:
    """Run all that is not in the log; return how many of each kind passed, failed and so on.

    The log is looked at before each piece, for another process may write to it from the other end.
    """
    watched.start()
    pieces = [
        Piece(what, i, min(i + size, watched.counts[what]))
        for what, size in SIZES.items()
        for i in range(0, watched.counts[what], size)
        if not only or what in only
    ][:: -1 if last_first else 1]
    with log.open("a") as file:
        while pieces:
            piece = pieces.pop(0)
            done = {n for entry in _entries(log) for n in Piece(*entry["piece"]).numbers}
            if piece.numbers <= done:
                continue
            found = watched.run(piece, seconds) if piece.numbers.isdisjoint(done) else None
            if found is None or ("error" in found and not piece.is_single):
                pieces[:0] = piece.halves
                continue
            file.write(json.dumps({"piece": piece, **found}) + "\n")
            file.flush()
    return totals(_entries(log))


def _entries(log: Path) -> list[dict[str, Any]]:
    """Return what is in the log, each program once."""
    found, seen = [], set[tuple[str, int]]()
    for line in log.read_text().splitlines():
        entry = json.loads(line)
        numbers = Piece(*entry["piece"]).numbers
        if numbers.isdisjoint(seen):
            seen |= numbers
            found.append(entry)
    return found


def totals(entries: list[dict[str, Any]]) -> Counter[str]:
    """Return how many programs of each kind passed, differ, have no such program, or hang."""
    found: Counter[str] = Counter()
    for entry in entries:
        what = entry["piece"][0]
        if "error" in entry:
            found[f"{what} without result"] += 1
            continue
        found[f"{what} passed"] += entry["run"] - len(entry["failed"])
        found[f"{what} differ"] += len(entry["failed"])
        found[f"{what} not for graphs, or without derivatives"] += entry["left out"]
    return found


def main() -> None:
    """Sweep, or run pieces for a process that does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("device")
    parser.add_argument("--log", type=Path, default=Path("sweep.jsonl"))
    parser.add_argument("--only", nargs="*", default=[], choices=list(SIZES))
    parser.add_argument("--seconds", type=float, default=300.0, help="that a piece may take")
    parser.add_argument("--last-first", action="store_true", help="begin at the end")
    parser.add_argument("--serve", action="store_true", help="run pieces that are read")
    options = parser.parse_args()
    if options.serve:
        serve(options.device)
        return
    watched = Watched(options.device)
    try:
        found = sweep(
            watched, options.log, options.only, options.seconds, last_first=options.last_first
        )
        for name, count in found.items():
            print(f"{count:>6} {name}")
    finally:
        watched.end()


if __name__ == "__main__":
    main()
