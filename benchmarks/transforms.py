"""Transforms of functions against torch.func and JAX: gradients, Hessians, per-example gradients.

    python benchmarks/transforms.py --peer-python /path/to/python/with/torch/and/jax

A case is one transformed function, written once for all frameworks: the network and the order of
the transforms are the same for everybody. "eager" compares Weft with PyTorch, operation by
operation; "compiled" compares `wf.compile` with torch.compile and with jax.jit, each compiling the
whole transformed function. All compute the same arrays in float32 on two threads. Before anything
is timed, results are compared with Weft's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from harness import Workloads, main

THREADS = 2
EAGER_BAR, COMPILED_BAR = 1.0, 0.8
TOLERANCE = 1e-4

Transforms = Any  # a namespace with grad, vmap, jvp, jacrev, hessian, tanh, exp and sin


@dataclass(frozen=True)
class Case:
    """A transformed function and its arguments.

    make        takes a namespace of transforms and functions, returns the function to be timed
    arguments   returns arrays, in lists and tuples
    """

    make: Callable[[Transforms], Callable[..., Any]]
    arguments: Callable[[], tuple[Any, ...]]


# -- the functions ---------------------------------------------------------------------------------


def loss_of(m: Transforms) -> Callable[..., Any]:
    """Return the mean square error of a perceptron with tanh between its layers."""

    def loss(params: Any, x: Any, y: Any) -> Any:
        for w, b in params[:-1]:
            x = m.tanh(x @ w + b)
        w, b = params[-1]
        error = x @ w + b - y
        return (error * error).mean()

    return loss


def gradient(m: Transforms) -> Callable[..., Any]:
    return m.grad(loss_of(m))


def hessian(m: Transforms) -> Callable[..., Any]:
    return m.hessian(loss_of(m))


def hessian_vector_product(m: Transforms) -> Callable[..., Any]:
    loss = loss_of(m)

    def product(params: Any, tangents: Any, x: Any, y: Any) -> Any:
        return m.jvp(m.grad(lambda p: loss(p, x, y)), (params,), (tangents,))[1]

    return product


def gradients_per_example(m: Transforms) -> Callable[..., Any]:
    return m.vmap(m.grad(loss_of(m)), (None, 0, 0))


def jacobian(m: Transforms) -> Callable[..., Any]:
    def layers(x: Any, v: Any, w: Any) -> Any:
        return m.tanh(m.tanh(x @ v) @ w)

    return m.jacrev(layers)


def third_derivative(m: Transforms) -> Callable[..., Any]:
    def curve(x: Any) -> Any:
        return m.tanh(x) * m.sin(x * x) + m.exp(-x)

    return m.grad(m.grad(m.grad(curve)))


def third_derivatives(m: Transforms) -> Callable[..., Any]:
    return m.vmap(third_derivative(m))


# -- their arguments -------------------------------------------------------------------------------


def normal(seed: int, *shape: int) -> np.ndarray:
    """Return normal numbers: the same arrays for every framework."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def perceptron(*sizes: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the weights and biases of a perceptron."""
    pairs = enumerate(pairwise(sizes))
    return [
        (normal(seed + i, n, m) / np.float32(n**0.5), 0.1 * normal(seed + 50 + i, m))
        for i, (n, m) in pairs
    ]


def network(*sizes: int, batch: int) -> Callable[[], tuple[Any, ...]]:
    """Return how to make the parameters of a perceptron, inputs and targets."""
    return lambda: (
        perceptron(*sizes),
        normal(100, batch, sizes[0]),
        normal(101, batch, sizes[-1]),
    )


def with_tangents(*sizes: int, batch: int) -> Callable[[], tuple[Any, ...]]:
    """Return the same with a direction for the parameters."""

    def make() -> tuple[Any, ...]:
        params, x, y = network(*sizes, batch=batch)()
        return params, perceptron(*sizes, seed=200), x, y

    return make


CASES = {
    "gradient": Case(gradient, network(64, 128, 128, 1, batch=64)),
    "Hessian of a 3-layer MLP": Case(hessian, network(4, 16, 16, 1, batch=32)),
    "hvp, 1e5 parameters": Case(hessian_vector_product, with_tangents(128, 256, 256, 1, batch=64)),
    "per-example gradients, 256": Case(gradients_per_example, network(32, 64, 64, 1, batch=256)),
    "Jacobian 100x100": Case(
        jacobian, lambda: (normal(0, 100), normal(1, 100, 100) / 10, normal(2, 100, 100) / 10)
    ),
    "third derivative": Case(third_derivative, lambda: (np.array(0.7, np.float32),)),
    "third derivative, 1000 points": Case(third_derivatives, lambda: (normal(0, 1000),)),
}


def trees(make: Callable[[Any], Any], tree: Any) -> Any:
    """Return lists and tuples of arrays with each array made into something else."""
    if isinstance(tree, (list, tuple)):
        return type(tree)(trees(make, item) for item in tree)
    return make(tree)


# -- frameworks ------------------------------------------------------------------------------------


def with_weft() -> Workloads:
    """Return the workloads for Weft, eager and compiled."""
    import weft as wf

    wf.set_num_threads(THREADS)
    made: Workloads = {}
    for name, case in CASES.items():
        fn, args = case.make(wf), trees(wf.tensor, case.arguments())
        made[f"{name}, eager"] = lambda fn=fn, args=args: fn(*args)
        compiled = wf.compile(fn, *args)
        made[f"{name}, compiled"] = lambda fn=compiled, args=args: fn(*args)
    return made


class TorchNamespace:
    """What torch.func and torch call the same things."""

    def __init__(self, torch: Any) -> None:
        self.tanh, self.exp, self.sin = torch.tanh, torch.exp, torch.sin
        for name in ("grad", "vmap", "jvp", "jacrev", "hessian"):
            setattr(self, name, getattr(torch.func, name))


def with_torch() -> Workloads:
    """Return the workloads for torch.func, eagerly."""
    import torch

    torch.set_num_threads(THREADS)
    made: Workloads = {}
    for name, case in CASES.items():
        fn = case.make(TorchNamespace(torch))
        args = trees(torch.from_numpy, case.arguments())
        made[f"{name}, eager"] = lambda fn=fn, args=args: fn(*args)
    return made


def with_torch_compile() -> Workloads:
    """Return the workloads for torch.compile, as far as it can compile them whole."""
    import torch

    torch.set_num_threads(THREADS)
    made: Workloads = {}
    for name, case in CASES.items():
        fn = torch.compile(case.make(TorchNamespace(torch)), fullgraph=True)
        args = trees(torch.from_numpy, case.arguments())
        try:
            fn(*args)
        except Exception as error:  # whatever the reason, this case has no time then
            print(f"torch.compile: {name}: {type(error).__name__}", file=sys.stderr)
            continue
        made[f"{name}, compiled"] = lambda fn=fn, args=args: fn(*args)
    return made


class JaxNamespace:
    """What JAX calls the same things."""

    def __init__(self, jax: Any) -> None:
        self.tanh, self.exp, self.sin = jax.numpy.tanh, jax.numpy.exp, jax.numpy.sin
        for name in ("grad", "vmap", "jvp", "jacrev", "hessian"):
            setattr(self, name, getattr(jax, name))


def with_jax() -> Workloads:
    """Return the workloads for JAX, jitted."""
    import jax

    made: Workloads = {}
    for name, case in CASES.items():
        fn = jax.jit(case.make(JaxNamespace(jax)))
        args = trees(jax.numpy.asarray, case.arguments())
        made[f"{name}, compiled"] = lambda fn=fn, args=args: jax.block_until_ready(fn(*args))
    return made


if __name__ == "__main__":
    main(
        __file__,
        {
            "weft": with_weft,
            "torch": with_torch,
            "torch.compile": with_torch_compile,
            "jax": with_jax,
        },
        bars={
            **{f"{name}, eager": EAGER_BAR for name in CASES},
            **{f"{name}, compiled": COMPILED_BAR for name in CASES},
        },
        tolerance=TOLERANCE,
    )
