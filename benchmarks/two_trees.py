"""Weft before and after a change: the benchmarks of this folder, run by two trees in turns.

    python benchmarks/two_trees.py /path/to/a/clone/of/before [steps fused ...] [--rounds N]

A row gives the best times of both trees and the ratio after/before: the median of the ratios within
a round, in which one tree runs right after the other, and in parentheses that of the best times.
A benchmark's line at the end is the median over its workloads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from cold_and_warm import cold_and_warm
from harness import ROOT, Worker
from import_time import import_seconds

SERVED = ("steps", "fused", "gemm", "convolutions", "eager_overhead")
Pairs = list[tuple[float, float]]  # seconds of both trees, round by round


def main() -> None:
    """Print a table for each benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("before", type=Path, help="the root of the other tree")
    parser.add_argument("benchmarks", nargs="*", default=[*SERVED, *OTHERS])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--slot", type=float, default=0.1, help="seconds per tree and round")
    parser.add_argument("--only", default="", help="run workloads whose name contains this")
    options = parser.parse_args()
    for name in options.benchmarks:
        print(f"{name:<44}{'before':>12}{'after':>12}{'after/before':>20}")
        measured = OTHERS[name](options) if name in OTHERS else _served(name, options)
        medians = [_report(workload, pairs) for workload, pairs in measured]
        if medians:
            print(f"{name}: median {statistics.median(medians):.3f}, most {max(medians):.3f}\n")


def _report(workload: str, pairs: Pairs) -> float:
    before, after = min(a for a, _ in pairs), min(b for _, b in pairs)
    median = statistics.median(b / a for a, b in pairs)
    figures = f"{before * 1e6:10.2f}us{after * 1e6:10.2f}us{median:13.3f} ({after / before:.3f})"
    print(f"  {workload:<42}{figures}", flush=True)
    return median


def _served(name: str, options: argparse.Namespace) -> Iterator[tuple[str, Pairs]]:
    """Yield the rounds of each workload that both trees have."""
    os.environ.update(OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
    trees = (options.before.resolve(), ROOT)
    files = [str(tree / "benchmarks" / f"{name}.py") for tree in trees]
    pair = [
        Worker(file, "weft", sys.executable, tree) for file, tree in zip(files, trees, strict=True)
    ]
    for workload in (w for w in pair[1].workloads if options.only in w):
        if workload in pair[0].workloads:
            yield workload, [_turn(pair, workload, options.slot) for _ in range(options.rounds)]
    for worker in pair:
        worker.close()


def _turn(pair: list[Worker], workload: str, slot: float) -> tuple[float, float]:
    before, after = (worker.measure(workload, slot) for worker in pair)
    return before, after


def _compile_time(options: argparse.Namespace) -> Iterator[tuple[str, Pairs]]:
    """Yield the CPU seconds of compiling with an empty and with a full cache."""
    files = [str(tree / "benchmarks/compile_time.py") for tree in (options.before.resolve(), ROOT)]
    for program in ("distinct", "equal"):
        rounds = [[cold_and_warm(file, program) for file in files] for _ in range(options.rounds)]
        for i, cache in enumerate(("cold", "warm")):
            yield f"{program} {cache}", [(a[i]["cpu"], b[i]["cpu"]) for a, b in rounds]


def _import_time(options: argparse.Namespace) -> Iterator[tuple[str, Pairs]]:
    trees = (options.before.resolve(), ROOT)
    for tree in trees:
        import_seconds("weft", tree)  # writes the bytecode files
    seconds = [[import_seconds("weft", tree) for tree in trees] for _ in range(3 * options.rounds)]
    yield "import weft after numpy", [(a, b) for a, b in seconds]


OTHERS: dict[str, Callable[[argparse.Namespace], Iterator[tuple[str, Pairs]]]] = {
    "compile_time": _compile_time,
    "import_time": _import_time,
}

if __name__ == "__main__":
    main()
