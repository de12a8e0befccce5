"""Measure a hand-written LSTM cell in a Python loop: recorded, rolled into a scan, and `nn.LSTM`.

    python benchmarks/rolled_loops.py
    python benchmarks/rolled_loops.py --steps 256

A step is forward and the gradients of all parameters: 64 time steps, batch 32, 256 inputs and 256
hidden units, cross-entropy of 65 classes. Compiling starts from an empty object cache, in a process
of its own. Running is measured in one process, all programs in turn, and the best times count.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any

from cold_and_warm import cold_and_warm

BATCH, HIDDEN, CLASSES = 32, 256, 65
KINDS = ("rolled", "nn.LSTM", "recorded")
PARTS = ("record", "roll", "differentiate", "compile", "cpu of it")


def main() -> None:
    """Print two tables, or serve as the process that is measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(_serve(options.worker)))
        return
    print(f"{'seconds':<10}{'nodes':>8}" + "".join(f"{part:>15}" for part in PARTS))
    for kind in KINDS:
        work = f"compile:{kind}:{options.steps}"
        runs = [cold_and_warm(__file__, work)[0] for _ in range(options.rounds)]
        best = {part: min(run[part] for run in runs) for part in PARTS}
        print(f"{kind:<10}{runs[0]['nodes']:>8}" + "".join(f"{best[p]:>15.3f}" for p in PARTS))
    times = cold_and_warm(__file__, f"run:all:{options.steps}")[0]
    print()
    for kind in KINDS:
        ratio = times[kind] / times["nn.LSTM"]
        print(f"{kind:<10}{1e3 * times[kind]:>10.2f} ms a step{ratio:>8.2f} of nn.LSTM")


# -- in the measured process -----------------------------------------------------------------------


def _serve(worker: str) -> dict[str, Any]:
    act, kind, steps = worker.split(":")
    if act == "compile":
        return _Compiled(kind, int(steps)).seconds
    calls = {kind: _Compiled(kind, int(steps)).call for kind in KINDS}
    best = dict.fromkeys(KINDS, float("inf"))
    for _ in range(30):
        for kind, call in calls.items():
            start = time.perf_counter()
            call()
            best[kind] = min(best[kind], time.perf_counter() - start)
    return best


class _Compiled:
    """A program of one kind, compiled, with the seconds that each part of that took."""

    def __init__(self, kind: str, steps: int) -> None:
        import numpy as np

        import weft as wf
        from weft.compiler.stages import compile_program
        from weft.core.modes import interpret_with
        from weft.graph.call import ProgramCall
        from weft.graph.run import Program
        from weft.graph.symbol import make_symbol
        from weft.passes import roll

        self.seconds: dict[str, Any] = {}
        wf.compile(lambda x: x + 1.0, wf.ones(2))  # loads the compiler
        rng = np.random.default_rng(0)
        feeds = [
            rng.normal(size=(steps, BATCH, HIDDEN)).astype(np.float32),
            rng.integers(0, CLASSES, steps * BATCH),
        ]
        forward, parameters = (_layer if kind == "nn.LSTM" else _by_hand)(wf)
        self._mark()
        with wf.Graph() as graph:
            inputs = [wf.placeholder(a.shape, a.dtype) for a in feeds]
            loss = forward(*inputs)
        self._mark("record")
        graph = roll(graph, [loss.value]) if kind == "rolled" else graph
        loss = make_symbol(graph, graph.outputs[0] if kind == "rolled" else loss.value)
        self._mark("roll")
        with interpret_with(graph.tracer):
            found = wf.gradients(loss, parameters)
        self._mark("differentiate")
        places = [x.value for x in inputs]
        program = Program(graph, [loss.value, *(g.value for g in found)], places)
        shapes = dict(zip(places, (a.shape for a in feeds), strict=True))
        cpu = time.process_time()
        code = compile_program(program, shapes)
        self._mark("compile")
        self.seconds |= {"cpu of it": time.process_time() - cpu, "nodes": len(graph)}
        call = ProgramCall(program, kind, None)
        call.keep(tuple(shapes.values()), code)
        self.call = functools.partial(call.run, feeds)

    def _mark(self, part: str | None = None) -> None:
        now = time.perf_counter()
        if part is not None:
            self.seconds[part] = now - self._since
        self._since = now


def _layer(wf: Any) -> tuple[Callable[..., Any], list[Any]]:
    lstm, head = wf.nn.LSTM(HIDDEN, HIDDEN), wf.nn.Linear(HIDDEN, CLASSES)
    parameters = [*lstm.parameters(), *head.parameters()]
    return lambda x, y: _loss(wf, head, lstm(x)[0], y), parameters


def _by_hand(wf: Any) -> tuple[Callable[..., Any], list[Any]]:
    head = wf.nn.Linear(HIDDEN, CLASSES)
    own = [wf.randn(n, 4 * HIDDEN) * HIDDEN**-0.5 for n in (HIDDEN, HIDDEN, 1)]
    w, u, b = parameters = [p.detach().requires_grad_() for p in own]

    def forward(x: Any, y: Any) -> Any:
        h, c, outputs = wf.zeros(BATCH, HIDDEN), wf.zeros(BATCH, HIDDEN), []
        for row in x:
            i, f, g, o = (row @ w + h @ u + b).chunk(4, 1)
            c = wf.sigmoid(f) * c + wf.sigmoid(i) * wf.tanh(g)
            h = wf.sigmoid(o) * wf.tanh(c)
            outputs.append(h)
        return _loss(wf, head, wf.stack(outputs), y)

    return forward, [*parameters, *head.parameters()]


def _loss(wf: Any, head: Any, outputs: Any, y: Any) -> Any:
    return wf.nn.functional.cross_entropy(head(outputs.reshape(-1, HIDDEN)), y)


if __name__ == "__main__":
    main()
