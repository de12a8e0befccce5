"""What a jitted training step costs besides its computing, against torch.compile and jax.jit.

    python benchmarks/jit_overhead.py --peer-python /path/to/python/with/torch/and/jax

small   4-64-2 with ReLU, batch 32, mean square error: hardly anything to compute
mlp     784-512-512-10 with ReLU, batch 128, cross-entropy
dqn     4-128-128-2 with ReLU, batch 64, Huber loss on the values of taken actions

A step is an ordinary eager function: zero_grad, the loss, backward, Adam. Weft wraps it in wf.jit
and PyTorch in torch.compile, as it is; JAX jits the same step as a pure function whose state it is
donated. The loss is returned and not read, so that what is timed is the call.

The first table is Weft's alone: the whole call, the part of it that is machine code, what is left
for Python, and how often a step enters machine code, which should be once. It is in microseconds of
processor time, the least of many rounds in which both take turns, so that other work on the machine
hardly counts; the small step, whose bar it is, runs on one thread.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

import numpy as np
from harness import Workloads, main

SIZES = {"small": (4, 64, 2), "mlp": (784, 512, 512, 10), "dqn": (4, 128, 128, 2)}
BATCH = {"small": 32, "mlp": 128, "dqn": 64}
THREADS = 2
MICRO = 1e6
SLOT = 4.0  # seconds for each row of the first table
ROUND = 500  # calls of a round
MOST_OVERHEAD = 5.0  # microseconds, for the small network


def data_of(name):
    """Return the inputs of a workload: the same arrays for every framework."""
    rng, rows = np.random.default_rng(0), BATCH[name]
    first, *_, last = SIZES[name]
    inputs = rng.normal(size=(rows, first)).astype(np.float32)
    if name == "small":
        return inputs, rng.normal(size=(rows, last)).astype(np.float32)
    chosen = rng.integers(0, last, rows)
    if name == "mlp":
        return inputs, chosen
    return inputs, chosen, rng.normal(size=rows).astype(np.float32)


def weights(sizes):
    """Return the initial weights of a perceptron."""
    rng = np.random.default_rng(1)
    return [
        ((rng.normal(size=(n, m)) / np.sqrt(m)).astype(np.float32), np.zeros(n, np.float32))
        for m, n in pairwise(sizes)
    ]


def weft_step(name, threads=THREADS):
    """Return a jitted step and its arguments."""
    import weft as wf
    import weft.nn.functional as F

    wf.set_num_threads(threads)
    net = wf.nn.Sequential(*layers(wf, weights(SIZES[name]), wf.tensor))
    optimizer = wf.optim.Adam(net.parameters(), lr=1e-3)
    loss_of = {
        "small": F.mse_loss,
        "mlp": F.cross_entropy,
        "dqn": lambda out, action, target: F.smooth_l1_loss(
            wf.gather(out, 1, action[:, None])[:, 0], target
        ),
    }[name]
    return wf.jit(training(net, optimizer, loss_of)), [wf.tensor(a) for a in data_of(name)]


def torch_step(name):
    """Return a step compiled by torch.compile and its arguments."""
    import torch
    import torch.nn.functional as TF

    torch.set_num_threads(THREADS)
    net = torch.nn.Sequential(*layers(torch, weights(SIZES[name]), torch.from_numpy))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
    loss_of = {
        "small": TF.mse_loss,
        "mlp": TF.cross_entropy,
        "dqn": lambda out, action, target: TF.smooth_l1_loss(
            out.gather(1, action[:, None])[:, 0], target
        ),
    }[name]
    step = torch.compile(training(net, optimizer, loss_of))
    return step, [torch.from_numpy(a) for a in data_of(name)]


def layers(framework, given, as_tensor):
    """Return the layers of a perceptron."""
    made = []
    for w, b in given:
        linear = framework.nn.Linear(w.shape[1], w.shape[0])
        with framework.no_grad():
            linear.weight.copy_(as_tensor(w))
            linear.bias.copy_(as_tensor(b))
        made += [linear, framework.nn.ReLU()]
    return made[:-1]


def training(net, optimizer, loss_of):
    """Return a step as users of PyTorch and of Weft write it."""

    def step(x, *targets):
        optimizer.zero_grad()
        loss = loss_of(net(x), *targets)
        loss.backward()
        optimizer.step()
        return loss

    return step


def jax_step(name):
    """Return a step of JAX: a function of its state and of the data."""
    import jax
    import jax.numpy as jnp

    def loss_of(params, x, *targets):
        for w, b in params[:-1]:
            x = jax.nn.relu(x @ w.T + b)
        w, b = params[-1]
        out = x @ w.T + b
        if name == "small":
            return ((out - targets[0]) ** 2).mean()
        if name == "mlp":
            chosen = jnp.take_along_axis(jax.nn.log_softmax(out), targets[0][:, None], axis=1)
            return -chosen.mean()
        chosen = jnp.take_along_axis(out, targets[0][:, None], axis=1)[:, 0]
        error = jnp.abs(chosen - targets[1])
        return jnp.where(error < 1, 0.5 * error * error, error - 0.5).mean()

    def adam(p, g, m, v, t):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        root = jnp.sqrt(v / (1 - 0.999**t)) + 1e-8
        return p - 1e-3 * (m / (1 - 0.9**t)) / root, m, v

    def update(state, *data):
        params, ms, vs, t = state
        loss, grads = jax.value_and_grad(loss_of)(params, *data)
        leaves, form = jax.tree.flatten(params)
        rows = zip(leaves, *(jax.tree.leaves(tree) for tree in (grads, ms, vs)), strict=True)
        made = [adam(*row, t + 1.0) for row in rows]
        return loss, (*(form.unflatten([row[i] for row in made]) for i in range(3)), t + 1.0)

    jitted = jax.jit(update, donate_argnums=0)
    params = [(jnp.array(w), jnp.array(b)) for w, b in weights(SIZES[name])]
    zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
    held = [(params, *zeros, jnp.zeros(()))]

    def step(*data):
        loss, held[0] = jitted(held[0], *data)
        return loss.block_until_ready()

    return step, [jnp.array(a) for a in data_of(name)]


class Call:
    """A call of a step, and the losses of the first ones, which frameworks must agree on."""

    def __init__(self, step, data) -> None:
        self.step, self.data = step, data
        self.losses = [float(step(*data)) for _ in range(10)]

    def __call__(self):
        """Take one step."""
        return self.step(*self.data)

    def computed(self):
        """Return the losses to compare."""
        return self.losses


def with_steps(make):
    """Return a function that makes the workloads of a framework."""

    def workloads() -> Workloads:
        return {name: Call(*make(name)) for name in SIZES}

    return workloads


# -- Weft's own part ------------------------------------------------------------------------------


def breakdown(name) -> str:
    """Return the line of the first table for one workload."""
    step, data = weft_step(name, threads=1 if name == "small" else THREADS)
    for _ in range(10):
        step(*data)
    executable = executable_of(step)
    before = executable.memory.counter.item()
    step(*data)
    entered = executable.memory.counter.item() - before
    calls = executable.stats()["native_calls"] * entered
    native, whole = least_times(native_call(executable, data), lambda: step(*data))
    left = whole - native
    bar = f"{MOST_OVERHEAD:10.1f}" if name == "small" else ""
    return f"{name:<10}{whole:12.2f}{native:12.2f}{left:12.2f}{calls:14d}{bar}"


def executable_of(step):
    """Return the compiled program of a jitted step."""
    ((trace,),) = step._traces.values()
    (executable,) = trace.call._executables.values()
    return executable


def native_call(executable, data):
    """Return a call of the machine code alone, on arrays as a run passes them."""
    (name,) = executable.plan.steps
    entry = executable._entries[name]
    states = [executable.plan.sources.states[b.slot].read() for b in executable.layout.states]
    arguments = tuple(executable._arguments([x.numpy() for x in data], states))
    assert entry(arguments) is None
    return lambda: entry(arguments)


def least_times(*functions) -> list[float]:
    """Return the least processor times of calls, in microseconds; they take turns."""
    least = [float("inf")] * len(functions)
    end = time.monotonic() + SLOT
    while time.monotonic() < end:
        for i, function in enumerate(functions):
            start = time.process_time()
            for _ in range(ROUND):
                function()
            least[i] = min(least[i], MICRO * (time.process_time() - start) / ROUND)
    return least


def print_breakdown() -> None:
    """Print what Weft's calls are made of, in microseconds."""
    head = f"{'step':<10}{'whole':>12}{'native':>12}{'overhead':>12}{'native calls':>14}{'bar':>10}"
    print(head)
    for name in SIZES:
        print(breakdown(name), flush=True)
    print()


if __name__ == "__main__":
    if "--worker" not in sys.argv:
        print_breakdown()
    main(
        __file__,
        {
            "weft": with_steps(weft_step),
            "torch.compile": with_steps(torch_step),
            "jax": with_steps(jax_step),
        },
        tolerance=1e-3,
    )
