"""Programs written for PyTorch, unchanged: an epoch by `weft run --jit` beside PyTorch's.

    python benchmarks/torch_programs.py --peer-python PATH [--rounds 5] [--threads 2]
    python benchmarks/torch_programs.py --only gpt --clock cpu --threads 1
    python benchmarks/torch_programs.py --eager        # `weft run` without --jit

The programs are those of tests/torch/programs, in the sizes of what they are the shape of. Each
runs in a process of its own for every framework, one epoch at a time, in turns; the first epoch,
in which Weft compiles, is given apart. A row has the least time of an epoch of both, the median
over rounds of their ratio, and the largest relative difference of the losses that they printed. The
bar is 0.8 of PyTorch's eager time. With `--clock cpu` processor time is compared, which is fairer
on a machine with other work, for one thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from harness import ROOT

BAR = 0.8
FOLDER = ROOT / "tests" / "torch" / "programs"
REST = 0.15  # seconds after which the threads of a process that has done its epoch rest


class Program:
    """A program in a process, which runs an epoch when it is told to."""

    def __init__(self, command: list[str], name: str, options: argparse.Namespace) -> None:
        count = str(options.threads)
        threads = {"OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "WEFT_NUM_THREADS": count}
        epochs = {"PROGRAM_EPOCHS": str(options.rounds + 1), "PYTHONPATH": str(ROOT)}
        self.name, self.clock = name, 1 if options.clock == "cpu" else 0
        self.numbers: list[float] = []
        self.process = subprocess.Popen(
            [*command, str(FOLDER / f"{name}.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads, **epochs},
        )

    def epoch(self) -> float:
        """Return what one epoch took."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        for line in self._lines():
            words = line.split()
            if words[:1] == ["epoch"]:
                time.sleep(REST)
                return float(words[1 + self.clock])
        raise SystemExit(f"{self.name} ended before its epoch did: {self.process.args}")

    def losses(self) -> list[float]:
        """Return the numbers that the program prints in the end."""
        for _ in self._lines():
            pass
        self.process.wait()
        return self.numbers

    def _lines(self):
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                self.numbers.append(float(line))
            except ValueError:
                yield line


def compare(name: str, options: argparse.Namespace) -> None:
    """Print the row of a program."""
    ours = [sys.executable, "-m", "weft.cli", "run", *([] if options.eager else ["--jit"])]
    weft, torch = (Program(c, name, options) for c in (ours, [options.peer_python]))
    first = weft.epoch(), torch.epoch()
    times = [(weft.epoch(), torch.epoch()) for _ in range(options.rounds)]
    ratio = statistics.median(a / b for a, b in times)
    a, b = (min(column) for column in zip(*times, strict=True))
    pairs = [*zip(weft.losses(), torch.losses(), strict=False)]
    apart = max((abs(x - y) / max(abs(y), 1e-3) for x, y in pairs), default=float("nan"))
    row = f"{name:<16}{a:10.4f}{b:10.4f}{ratio:8.2f} ({a / b:.2f}){BAR:7.2f}"
    print(f"{row}{first[0]:10.2f}{apart:12.1e}", flush=True)


def measures_epochs(path: Path) -> bool:
    """Tell whether a program times its epochs: some only show what one process cannot."""
    return "in epochs(" in path.read_text()


def main() -> None:
    """Print a row for each program."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5, help="epochs that are measured")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--eager", action="store_true", help="run without --jit")
    parser.add_argument("--peer-python", default=os.environ.get("WEFT_PEER_PYTHON", sys.executable))
    options = parser.parse_args()
    print(
        f"{'seconds an epoch':<16}{'Weft':>10}{'PyTorch':>10}{'ratio':>8} (best)    bar"
        f"{'first':>10}{'losses apart':>14}"
    )
    for path in sorted(Path(FOLDER).glob("*.py")):
        if measures_epochs(path) and options.only in path.stem:
            compare(path.stem, options)


if __name__ == "__main__":
    main()
