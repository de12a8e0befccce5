"""Compare frameworks fairly on a noisy machine.

Each framework runs in a process of its own and only one is active at a time. A round gives every
framework one slot on the same workload, one right after the other, so that slow phases of the
machine hit all of them; a slot is over when the threads of its process rest. What is reported is
the median over rounds of the ratio within a round, beside the ratio of the best times.

A benchmark file defines `WORKLOADS: dict[framework, Callable[[], dict[name, function]]]` and calls
`main(__file__, WORKLOADS)`. A peer may live in another environment: name its interpreter by
`--peer-python` or the variable WEFT_PEER_PYTHON. With a `tolerance`, workloads return what they
computed (arrays, or lists, tuples and dictionaries of them), or have a function `computed` that
does (None: nothing to compare), and a workload on which the frameworks disagree is reported instead
of being timed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Workloads = dict[str, Callable[[], Any]]
Sketch = list[list[float]]  # of each result: its magnitude, and its projection on fixed weights
PAUSE, MOST_PAUSES = 0.01, 100
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
ROOT = Path(__file__).resolve().parent.parent


def main(
    file: str,
    frameworks: dict[str, Callable[[], Workloads]],
    bars: dict[str, float] | None = None,
    tolerance: float | None = None,
    arguments: Sequence[str] = (),
    asked_for: Sequence[str] = (),
) -> None:
    """Run the benchmark, or serve as a worker process of it, which is given the arguments.

    The first framework is Weft. Those that are to be asked for (by --against) are other ways to use
    it, which its own interpreter runs.
    """
    options = _parse(sys.argv[1:])
    options.own = asked_for
    options.tolerance = tolerance
    if options.worker:
        serve(frameworks[options.worker])
        return
    ours, *peers = frameworks
    usual = [peer for peer in peers if peer not in asked_for]
    chosen = usual if options.against is None else options.against.split(",")
    if unknown := set(chosen) - {*peers}:
        raise SystemExit(f"--against takes some of {', '.join(peers)}. Received: {unknown}")
    compare(file, [ours, *chosen], options, bars or {}, arguments)


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--slot", type=float, default=0.3, help="seconds per framework and round")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="cpu: the time of all threads together, where the machine is not quiet",
    )
    parser.add_argument("--only", help="run workloads whose name contains this")
    parser.add_argument("--against", help="the peers to compare with, separated by commas")
    parser.add_argument(
        "--peer-python",
        default=os.environ.get("WEFT_PEER_PYTHON", sys.executable),
        help="interpreter that has the peers installed",
    )
    return parser.parse_args(argv)


# -- worker -------------------------------------------------------------------------------------


def serve(make: Callable[[], Workloads]) -> None:
    """Answer requests on standard input: a workload's name and a number of seconds."""
    try:
        workloads = make()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({"workloads": list(workloads)}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        fn = workloads[request["name"]]
        if request["slot"]:
            answer = {"seconds": best_time(fn, request["slot"], request["clock"])}
            come_to_rest()
        else:
            compute = getattr(fn, "computed", fn)
            answer = {"sketch": None if compute is None else sketch(compute())}
        print(json.dumps(answer), flush=True)


def sketch(result: Any) -> Sketch:
    """Return a few numbers that tell results apart, for each array in a tree of them."""
    if isinstance(result, dict):
        result = [result[key] for key in sorted(result)]
    if isinstance(result, (list, tuple)):
        return [row for item in result for row in sketch(item)]
    values = np.asarray(result, np.float64).ravel()
    return [[float(np.abs(values).sum()), float(values @ np.cos(np.arange(values.size)))]]


def best_time(fn: Callable[[], None], slot: float, clock: str = "wall") -> float:
    """Return the best time of one call, from batches that together fill the slot."""
    fn()
    batch, now = _batch_size(fn), CLOCKS[clock]
    best, end = float("inf"), time.perf_counter() + slot
    while time.perf_counter() < end:
        start = now()
        for _ in range(batch):
            fn()
        best = min(best, (now() - start) / batch)
    return best


def come_to_rest() -> None:
    """Wait until no thread of this process runs: some libraries' wait busily for a next call.

    OpenBLAS keeps a processor for a tenth of a second, which the next framework would be without.
    """
    for _ in range(MOST_PAUSES):
        before = time.process_time()
        time.sleep(PAUSE)
        if time.process_time() - before < PAUSE / 10:
            return


def _batch_size(fn: Callable[[], None]) -> int:
    start = time.perf_counter()
    fn()
    return max(1, int(2e-3 / max(time.perf_counter() - start, 1e-7)))


# -- comparison ---------------------------------------------------------------------------------


class Worker:
    """A framework in its own process."""

    def __init__(
        self,
        file: str,
        framework: str,
        python: str,
        root: Path = ROOT,
        arguments: Sequence[str] = (),
    ) -> None:
        self.framework = framework
        environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'benchmarks'}"}
        self.process = subprocess.Popen(
            [python, file, "--worker", framework, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        hello = self._read()
        self.missing = hello.get("missing")
        self.workloads: list[str] = hello.get("workloads", [])

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the {self.framework} process ended unexpectedly")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def measure(self, name: str, slot: float, clock: str = "wall") -> float:
        """Return the best time of a workload within one slot."""
        return float(self.ask(name=name, slot=slot, clock=clock)["seconds"])

    def sketch(self, name: str) -> Sketch | None:
        """Return the numbers by which the results of a workload are compared, if it has some."""
        found: Sketch | None = self.ask(name=name, slot=0)["sketch"]
        return found

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(
    file: str,
    frameworks: list[str],
    options: argparse.Namespace,
    bars: dict[str, float],
    arguments: Sequence[str] = (),
) -> None:
    """Print a table of times and ratios; the first framework is compared with the others."""
    workers = []
    for framework in frameworks:
        # Another way to do it with the same framework is in the same environment.
        ours = framework.startswith(frameworks[0]) or framework in options.own
        python = sys.executable if ours else options.peer_python
        worker = Worker(file, framework, python, arguments=arguments)
        if worker.missing:
            print(f"{framework}: not measured ({worker.missing})")
        else:
            workers.append(worker)
    print(_header([w.framework for w in workers]))
    for name in workers[0].workloads:
        if options.only is None or options.only in name:
            able = [w for w in workers if name in w.workloads]
            if options.tolerance is not None and not _agree(able, name, options.tolerance):
                continue
            times = _rounds(able, name, options)
            print(_row(name, [w.framework for w in workers], times, bars.get(name)), flush=True)
    for worker in workers:
        worker.close()


def _agree(workers: list[Worker], name: str, tolerance: float) -> bool:
    """Tell whether all frameworks compute what the first one does; print who does not."""
    ours, *others = [worker.sketch(name) for worker in workers]
    agreed = True
    for worker, found in zip(workers[1:], others, strict=True):
        if found is None:
            continue
        theirs = np.array(found)
        apart = np.shape(ours) != theirs.shape
        if not apart:
            apart = not np.all(np.abs(ours - theirs) <= tolerance * theirs[:, :1] + 1e-12)
        if apart:
            print(f"{name}: {worker.framework} computes something else", flush=True)
            agreed = False
    return agreed


def _rounds(
    workers: list[Worker], name: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {w.framework: [] for w in workers}
    for _ in range(options.rounds):
        for worker in workers:
            times[worker.framework].append(worker.measure(name, options.slot, options.clock))
    return times


def _header(names: list[str]) -> str:
    columns = [f"{name + ' us':>18}" for name in names]
    columns += [f"{f'vs {name}':>18}" for name in names[1:]]
    return f"{'workload':<42}" + "".join(columns) + f"{'bar':>8}"


def _row(name: str, names: list[str], times: dict[str, list[float]], bar: float | None) -> str:
    ours = times[names[0]]
    cells = [f"{min(times[n]) * 1e6:18.2f}" if n in times else f"{'-':>18}" for n in names]
    cells += [_ratio(ours, times[n]) if n in times else f"{'-':>18}" for n in names[1:]]
    return f"{name:<42}" + "".join(cells) + (f"{bar:8.2f}" if bar else "")


def _ratio(ours: list[float], theirs: list[float]) -> str:
    """Return "median of per-round ratios (ratio of the best times)"."""
    median = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    return f"{f'{median:.2f} ({min(ours) / min(theirs):.2f})':>18}"
