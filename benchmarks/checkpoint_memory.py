"""Memory and time of long chains: forward mode, and training with and without checkpoints.

    python benchmarks/checkpoint_memory.py

Forward mode keeps nothing of an operation that is done, so the memory of a chain does not grow with
its length. Training n layers in checkpoints of sqrt(n) layers keeps their inputs, and the values of
one checkpoint at a time. Memory is the peak that tracemalloc sees beyond what was there before;
time is taken in rounds that alternate between the two. On a busy machine the processor time is the
fairer figure; the matrix products of the chain make 4/3 of it the least that can be reached.
"""

from __future__ import annotations

import gc
import statistics
import time
import tracemalloc
from collections.abc import Callable
from math import isqrt

import numpy as np

import weft as wf

LAYERS = 1000
WIDTH = 256
BATCH = 512
ROUNDS = 11
MB = 1 << 20


def layer(x: wf.Tensor, weight: wf.Tensor) -> wf.Tensor:
    """Return one layer of the chain."""
    return wf.relu(x @ weight)


def weights(count: int, width: int = WIDTH) -> list[wf.Tensor]:
    """Return weights that keep the size of what passes through."""
    rng = np.random.default_rng(0)
    scale = np.float32(1.5 / np.sqrt(width))
    return [
        wf.tensor(rng.standard_normal((width, width), np.float32) * scale, requires_grad=True)
        for _ in range(count)
    ]


def train_plain(x: wf.Tensor, chain: list[wf.Tensor]) -> float:
    """Return the loss after one forward and backward pass."""
    for weight in chain:
        x = layer(x, weight)
    return finish(x, chain)


def train_checkpointed(x: wf.Tensor, chain: list[wf.Tensor]) -> float:
    """Return the same with one checkpoint for every sqrt(n) layers."""
    size = isqrt(len(chain))
    for start in range(0, len(chain), size):
        x = wf.checkpoint(stretch)(x, chain[start : start + size])
    return finish(x, chain)


def stretch(x: wf.Tensor, chain: list[wf.Tensor]) -> wf.Tensor:
    """Return what a part of the chain makes of x."""
    for weight in chain:
        x = layer(x, weight)
    return x


def finish(x: wf.Tensor, chain: list[wf.Tensor]) -> float:
    """Run backward, and drop the gradients."""
    loss = (x * x).mean()
    loss.backward()
    for weight in chain:
        weight.grad = None
    return loss.item()


def peak_of(fn: Callable[[], object]) -> float:
    """Return the peak of memory during a call beyond what was there before, in MB."""
    gc.collect()
    tracemalloc.start()
    fn()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / MB


def forward_mode() -> None:
    """Print the memory of jvp for chains of growing length."""
    print("jvp, batch 64, width 64: peak memory beyond inputs and weights")
    x = wf.ones((64, 64))
    for count in (20, 200, 2000):
        chain = [w.detach() for w in weights(count, 64)]
        peak = peak_of(lambda chain=chain: wf.jvp(lambda x: stretch(x, chain), (x,), (x,)))
        print(f"  {count:5} layers  {peak * 1024:8.1f} KB")


def training() -> None:
    """Print memory and time of training with and without checkpoints."""
    print(f"training, batch {BATCH}, width {WIDTH}, checkpoints of sqrt(n) layers")
    x = wf.ones((BATCH, WIDTH))
    for count in (LAYERS // 16, LAYERS // 4, LAYERS):
        chain = weights(count)
        gradients = sum(weight.nbytes for weight in chain) / MB  # there at the end either way
        plain = peak_of(lambda chain=chain: train_plain(x, chain))
        checked = peak_of(lambda chain=chain: train_checkpointed(x, chain))
        print(
            f"  {count:5} layers  plain {plain:7.1f} MB  checkpointed {checked:7.1f} MB, of which "
            f"{gradients:.1f} MB gradients: {(checked - gradients) / count**0.5:.2f} MB * sqrt(n)"
        )
    assert train_plain(x, chain) == train_checkpointed(x, chain)
    for name, clock in (("wall", time.perf_counter), ("processor", time.process_time)):
        print(f"  {count:5} layers  {name} time: {compared(clock, x, chain)}")


def compared(clock: Callable[[], float], x: wf.Tensor, chain: list[wf.Tensor]) -> str:
    """Return the times of both ways, measured in turns, and their ratio."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for kind, fn in enumerate((train_plain, train_checkpointed)):
            start = clock()
            fn(x, chain)
            times[kind].append(clock() - start)
    ratios = [b / a for a, b in zip(*times, strict=True)]
    plain, checkpointed = map(min, times)
    return (
        f"plain {plain:.2f} s, checkpointed {checkpointed:.2f} s, ratio of minima "
        f"{checkpointed / plain:.2f}, median {statistics.median(ratios):.2f}"
    )


if __name__ == "__main__":
    forward_mode()
    training()
