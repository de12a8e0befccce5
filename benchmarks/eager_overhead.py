"""What an operation costs in eager mode on small tensors: Weft beside PyTorch.

    python benchmarks/eager_overhead.py [--peer-python PATH]
    python benchmarks/eager_overhead.py --against "weft.torch,torch"    # PyTorch's face beside it

Microseconds per operation for single operations and for a 50-step chain z = z*y + x (100
operations, forward and backward); microseconds per step for a 3-layer, 32-unit network with mean
squared error, forward and backward. Both frameworks use float32 and one thread. The bar is the
ratio to PyTorch that Weft must not exceed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import harness

CHAIN = 50
BATCH, WIDTH = 32, 32


def weft_workloads() -> harness.Workloads:
    """Return the workloads on Weft."""
    import numpy as np

    import weft as wf

    def make(*shape: int, grad: bool = False) -> Any:
        values = np.random.default_rng(0).uniform(0.1, 1.0, shape).astype(np.float32)
        return wf.tensor(values, requires_grad=grad)

    return workloads(make, wf.nn.functional.linear, wf.tanh, wf.nn.functional.mse_loss, wf.matmul)


def face_workloads() -> harness.Workloads:
    """Return the workloads on PyTorch's face of Weft, as PyTorch's."""
    from weft import torch

    return of_torch(torch)


def torch_workloads() -> harness.Workloads:
    """Return the workloads on PyTorch."""
    import torch

    torch.set_num_threads(1)
    return of_torch(torch)


def of_torch(torch: Any) -> harness.Workloads:
    """Return the workloads in PyTorch's words."""

    def make(*shape: int, grad: bool = False) -> Any:
        generator = torch.Generator().manual_seed(0)
        return (torch.rand(shape, generator=generator) * 0.9 + 0.1).requires_grad_(grad)

    functional = torch.nn.functional
    return workloads(make, functional.linear, torch.tanh, functional.mse_loss, torch.matmul)


def workloads(
    make: Callable[..., Any],
    linear: Callable[..., Any],
    tanh: Callable[..., Any],
    mse_loss: Callable[..., Any],
    matmul: Callable[..., Any],
) -> harness.Workloads:
    """Return the workloads written once for both frameworks; times are per call."""
    x, y = make(8), make(8)
    gx, gy = make(8, grad=True), make(8, grad=True)
    a, b = make(8, 8), make(8, 8)
    ones = make(8)
    inputs, targets = make(BATCH, WIDTH), make(BATCH, WIDTH)
    weights = [make(WIDTH, WIDTH, grad=True) for _ in range(3)]
    biases = [make(WIDTH, grad=True) for _ in range(3)]

    def chain() -> None:
        z = gx
        for _ in range(CHAIN):
            z = z * gy + gx
        z.backward(ones)
        gx.grad = gy.grad = None

    def mlp() -> None:
        h = tanh(linear(inputs, weights[0], biases[0]))
        h = tanh(linear(h, weights[1], biases[1]))
        mse_loss(linear(h, weights[2], biases[2]), targets).backward()
        for parameter in (*weights, *biases):
            parameter.grad = None

    return {
        "add": lambda: x + y,
        "mul": lambda: x * y,
        "mul by a number": lambda: x * 2.0,
        "add, recorded": lambda: gx + gy,
        "mul, recorded": lambda: gx * gy,
        "matmul 8x8": lambda: matmul(a, b),
        "chain z*y+x, 50 steps, fwd+bwd": chain,
        "mlp 3x32, fwd+bwd": mlp,
    }


if __name__ == "__main__":
    bars = {"chain z*y+x, 50 steps, fwd+bwd": 0.6, "mlp 3x32, fwd+bwd": 0.6}
    frameworks = {
        "weft": weft_workloads,
        "weft.torch": face_workloads,
        "torch": torch_workloads,
    }
    harness.main(__file__, frameworks, bars, asked_for=("weft.torch",))
