"""Kernels on an OpenCL device beside machine code for the same processor.

    python benchmarks/opencl.py [--device opencl:0] [--rounds 20] [--size 1024]

Both run the same planned programs on values that lie where they run: what is timed is a run and the
wait for it, without copies of feeds. The two take turns, and the ratio of each round counts; with a
device that is the processor itself (PoCL) both have the same cores. The last lines say what one
launch costs: of a captured program, and of an eager operation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import weft as wf
from weft.backends import backend_named

Build = Callable[..., Any]


def workloads(size: int) -> dict[str, tuple[Build, list[tuple[int, ...]]]]:
    """Return what is computed of which shapes."""
    square = (size, size)
    return {
        "add": (lambda x, y: x + y, [square, square]),
        "exp": (wf.exp, [square]),
        "gelu": (wf.nn.functional.gelu, [square]),
        "x * sigmoid(y) + z": (lambda x, y, z: x * wf.sigmoid(y) + z, [square] * 3),
        "sum of all": (lambda x: x.sum(), [square]),
        "sum of rows": (lambda x: x.sum(axis=1), [square]),
        "sum of columns": (lambda x: x.sum(axis=0), [square]),
        "softmax of rows": (lambda x: wf.softmax(x, axis=-1), [square]),
        "product": (lambda x, y: x @ y, [square, square]),
        "product with transpose": (lambda x, y: x @ y.T, [square, square]),
        "product, bias, relu": (
            lambda x, y, b: wf.relu(x @ y + b),
            [square, square, (size,)],
        ),
    }


def prepared(build: Build, shapes: list[tuple[int, ...]], device: str) -> Callable[[], None]:
    """Return a run of a compiled function on a device, with the wait for it."""
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
    tensors = [wf.tensor(array).to(device) for array in arrays]
    compiled = wf.compile(build, *tensors, device=device)
    wait = backend_named(device).synchronize

    def run() -> None:
        compiled(*tensors)
        wait()

    return run


def seconds(run: Callable[[], None], slot: float) -> float:
    """Return the best time of a call within a slot."""
    best, end = float("inf"), perf_counter() + slot
    while perf_counter() < end:
        before = perf_counter()
        run()
        best = min(best, perf_counter() - before)
    return best


def compare(name: str, build: Build, shapes: list[tuple[int, ...]], options: Any) -> float:
    """Print the times of both and their ratio; return it."""
    ours, cpu = prepared(build, shapes, options.device), prepared(build, shapes, "cpu")
    for run in (ours, cpu):
        run()
    pairs = [
        (seconds(ours, options.slot), seconds(cpu, options.slot)) for _ in range(options.rounds)
    ]
    ratio = median(a / b for a, b in pairs)
    best = [min(times) * 1e6 for times in zip(*pairs, strict=True)]
    print(f"{name:<24} {best[0]:>10.0f} {best[1]:>10.0f} {ratio:>8.2f} {best[0] / best[1]:>8.2f}")
    return ratio


def overheads(device: str, rounds: int) -> None:
    """Print what a launch costs, of a tensor so small that nothing else does."""
    x = wf.ones(8).to(device)
    captured = wf.compile(lambda t: t * 2 + 1, x, device=device)
    wait = backend_named(device).synchronize
    for name, call in (("captured", lambda: captured(x)), ("eager", lambda: x * 2)):
        call()
        best = float("inf")
        for _ in range(rounds):
            before = perf_counter()
            for _ in range(100):
                call()
            wait()
            best = min(best, (perf_counter() - before) / 100)
        print(f"one launch, {name}: {best * 1e6:.1f} us")


def main() -> None:
    """Compare all workloads."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--slot", type=float, default=0.1, help="seconds of a slot")
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--only", default="", help="part of a name")
    options = parser.parse_args()
    print(backend_named(options.device).describe().machine)
    print(f"{'float32, us':<24} {'device':>10} {'cpu':>10} {'ratio':>8} {'of best':>8}")
    for name, (build, shapes) in workloads(options.size).items():
        if options.only in name:
            compare(name, build, shapes, options)
    overheads(options.device, options.rounds)


if __name__ == "__main__":
    main()
