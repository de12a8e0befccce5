"""Fused kernels against PyTorch, eager and compiled: what is not a matrix product.

    python benchmarks/fused.py --peer-python /path/to/python/with/torch

A case is one function, written once for both frameworks. "forward" returns its result, "both" its
result and the gradients of its inputs for a given gradient of the result, "sum" the result summed
up, so that nothing large leaves. Results are new arrays on either side. Weft builds a graph and
runs it compiled; PyTorch runs eagerly and through torch.compile, Adam with the fused optimizer. All
compute the same arrays in float32 on two threads, which is checked before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Workloads, main

THREADS = 2
BAR = 0.6
ADAM_STEPS = 3
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Case:
    """A function of tensors.

    function   takes the functions and those of neural networks, then tensors
    shapes     of its operands; a number n after a shape makes it n classes, drawn at random
    way        "forward", "both" or "sum"
    """

    function: Callable[..., Any]
    shapes: tuple[Any, ...]
    way: str = "forward"

    def operands(self) -> list[np.ndarray]:
        """Return the operands: the same arrays for every framework."""
        rng = np.random.default_rng(0)
        arrays = []
        for shape in self.shapes:
            if isinstance(shape, list):
                size, classes = shape
                arrays.append(rng.integers(0, classes, size))
            else:
                arrays.append(rng.normal(size=shape).astype(np.float32))
        return arrays

    def direction(self, shape) -> np.ndarray:
        """Return the gradient of the result that "both" starts from."""
        return np.random.default_rng(1).normal(size=shape).astype(np.float32)


def softmax(m, f, x):
    return f.softmax(x, -1)


def log_softmax(m, f, x):
    return f.log_softmax(x, -1)


def layer_norm(m, f, x, w, b):
    return f.layer_norm(x, x.shape[-1:], w, b)


def rms_norm(m, f, x, w):
    return f.rms_norm(x, x.shape[-1:], w, 1e-6)


def bias_gelu(m, f, x, b):
    return f.gelu(x + b)


def bias_gelu_tanh(m, f, x, b):
    return f.gelu(x + b, approximate="tanh")


def cross_entropy(m, f, x, y):
    return f.cross_entropy(x, y)


def chain(m, f, x, y):
    """Ten cheap operations."""
    a = x * 0.5 + y
    b = m.abs(a - x) + 1.0
    c = m.sqrt(b) * y - a
    return m.where(c > 0, c / b, c * 0.1)


def smooth_chain(m, f, x, y):
    """Ten operations, four of them transcendental."""
    a = m.tanh(x * y) + m.sigmoid(x - y)
    b = m.exp(-a * a) * x
    return m.log(b * b + 1.0) * y


def column_moments(m, f, x):
    """Mean and variance of each column, as batch normalisation wants them."""
    mean = x.mean(0)
    return ((x - mean) ** 2).mean(0) + mean


CASES = {
    "softmax 4096x1024": Case(softmax, ((4096, 1024),)),
    "softmax 1024x1024": Case(softmax, ((1024, 1024),)),
    "softmax 256x50257": Case(softmax, ((256, 50257),)),
    "softmax 4096x1024 both": Case(softmax, ((4096, 1024),), "both"),
    "log_softmax 4096x1024": Case(log_softmax, ((4096, 1024),)),
    "log_softmax 4096x1024 sum": Case(log_softmax, ((4096, 1024),), "sum"),
    "layer_norm 8192x768": Case(layer_norm, ((8192, 768), 768, 768)),
    "layer_norm 8192x768 both": Case(layer_norm, ((8192, 768), 768, 768), "both"),
    "layer_norm 1024x768 both": Case(layer_norm, ((1024, 768), 768, 768), "both"),
    "rms_norm 8192x768": Case(rms_norm, ((8192, 768), 768)),
    "rms_norm 8192x768 both": Case(rms_norm, ((8192, 768), 768), "both"),
    "gelu+bias 4096x3072": Case(bias_gelu, ((4096, 3072), 3072)),
    "gelu+bias 512x3072": Case(bias_gelu, ((512, 3072), 3072)),
    "gelu+bias 512x3072 both": Case(bias_gelu, ((512, 3072), 3072), "both"),
    "gelu(tanh)+bias 512x3072 both": Case(bias_gelu_tanh, ((512, 3072), 3072), "both"),
    "cross_entropy 8192x1000 both": Case(cross_entropy, ((8192, 1000), [8192, 1000]), "both"),
    "cross_entropy 1024x1000 both": Case(cross_entropy, ((1024, 1000), [1024, 1000]), "both"),
    "cross_entropy 256x50257 both": Case(cross_entropy, ((256, 50257), [256, 50257]), "both"),
    "chain 1e6": Case(chain, (1_000_000, 1_000_000)),
    "chain 4e6": Case(chain, (4_000_000, 4_000_000)),
    "chain 4e6 sum": Case(chain, (4_000_000, 4_000_000), "sum"),
    "smooth chain 1e6": Case(smooth_chain, (1_000_000, 1_000_000)),
    "smooth chain 4e6 sum": Case(smooth_chain, (4_000_000, 4_000_000), "sum"),
    "smooth chain 1e6 both": Case(smooth_chain, (1_000_000, 1_000_000), "both"),
    "column moments 8192x768": Case(column_moments, ((8192, 768),)),
}


def adam_sizes(low, high):
    """Return the sizes of a hundred tensors, spread evenly between magnitudes."""
    return [int(n) for n in np.geomspace(low, high, 100)]


ADAMS = {"adam 100 x 1e3..1e5": (1e3, 1e5), "adam 100 x 1e4..1e6": (1e4, 1e6)}


def adam_arrays(low, high):
    """Return parameters and their gradients."""
    rng = np.random.default_rng(2)
    sizes = adam_sizes(low, high)
    return [[rng.normal(size=n).astype(np.float32) for n in sizes] for _ in range(2)]


class AdamStep:
    """A step of Adam, and the parameters after the first ones, which frameworks must agree on."""

    def __init__(self, run: Callable[[], object], read: Callable[[], list[np.ndarray]]) -> None:
        self.run = run
        for _ in range(ADAM_STEPS):
            run()
        self.parameters = [np.array(values) for values in read()]

    def __call__(self) -> object:
        """Take one step."""
        return self.run()

    def computed(self) -> list[np.ndarray]:
        """Return the parameters to compare."""
        return self.parameters


def with_weft() -> Workloads:
    """Return the workloads for Weft."""
    import weft as wf
    import weft.nn.functional as F

    wf.set_num_threads(THREADS)

    def case_of(name, case):
        arrays = case.operands()
        with wf.Graph() as graph:
            xs = [wf.placeholder(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(arrays)]
            y = case.function(wf, F, *xs)
            feeds = dict(zip(xs, arrays, strict=True))
            fetches = [y.sum() if case.way == "sum" else y]
            if case.way == "both":
                g = wf.placeholder(y.shape, y.dtype, name="g")
                feeds[g] = case.direction(y.shape)
                inexact = [x for x, a in zip(xs, arrays, strict=True) if a.dtype == np.float32]
                fetches += wf.gradients(y, inexact, g)
        session = wf.Session(graph, compiled=True)

        def run():
            return session.run(fetches, feeds)

        return run

    def adam_of(name, bounds):
        values, grads = adam_arrays(*bounds)
        params = [wf.nn.Parameter(wf.tensor(v)) for v in values]
        with wf.Graph() as graph:
            gs = [wf.placeholder(g.shape, wf.float32, name=f"g{i}") for i, g in enumerate(grads)]
            loss = sum((p * g).sum() for p, g in zip(params, gs, strict=True))
            train = wf.optim.Adam(params, lr=1e-3).minimize(loss)
        session = wf.Session(graph, compiled=True)
        feeds = dict(zip(gs, grads, strict=True))

        return AdamStep(lambda: session.run(train, feeds), lambda: [p.numpy() for p in params])

    return {
        **{name: case_of(name, case) for name, case in CASES.items()},
        **{name: adam_of(name, bounds) for name, bounds in ADAMS.items()},
    }


def with_torch(compiled):
    """Return a function that makes the workloads for PyTorch."""

    def make() -> Workloads:
        import torch
        import torch._dynamo
        import torch.nn.functional as TF

        torch.set_num_threads(THREADS)
        torch._dynamo.config.recompile_limit = 1000  # every case compiles the same function

        def case_of(name, case):
            xs = [torch.from_numpy(a) for a in case.operands()]
            inexact = [x for x in xs if x.is_floating_point()]
            both = case.way == "both"
            for x in inexact if both else ():
                x.requires_grad_()

            def forward(*xs):
                y = case.function(torch, TF, *xs)
                return y.sum() if case.way == "sum" else y

            forward = torch.compile(forward) if compiled else forward
            shape = tuple(forward(*xs).shape)
            g = torch.from_numpy(np.asarray(case.direction(shape)))

            def run():
                y = forward(*xs)
                return [y, *torch.autograd.grad(y, inexact, g)] if both else [y]

            run.computed = lambda: [t.detach().numpy() for t in run()]
            return run

        def adam_of(name, bounds):
            values, grads = adam_arrays(*bounds)
            params = [torch.nn.Parameter(torch.from_numpy(v)) for v in values]
            for p, g in zip(params, grads, strict=True):
                p.grad = torch.from_numpy(g)
            optimizer = torch.optim.Adam(params, lr=1e-3, fused=not compiled or None)
            step = torch.compile(optimizer.step) if compiled else optimizer.step
            return AdamStep(step, lambda: [p.detach().numpy() for p in params])

        return {
            **{name: case_of(name, case) for name, case in CASES.items()},
            **{name: adam_of(name, bounds) for name, bounds in ADAMS.items()},
        }

    return make


if __name__ == "__main__":
    main(
        __file__,
        {"weft": with_weft, "torch": with_torch(False), "torch.compile": with_torch(True)},
        bars=dict.fromkeys((*CASES, *ADAMS), BAR),
        tolerance=TOLERANCE,
    )
