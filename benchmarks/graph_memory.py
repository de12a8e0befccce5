"""Print what memory plans and rematerialisation save, and what recomputing costs.

    python benchmarks/graph_memory.py
    python benchmarks/graph_memory.py --layers 300 --rounds 5     a smaller chain

The plan: bytes with sharing as a part of those without, for a convolutional net of 50 layers.
The budget: a deep chain trained in a fifth of its memory, node by node (planned, and as measured by
tracemalloc) and compiled (the memory in which the program computes, which lies in one piece); its
time against that of the plain chain, one step right after the other, median of the ratios. On a
busy machine the processor's time tells more than the clock.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft as wf
from weft import nn
from weft.compiler.budget import rematerialize
from weft.compiler.memory import MemoryReport, bytes_text, memory_plan
from weft.graph import Graph, Session, Update, placeholder

PLAN_BARS = {"training": 0.5, "inference": 0.15}
MEMORY_BAR, TIME_BAR = 0.2, 1.4


def main() -> None:
    """Print all figures."""
    options = _parse()
    print("memory plan of a convolutional net of 50 layers, 16 images of 32x32")
    for name, plan in convolutional_plans().items():
        _print_plan(name, plan)
    print(f"\na chain of {options.layers} layers: x = tanh(x @ w + b), trained by SGD")
    for part in options.budgets:
        compare(deep_chain(options.layers, options.width, options.batch), part, options.rounds)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--layers", type=int, default=1000)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--budgets", type=float, nargs="+", default=[0.5, 0.19, 0.1])
    return parser.parse_args()


# -- the memory plan -------------------------------------------------------------------------------


def convolutional_plans() -> dict[str, MemoryReport]:
    """Return the plans of training and of inference."""
    model = _convolutional(49, 16)
    with Graph() as training:
        x = placeholder((16, 3, 32, 32), wf.float32, name="x")
        y = placeholder((16,), wf.int64, name="y")
        loss = nn.functional.cross_entropy(model(x), y)
        update = _descent(loss, list(model.parameters()))
    model.eval()
    with Graph() as inference:
        scores = model(placeholder((16, 3, 32, 32), wf.float32, name="x"))
    return {
        "training": memory_plan(training, [loss, update]),
        "inference": memory_plan(inference, scores),
    }


def _convolutional(blocks: int, channels: int) -> Any:
    layers: list[Any] = []
    for i in range(blocks):
        layers += [nn.Conv2d(channels if i else 3, channels, 3, padding=1, bias=False)]
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def _descent(loss: Any, parameters: list[Any]) -> Update:
    pairs = zip(parameters, wf.gradients(loss, parameters), strict=True)
    return Update([p.assign(p - 0.01 * g) for p, g in pairs])


def _print_plan(name: str, plan: MemoryReport) -> None:
    plan.check()
    print(
        f"  {name:<10} without sharing {bytes_text(plan.unshared_bytes):>10}   with "
        f"{bytes_text(plan.shared_bytes):>10}   {plan.ratio:.3f}x  (at most {PLAN_BARS[name]}x)   "
        f"most alive {bytes_text(plan.peak_bytes)}"
    )


# -- rematerialisation -----------------------------------------------------------------------------


class Chain(NamedTuple):
    """A training graph, what it is fed with, and what is fetched."""

    graph: Graph
    feeds: dict[Any, Any]
    outputs: list[Any]


class Times(NamedTuple):
    """The median over rounds of the ratio of times, and the ratio of the best times."""

    median: float
    best: float


def deep_chain(layers: int, width: int, batch: int) -> Chain:
    """Return a deep network whose activations take far more memory than its parameters."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal((layers, width, width)).astype(np.float32) / width**0.5
    parameters = [wf.tensor(w) for w in weights]
    biases = [wf.tensor(np.zeros(width, np.float32)) for _ in weights]
    with Graph() as graph:
        x = placeholder((batch, width), wf.float32, name="x")
        y = x
        for w, b in zip(parameters, biases, strict=True):
            y = wf.tanh(y @ w + b)
        loss = (y * y).mean()
        update = _descent(loss, [*parameters, *biases])
    array = rng.standard_normal((batch, width)).astype(np.float32)
    return Chain(graph, {x: array}, [loss, update])


def compare(chain: Chain, part: float, rounds: int) -> None:
    """Print memory and time of a chain under a budget, beside those without."""
    plain = memory_plan(chain.graph, chain.outputs).run_bytes
    start = time.perf_counter()
    made = rematerialize(chain.graph, part * plain, chain.outputs)
    seconds = time.perf_counter() - start
    planned = memory_plan(made, chain.outputs).run_bytes / plain
    print(
        f"  budget {part:.2f}x of {bytes_text(plain)}: planned {planned:.3f}x; "
        f"the pass: {seconds:.2f} s for {len(chain.graph)} nodes"
    )
    for compiled in (False, True):
        _compare_runs(chain, made, compiled, part, rounds)


def _compare_runs(chain: Chain, made: Graph, compiled: bool, part: float, rounds: int) -> None:
    runs = [_runner(graph, chain, compiled) for graph in (chain.graph, made)]
    if compiled:
        memory = [arena_bytes(graph, chain) for graph in (chain.graph, made)]
    else:
        memory = [measured_peak(run) for run in runs]
    wall, processor = _interleaved(*runs, rounds)
    way = "compiled" if compiled else "node by node"
    print(
        f"    {way:<12}  memory {memory[1] / memory[0]:.3f}x "
        f"({bytes_text(memory[0])} -> {bytes_text(memory[1])}); time {wall.median:.2f}x "
        f"(best {wall.best:.2f}x), of the processor {processor.median:.2f}x "
        f"(best {processor.best:.2f}x)"
    )
    if part <= MEMORY_BAR < 2 * part:
        kept = memory[1] <= MEMORY_BAR * memory[0] and wall.median <= TIME_BAR
        print(f"      at most {MEMORY_BAR}x the memory and {TIME_BAR}x the time: {kept}")


def measured_peak(run: Callable[[], None]) -> int:
    """Return the most bytes that a run allocates at once."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def arena_bytes(graph: Graph, chain: Chain) -> int:
    """Return the bytes in which a compiled program computes."""
    made = Session(graph).executable(chain.outputs, chain.feeds)
    return int(made.layout.arena_bytes)


def _runner(graph: Graph, chain: Chain, compiled: bool = False) -> Callable[[], None]:
    session = Session(graph, compiled=compiled)
    session.run(chain.outputs, chain.feeds)  # prepares the program

    def run() -> None:
        session.run(chain.outputs, chain.feeds)

    return run


def _interleaved(
    before: Callable[[], None], after: Callable[[], None], rounds: int
) -> tuple[Times, Times]:
    """Return ratios of wall-clock and of processor time, from runs one right after the other."""
    pairs = [(_seconds(before), _seconds(after)) for _ in range(rounds)]
    wall, processor = ([(a[k], b[k]) for a, b in pairs] for k in range(2))
    return _ratios(wall), _ratios(processor)


def _ratios(times: list[tuple[float, float]]) -> Times:
    median = statistics.median(b / a for a, b in times)
    return Times(median, min(b for _, b in times) / min(a for a, _ in times))


def _seconds(run: Callable[[], None]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - processor


if __name__ == "__main__":
    main()
