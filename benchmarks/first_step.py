"""Measure what a user waits for before the first step: importing, building, compiling, running.

    python benchmarks/first_step.py

The workloads are those of steps.py. Each row is the best of several processes, of which the first
has an empty object cache and the others a full one. Times are in seconds of the CPU, and `wall` is
the whole on a clock.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from typing import Any

from cold_and_warm import cold_and_warm

WORKLOADS = ("mlp", "dqn")
PHASES = ("import", "build", "first run", "second run")


def main() -> None:
    """Print a table of times, or serve as the process that is measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", choices=WORKLOADS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker)))
        return
    print(f"{'program':<10}{'cache':<7}" + "".join(f"{p:>12}" for p in (*PHASES, "wall")))
    for workload in WORKLOADS:
        runs = [cold_and_warm(__file__, workload) for _ in range(options.rounds)]
        for i, cache in enumerate(("cold", "warm")):
            best = {p: min(run[i][p] for run in runs) for p in (*PHASES, "wall")}
            cells = "".join(f"{best[p]:>12.4f}" for p in (*PHASES, "wall"))
            print(f"{workload:<10}{cache:<7}{cells}", flush=True)


def measure(workload: str) -> dict[str, Any]:
    """Go through the phases once; return the time of each."""
    import numpy  # noqa: F401, ICN001  (no part of what is measured)

    start = time.perf_counter()
    times = [time.process_time()]
    import weft  # noqa: F401  (what it takes is the first phase)

    times.append(time.process_time())
    import steps

    run = steps.weft_step(workload)
    times.append(time.process_time())
    for _ in range(2):
        run()
        times.append(time.process_time())
    spent = [after - before for before, after in itertools.pairwise(times)]
    return {**dict(zip(PHASES, spent, strict=True)), "wall": time.perf_counter() - start}


if __name__ == "__main__":
    main()
