"""How much the tape keeps: a 200-layer chain h = tanh(h @ w), measured against the rules' needs.

    python benchmarks/tape_memory.py

matmul's rule for h names w (which the user holds anyway) and, since w needs a gradient, h; tanh's
names its output, which is the next layer's h. So one activation a layer is needed, and nothing
else. The last column shows what is left half-way through backward.
"""

from __future__ import annotations

import gc
import tracemalloc

import numpy as np

import weft as wf

LAYERS, BATCH, WIDTH = 200, 64, 256


def main() -> None:
    """Print predicted and measured bytes."""
    weights = [
        wf.tensor(np.random.default_rng(i).normal(0, 0.05, (WIDTH, WIDTH)), requires_grad=True)
        for i in range(LAYERS)
    ]
    x = wf.tensor(np.random.default_rng(0).normal(size=(BATCH, WIDTH)))
    activation = x.nbytes
    halfway = {}
    gc.collect()
    tracemalloc.start()
    base = tracemalloc.get_traced_memory()[0]
    h = x
    for i, w in enumerate(weights):
        h = wf.tanh(h @ w)
        if i == LAYERS // 2:
            h.register_hook(
                lambda g: halfway.update(bytes=tracemalloc.get_traced_memory()[0] - base)
            )
    kept = tracemalloc.get_traced_memory()[0] - base
    h.sum().backward()
    gradients = sum(w.grad.nbytes for w in weights[LAYERS // 2 + 1 :])
    print(f"layers {LAYERS}, one activation {activation / 1e3:.0f} kB")
    print(f"needed by the rules     {LAYERS * activation / 1e6:8.2f} MB")
    print(f"kept after forward      {kept / 1e6:8.2f} MB ({kept / LAYERS / activation:.3f}x)")
    left = halfway["bytes"] - gradients
    print(f"kept half-way backward  {left / 1e6:8.2f} MB ({left / kept:.2f} of that)")


if __name__ == "__main__":
    main()
