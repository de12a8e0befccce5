"""What the NaN trap costs: whole training steps with `wf.config.nan_trap` on and off.

    python benchmarks/nan_trap.py
    python benchmarks/nan_trap.py --only mlp,dqn --seconds 20

The workloads are those of steps.py, as graphs run by a session and as functions under wf.jit, on
one thread. Steps run in turn, and the least processor time of a step counts, of many. Each is made
twice, because where its memory lies makes a step faster or slower: `made twice` is how much slower
the worse of two steps without the trap is, which do the same.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

from step_nets import WORKLOADS
from steps import Run, eager_step, graph_step

import weft as wf

STEPS = 3  # that are timed together
MADE = 2  # times that each step is made
BAR = 1.02


def ratio(make: Callable[[], Run], seconds: float) -> tuple[float, float, float]:
    """Return the milliseconds of a step without the trap, what the trap makes of it, and chance."""
    runs = [(on, make()) for _ in range(MADE) for on in (False, True)]
    best = [float("inf")] * len(runs)
    for on, run in runs:
        timed(run, on)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for i, (on, run) in enumerate(runs):
            best[i] = min(best[i], timed(run, on))
    plain, trapped = best[::2], best[1::2]
    return min(plain) * 1e3, min(trapped) / min(plain), max(plain) / min(plain)


def timed(run: Run, trapped: bool) -> float:
    """Return the processor seconds of a step."""
    wf.config.nan_trap = trapped
    run()  # not timed: caches hold what the other step works on
    start = time.process_time()
    for _ in range(STEPS):
        run()
    return (time.process_time() - start) / STEPS


def main() -> None:
    """Print a line for each workload and way to run it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each")
    options = parser.parse_args()
    wf.set_num_threads(1)
    print(f"{'workload':10} {'way':8} {'ms':>9} {'with the trap':>14} {'made twice':>11}")
    for name in options.only.split(","):
        ways = {"session": graph_step, "jit": lambda workload: eager_step(workload, jitted=True)}
        for way, step in ways.items():
            plain, times, chance = ratio(lambda s=step, n=name: s(WORKLOADS[n]), options.seconds)
            over = "" if times <= BAR else " !"
            print(
                f"{name:10} {way:8} {plain:9.3f} {times:13.3f}x {chance:10.3f}x{over}", flush=True
            )


if __name__ == "__main__":
    main()
