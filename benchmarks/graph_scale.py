"""Print the time per node of building, differentiating and optimising graphs of growing size.

    python benchmarks/graph_scale.py
    python benchmarks/graph_scale.py --sizes 1000 5000 20000 --rounds 3

Everything must be linear: the microseconds per node may not grow with the graph. Each stage is
measured on the nodes that enter it (building and differentiating: on those that they add); the best
of some rounds counts.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import weft as wf
from weft.compiler.budget import rematerialize
from weft.compiler.memory import memory_plan
from weft.graph import Graph, Update, placeholder
from weft.graph.run import Program
from weft.graph.verify import verify
from weft.passes.pipeline import PASSES, optimize

PARAMETERS = 8  # shared by all layers, so that a graph of any size has the same states


class Step(NamedTuple):
    """One stage: its name, the seconds it took, and the nodes it handled."""

    name: str
    seconds: float
    nodes: int


def main() -> None:
    """Print a table: a row for each stage, a column for each size."""
    options = _parse()
    columns = [_best(size, options.rounds) for size in options.sizes]
    head = "".join(f"{size:>12,}" for size in options.sizes)
    print(f"{'microseconds per node':<24}{head}{'growth':>10}{'seconds':>10}")
    for name in columns[0]:
        found = [column[name] for column in columns]
        per_node = [1e6 * step.seconds / step.nodes for step in found]
        shown = "".join(f"{figure:>12.2f}" for figure in per_node)
        growth = per_node[-1] / per_node[0]
        print(f"{name:<24}{shown}{growth:>9.2f}x{found[-1].seconds:>10.2f}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 5000, 20000])
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def _best(size: int, rounds: int) -> dict[str, Step]:
    """Return every stage in its best round."""
    best: dict[str, Step] = {}
    for _ in range(rounds):
        for step in stages(size):
            known = best.get(step.name)
            if known is None or step.seconds / step.nodes < known.seconds / known.nodes:
                best[step.name] = step
    return best


def stages(size: int) -> list[Step]:
    """Return the time of every stage for a training graph of about `size` nodes."""
    steps: list[Step] = []

    def timed(name: str, run: Callable[[], Any], nodes: Callable[[], int]) -> Any:
        gc.collect()
        start = time.perf_counter()
        made = run()
        steps.append(Step(name, time.perf_counter() - start, max(nodes(), 1)))
        return made

    graph, parameters = Graph(), _parameters()
    with graph:
        loss = timed("build", lambda: _forward(parameters, size // 12), lambda: len(graph))
        forward = len(graph)
        found = timed(
            "differentiate",
            lambda: wf.gradients(loss, parameters),
            lambda: len(graph) - forward,
        )
        pairs = zip(parameters, found, strict=True)
        update = Update([p.assign(p - 0.01 * g) for p, g in pairs])
    outputs = [loss.value, *(symbol.value for symbol in update.symbols)]
    count = len(graph)
    timed("verify", lambda: verify(graph), lambda: count)
    for name, run in PASSES.items():
        timed(name, lambda run=run: run(graph, outputs), lambda: count)
    timed("optimize", lambda: optimize(graph, outputs), lambda: count)
    plan = timed("memory plan", lambda: memory_plan(graph, outputs), lambda: count)
    budget = plan.run_bytes // 3
    timed("rematerialize", lambda: rematerialize(graph, budget, outputs), lambda: count)
    timed("prepare to run", lambda: Program(graph, outputs, graph.inputs), lambda: count)
    return steps


def _parameters() -> list[Any]:
    rng = np.random.default_rng(0)
    return [wf.tensor(rng.standard_normal((8, 8)).astype(np.float32)) for _ in range(PARAMETERS)]


def _forward(parameters: list[Any], layers: int) -> Any:
    """Build a chain with residual connections: about 5 nodes a layer, and 7 for its gradient."""
    y = placeholder((64, 8), wf.float32, name="x")
    for i in range(layers):
        y = wf.tanh(y @ parameters[i % len(parameters)] + 0.5) + y
    return (y * y).mean()


if __name__ == "__main__":
    main()
