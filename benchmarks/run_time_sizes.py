"""What sizes that every run is told cost: training steps whose batch is a number, and is a size.

    python benchmarks/run_time_sizes.py
    python benchmarks/run_time_sizes.py --only mlp,dqn --seconds 20

The workloads are those of steps.py, as graphs run by a session, on one thread. A session that was
fed two other batches before has code for all of them; it is compared with one that was fed only the
batch at hand. Both steps run in turn, and the least processor time of a step counts, of many. With
`--kernels` those are named whose time grows most.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from step_nets import WORKLOADS, Workload
from steps import weft_net

import weft as wf

STEPS = 3  # that are timed together
BAR = 1.05
SHOWN = 5  # kernels


class TrainingStep:
    """A training step as a graph for any batch."""

    def __init__(self, workload: Workload) -> None:
        lib, net, optimizer = weft_net(workload, wf.scan)
        self.data = workload.batch()
        with wf.Graph() as graph:
            shapes = [("n", *array.shape[1:]) for array in self.data]
            self.feeds = [
                wf.placeholder(s, a.dtype) for s, a in zip(shapes, self.data, strict=True)
            ]
            loss = workload.loss(lib, net, *self.feeds)
            self.fetches = [loss, optimizer.minimize(loss)]
        self.session = wf.Session(graph)

    def run(self, fewer: int = 0) -> float:
        """Take a step on all examples but a few; return its loss."""
        arrays = [array[fewer:] for array in self.data]
        feeds = dict(zip(self.feeds, arrays, strict=True))
        return float(self.session.run(self.fetches, feeds)[0])

    def seconds(self) -> float:
        """Return the processor seconds of a step."""
        start = time.process_time()
        for _ in range(STEPS):
            self.run()
        return (time.process_time() - start) / STEPS

    def executable(self) -> Any:
        """Return the code of a step."""
        return self.session.executable(self.fetches, dict(zip(self.feeds, self.data, strict=True)))


def steps(workload: Workload) -> tuple[TrainingStep, TrainingStep]:
    """Return a step whose sizes are numbers, and one whose batch is a size."""
    fixed, sized = TrainingStep(workload), TrainingStep(workload)
    for fewer in (2, 4):
        sized.run(fewer)
    fixed.run()
    sized.run()
    return fixed, sized


def ratio(fixed: TrainingStep, sized: TrainingStep, seconds: float) -> tuple[float, float]:
    """Return the milliseconds of a step of fixed sizes, and how many times that the other takes."""
    best = [float("inf")] * 2
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        best = [min(a, step.seconds()) for a, step in zip(best, (fixed, sized), strict=True)]
    return best[0] * 1e3, best[1] / best[0]


def kernels(fixed: TrainingStep, sized: TrainingStep, runs: int = 30) -> None:
    """Print the kernels to whose time most is added."""
    profiles = [step.executable().profile(step.data, runs=runs) for step in (fixed, sized)]
    times = [{k.kernel.name: k.minimum * 1e6 for k in found.kernels} for found in profiles]
    more = {name: times[1].get(name, 0.0) - before for name, before in times[0].items()}
    for name in sorted(more, key=more.__getitem__, reverse=True)[:SHOWN]:
        print(f"    {times[0][name]:10.1f} us {more[name]:+9.1f} us  {name}")


def main() -> None:
    """Print a line for each workload."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default=",".join(WORKLOADS), help="workloads")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each")
    parser.add_argument("--kernels", action="store_true", help="name those that take longer")
    options = parser.parse_args()
    wf.set_num_threads(1)
    print(f"{'workload':10} {'ms':>9} {'of any size':>12}")
    for name in options.only.split(","):
        pair = steps(WORKLOADS[name])
        plain, times = ratio(*pair, options.seconds)
        print(f"{name:10} {plain:9.3f} {times:11.3f}x {'' if times <= BAR else '!'}", flush=True)
        if options.kernels:
            kernels(*pair)


if __name__ == "__main__":
    main()
