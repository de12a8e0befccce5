"""Eager operations on large tensors: Weft beside PyTorch.

    python benchmarks/eager_large.py [--threads 2] [--peer-python PATH]

add, mul, exp, sum and softmax (over rows of 1000) of 1, 3 and 10 million float32 numbers, and the
product of two square matrices of 1 million and of 3 million; each workload also with its gradient
where it has one. Every result is a new tensor. The bar is the ratio to PyTorch that Weft must not
exceed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

SIZES = {"1e6": 10**6, "3e6": 3 * 10**6, "1e7": 10**7}
ROW = 1000
WARM_UP = 12  # calls, in which the kernels are made


def threads() -> int:
    """Return how many threads both frameworks use."""
    return int(os.environ.get("BENCHMARK_THREADS", "2"))


def weft_workloads() -> harness.Workloads:
    """Return the workloads on Weft."""
    import numpy as np

    import weft as wf

    wf.set_num_threads(threads())

    def make(*shape: int, grad: bool = False) -> Any:
        values = np.random.default_rng(0).uniform(-1.0, 1.0, shape).astype(np.float32)
        return wf.tensor(values, requires_grad=grad)

    found = workloads(make, wf.exp, wf.softmax, wf.matmul)
    for run in found.values():
        for _ in range(WARM_UP):
            run()
    return found


def torch_workloads() -> harness.Workloads:
    """Return the workloads on PyTorch."""
    import torch

    torch.set_num_threads(threads())

    def make(*shape: int, grad: bool = False) -> Any:
        generator = torch.Generator().manual_seed(0)
        return (torch.rand(shape, generator=generator) * 2 - 1).requires_grad_(grad)

    return workloads(make, torch.exp, partial(torch.softmax, dim=-1), torch.matmul)


def workloads(
    make: Callable[..., Any],
    exp: Callable[..., Any],
    softmax: Callable[..., Any],
    matmul: Callable[..., Any],
) -> harness.Workloads:
    """Return the workloads written once for both frameworks; times are per call."""
    found: harness.Workloads = {}
    for label, size in SIZES.items():
        x, y, z = make(size // ROW, ROW), make(size // ROW, ROW), make(size // ROW, ROW, grad=True)
        found |= {
            f"add {label}": partial(x.__add__, y),
            f"mul {label}": partial(x.__mul__, y),
            f"exp {label}": partial(exp, x),
            f"sum {label}": x.sum,
            f"softmax {label}": partial(softmax, x),
            f"softmax {label}, fwd+bwd": partial(with_gradient, softmax, z, y),
        }
    for label, size in list(SIZES.items())[:2]:
        a, b = (make(int(size**0.5), int(size**0.5)) for _ in range(2))
        found[f"matmul {label}"] = partial(matmul, a, b)
    return found


def with_gradient(function: Callable[..., Any], x: Any, seed: Any) -> None:
    """Run a function and its gradient."""
    function(x).backward(seed)
    x.grad = None


def main() -> None:
    """Take the number of threads from the command line, and compare."""
    if "--threads" in sys.argv:
        at = sys.argv.index("--threads")
        os.environ["BENCHMARK_THREADS"] = sys.argv[at + 1]
        del sys.argv[at : at + 2]
    frameworks = {"weft": weft_workloads, "torch": torch_workloads}
    bars = {f"{name} {label}": 1.0 for name in ("add", "mul", "exp", "sum") for label in SIZES}
    bars |= {f"softmax {label}": 1.0 for label in SIZES}
    bars |= {"matmul 1e6": 1.0, "matmul 3e6": 1.0}
    harness.main(__file__, frameworks, bars)


if __name__ == "__main__":
    main()
