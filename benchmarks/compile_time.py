"""Measure how long compiling takes: with an empty object cache, and from a full one.

Each measurement is a process of its own that has loaded the compiler and started its threads
before. A step of training is compiled (forward, gradients, Adam): one whose layers all differ in
width, so that no code can be shared, and one of equal layers, as networks usually are.

    python benchmarks/compile_time.py

`wall` is what a user waits; `cpu` is what it costs where other programs run too.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import time
from collections.abc import Callable
from typing import Any

from cold_and_warm import cold_and_warm

PROGRAMS = ("distinct", "equal")
BARS = {"cold": 3.0, "warm": 0.2}
STAGES = ("name", "optimise", "lower", "write", "object code", "link")


def main() -> None:
    """Print a table of times, or serve as the process that is measured."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", choices=PROGRAMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(measure(options.worker)))
        return
    head = (
        f"{'program':<10}{'cache':<7}{'kernels':>8}{'codes':>7}{'wall s':>9}{'cpu s':>8}{'bar':>6}"
    )
    print(head + "".join(f"{stage:>13}" for stage in STAGES))
    for program in PROGRAMS:
        runs = [cold_and_warm(__file__, program) for _ in range(options.rounds)]
        for i, cache in enumerate(BARS):
            best = min((run[i] for run in runs), key=lambda found: found["cpu"])
            best["wall"] = min(run[i]["wall"] for run in runs)
            print(_row(program, cache, best), flush=True)


def _row(program: str, cache: str, found: dict[str, Any]) -> str:
    row = f"{program:<10}{cache:<7}{found['kernels']:>8}{found['codes']:>7}"
    row += f"{found['wall']:>9.2f}{found['cpu']:>8.2f}{BARS[cache]:>6.1f}"
    return row + "".join(f"{found['stages'][stage]:>13.3f}" for stage in STAGES)


# -- in the measured process -----------------------------------------------------------------------


def measure(program: str) -> dict[str, Any]:
    """Compile a program once; return times and counts."""
    import weft as wf
    from weft.compiler import stages as compiler

    with wf.Graph() as small:  # loads the compiler, and makes the code that all programs share
        x = wf.placeholder((2,), wf.float32)
        y = x + 1.0
    wf.Session(small, compiled=True).run(y, {x: [0.0, 0.0]})
    prepared, shapes = _prepare(program)
    stages: dict[str, float] = dict.fromkeys(STAGES, 0.0)
    _time_stages(stages)
    wall, cpu = time.perf_counter(), time.process_time()
    made = compiler.compile_program(prepared, shapes)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert made is not None
    stages = dict(stages)  # looking inside, as below, goes through some of them again
    counts = {"kernels": len(made.kernels), "codes": len(made.text.modules)}
    return {"wall": wall, "cpu": cpu, "stages": stages, **counts}


def _prepare(program: str) -> tuple[Any, dict[Any, tuple[int, ...]]]:
    """Return what a session would compile, and the shapes of its feeds."""
    import weft as wf
    from weft.graph.run import Program

    graph, x, loss, update = _step(wf, *WIDTHS[program])
    targets = [symbol.value for symbol in update.symbols]
    return Program(graph, [loss.value], [x.value], targets), {x.value: (32, x.shape[1])}


# About a hundred kernels each.
WIDTHS = {"distinct": [[40, 56, 72, 88, 104, 120, 136, 152]], "equal": [[64] * 8]}


def _step(wf: Any, widths: list[int]) -> tuple[Any, Any, Any, Any]:
    """Return a step of training: blocks of a product, a norm and an activation."""
    layers: list[Any] = []
    with wf.Graph() as graph:
        x = wf.placeholder((32, widths[0]), wf.float32)
        h = x
        for before, after in itertools.pairwise(widths):
            layers += [wf.nn.Linear(before, after), wf.nn.LayerNorm(after)]
            h = wf.nn.functional.gelu(layers[-1](layers[-2](h)))
        loss = (h * h).mean()
        parameters = [p for layer in layers for p in layer.parameters()]
        update = wf.optim.Adam(parameters, lr=1e-3).minimize(loss)
    return graph, x, loss, update


TIMED = (
    ("weft.compiler.stages", "known_program", "name"),
    ("weft.compiler.stages", "specialize", "optimise"),
    ("weft.compiler.stages", "optimize_static", "optimise"),
    ("weft.compiler.stages", "lower", "lower"),
    ("weft.backends.cpu.runtime.analysis", "write_program", "write"),
    ("weft.backends.cpu.runtime.analysis", "object_codes", "object code"),
    ("weft.backends.cpu.backend", "find_object", "object code"),
    ("weft.backends.cpu.runtime.executable", "link", "link"),
)


def _time_stages(stages: dict[str, float]) -> None:
    """Note the CPU time that each stage of the compiler takes."""
    for path, name, stage in TIMED:
        module = importlib.import_module(path)
        setattr(module, name, _timed(getattr(module, name), stages, stage))


def _timed(function: Callable[..., Any], stages: dict[str, float], stage: str) -> Any:
    def timed(*args: Any, **options: Any) -> Any:
        start = time.process_time()
        try:
            return function(*args, **options)
        finally:
            stages[stage] += time.process_time() - start

    return timed


if __name__ == "__main__":
    main()
