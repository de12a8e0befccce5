"""Whole training steps against PyTorch and JAX, the loss read back each time.

    python benchmarks/steps.py --peer-python /path/to/python/with/torch/and/jax

mlp   784-512-512-10 with ReLU, batch 128, cross-entropy
dqn   4-128-128-2 with ReLU, batch 64, Huber loss on the values of taken actions

A step is forward, backward and Adam. Weft builds it as a graph and runs it compiled (Session,
optimizer.minimize); PyTorch runs it eagerly with the fused optimizer, and through torch.compile;
JAX jits the whole step. All use the same batch and weights, float32, and two threads. Losses of the
first 20 steps must agree, each to a thousandth of it; otherwise that is reported, and not timed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from harness import Workloads, main

THREADS = 2
STEPS_COMPARED = 20
TOLERANCE = 1e-3


def batch(name):
    """Return the inputs of a workload: the same arrays for every framework."""
    rng = np.random.default_rng(0)
    if name == "mlp":
        return rng.normal(size=(128, 784)).astype(np.float32), rng.integers(0, 10, 128)
    states = rng.normal(size=(64, 4)).astype(np.float32)
    return states, rng.integers(0, 2, 64), rng.normal(size=64).astype(np.float32)


def weights(sizes):
    """Return the initial weights of a perceptron."""
    rng = np.random.default_rng(1)
    return [
        (
            (rng.normal(size=(n, m)) / np.sqrt(m)).astype(np.float32),
            np.zeros(n, np.float32),
        )
        for m, n in pairwise(sizes)
    ]


SIZES = {"mlp": (784, 512, 512, 10), "dqn": (4, 128, 128, 2)}


class Step:
    """A step of training, and the losses of the first ones, which frameworks must agree on."""

    def __init__(self, run: Callable[[], float]) -> None:
        self.run = run
        self.losses = [run() for _ in range(STEPS_COMPARED)]

    def __call__(self) -> float:
        """Take one step; return its loss."""
        return self.run()

    def computed(self) -> list[float]:
        """Return the losses to compare."""
        return self.losses


def with_weft() -> Workloads:
    """Return the workloads for Weft."""
    return {name: Step(weft_step(name)) for name in SIZES}


def weft_step(name):
    """Return a function that takes one step of a workload and returns the loss."""
    import weft as wf
    import weft.nn.functional as F

    wf.set_num_threads(THREADS)
    layers = []
    for w, b in weights(SIZES[name]):
        linear = wf.nn.Linear(w.shape[1], w.shape[0])
        with wf.no_grad():
            linear.weight.copy_(w)
            linear.bias.copy_(b)
        layers += [linear, wf.nn.ReLU()]
    net = wf.nn.Sequential(*layers[:-1])
    data = batch(name)
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(data)]
        out = net(feeds[0])
        if name == "mlp":
            loss = F.cross_entropy(out, feeds[1])
        else:
            chosen = wf.gather(out, 1, feeds[1][:, None])[:, 0]
            loss = F.smooth_l1_loss(chosen, feeds[2])
        train = wf.optim.Adam(net.parameters(), lr=1e-3).minimize(loss)
    session = wf.Session(graph)
    feed_dict = dict(zip(feeds, data, strict=True))
    fetches = [loss, train]

    def run():
        return float(session.run(fetches, feed_dict)[0])

    return run


def with_torch(compiled):
    """Return a function that makes the workloads for PyTorch."""

    def make() -> Workloads:
        import torch
        import torch.nn.functional as TF

        torch.set_num_threads(THREADS)

        def step(name):
            layers = []
            for w, b in weights(SIZES[name]):
                linear = torch.nn.Linear(w.shape[1], w.shape[0])
                with torch.no_grad():
                    linear.weight.copy_(torch.from_numpy(w))
                    linear.bias.copy_(torch.from_numpy(b))
                layers += [linear, torch.nn.ReLU()]
            net = torch.nn.Sequential(*layers[:-1])
            optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
            data = [torch.from_numpy(a) for a in batch(name)]

            def objective():
                out = net(data[0])
                if name == "mlp":
                    return TF.cross_entropy(out, data[1])
                chosen = out.gather(1, data[1][:, None])[:, 0]
                return TF.smooth_l1_loss(chosen, data[2])

            objective = torch.compile(objective) if compiled else objective

            def run():
                optimizer.zero_grad(set_to_none=True)
                loss = objective()
                loss.backward()
                optimizer.step()
                return loss.item()

            return Step(run)

        return {name: step(name) for name in SIZES}

    return make


def with_jax() -> Workloads:
    """Return the workloads for JAX: the whole step jitted, its state donated."""
    import jax
    import jax.numpy as jnp

    def forward(params, x):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w.T + b)
        w, b = params[-1]
        return x @ w.T + b

    def objective(name):
        def mlp(params, x, y):
            logs = jax.nn.log_softmax(forward(params, x))
            return -jnp.take_along_axis(logs, y[:, None], axis=1).mean()

        def dqn(params, x, action, target):
            chosen = jnp.take_along_axis(forward(params, x), action[:, None], axis=1)[:, 0]
            error = jnp.abs(chosen - target)
            return jnp.where(error < 1, 0.5 * error * error, error - 0.5).mean()

        return {"mlp": mlp, "dqn": dqn}[name]

    def adam(p, g, m, v, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        root = jnp.sqrt(v / (1 - 0.999**t)) + 1e-8
        return p - 1e-3 * (m / (1 - 0.9**t)) / root, m, v

    def step(name):
        loss_and_grad = jax.value_and_grad(objective(name))

        def update(state, *data):
            params, ms, vs, t = state
            loss, grads = loss_and_grad(params, *data)
            leaves, form = jax.tree.flatten(params)
            rows = zip(leaves, *(jax.tree.leaves(tree) for tree in (grads, ms, vs)), strict=True)
            made = [adam(*row, t + 1.0) for row in rows]
            trees = [form.unflatten([row[i] for row in made]) for i in range(3)]
            return loss, (*trees, t + 1.0)

        jitted = jax.jit(update, donate_argnums=0)
        params = [(jnp.array(w), jnp.array(b)) for w, b in weights(SIZES[name])]
        zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
        held = [(params, *zeros, jnp.zeros(()))]
        data = [jnp.array(a) for a in batch(name)]

        def run():
            loss, held[0] = jitted(held[0], *data)
            return float(loss)

        return Step(run)

    return {name: step(name) for name in SIZES}


if __name__ == "__main__":
    main(
        __file__,
        {
            "weft": with_weft,
            "torch": with_torch(False),
            "torch.compile": with_torch(True),
            "jax": with_jax,
        },
        bars={"mlp": 0.9, "dqn": 0.4},
        tolerance=TOLERANCE,
    )
