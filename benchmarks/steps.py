"""Whole training steps against PyTorch and JAX, the loss read back each time.

    python benchmarks/steps.py --peer-python /path/to/python/with/torch/and/jax
    python benchmarks/steps.py --eager --against torch,channels_last --threads 1
    python benchmarks/steps.py --jit --against session

mlp        784-512-512-10 with ReLU, batch 128, cross-entropy
dqn        4-128-128-2 with ReLU, batch 64, Huber loss on the values of taken actions
cnn        conv 32, conv 64, maximum over 2x2, linear 128, linear 10; 28x28, batch 64
resnet18   with a 3x3 stem, batch norm in training; 32x32, batch 16
lstm       the framework's LSTM, hidden 256, over 64 characters of 65, batch 32
gpt        4 layers of size 256 with 4 heads, 128 tokens of 65, batch 8
cell       as lstm, with the cell written by hand

A step is forward, backward and Adam. Weft builds it as a graph and runs it compiled (Session,
optimizer.minimize); with --eager it is an ordinary loop of zero_grad, backward and step, and with
--jit the very same function under wf.jit. PyTorch runs it eagerly with the fused optimizer, also
with the channels of images last, and through torch.compile; JAX jits the whole step. `session` is
Weft's own graph, to compare --jit and --eager with in the same rounds. All use the same batch and
weights, float32 and as many threads. Losses of the first 20 steps must agree, each to a thousandth
of it and a hundredth of the first; otherwise that is reported, and not timed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

from harness import Workloads, main
from step_nets import WORKLOADS, Framework, Workload, initial

STEPS_COMPARED = 20
TOLERANCE = 1e-3
BARS = {
    "graph": {"mlp": 0.9, "dqn": 0.4},
    "eager": dict.fromkeys(WORKLOADS, 1.0),
    "jit": {},
}
Run = Callable[[], float]


class Step:
    """A step of training, made when it is first needed, and the losses of the first ones."""

    def __init__(self, make: Callable[[], Run]) -> None:
        self.make = make

    @cached_property
    def run(self) -> Run:
        """Return the function that takes a step and returns its loss."""
        return self.make()

    @cached_property
    def losses(self) -> list[float]:
        """Return the losses of the first steps."""
        return [self.run() for _ in range(STEPS_COMPARED)]

    def __call__(self) -> float:
        """Take one step; return its loss."""
        return self.run()

    def computed(self) -> list[float]:
        """Return the losses to compare: upon a hundredth of the first, for those near zero."""
        return [loss + 0.01 * self.losses[0] for loss in self.losses]


def steps(make: Callable[[Workload], Run], *, images: bool = False) -> Workloads:
    """Return a step of each workload; of those with images only, if so asked."""
    chosen = {name: w for name, w in WORKLOADS.items() if w.images or not images}
    return {name: Step(lambda w=workload: make(w)) for name, workload in chosen.items()}


def loop(lib: Any) -> Callable[..., tuple[Any, Any]]:
    """Return how a framework walks over time by a loop of Python."""

    def over_time(step: Any, state: Any, xs: Any) -> tuple[Any, Any]:
        outputs = []
        for x in xs:
            state, output = step(state, x)
            outputs.append(output)
        return state, lib.stack(outputs)

    return over_time


# -- Weft ----------------------------------------------------------------------------------------


def with_weft(mode: str, threads: int) -> Callable[[], Workloads]:
    """Return a function that makes the workloads for Weft: as graphs, eager or jitted."""

    def make() -> Workloads:
        import weft as wf

        wf.set_num_threads(threads)
        if mode == "graph":
            return steps(graph_step)
        if mode == "jit" and not hasattr(wf, "jit"):
            raise ImportError("this Weft has no wf.jit")
        return steps(lambda workload: eager_step(workload, jitted=mode == "jit"))

    return make


def weft_net(workload: Workload, over_time: Any) -> tuple[Framework, Any, Any]:
    """Return the framework, a network with the initial weights, and its optimizer."""
    import weft as wf

    lib = Framework(wf.nn, wf.nn.functional, wf.arange, wf.gather, over_time)
    net = workload.net(lib)
    with wf.no_grad():
        for name, p in net.named_parameters():
            p.copy_(initial(name, tuple(p.shape)))
    return lib, net, wf.optim.Adam(net.parameters(), lr=1e-3)


def graph_step(workload: Workload) -> Run:
    """Return a step as a graph that a session runs."""
    import weft as wf

    lib, net, optimizer = weft_net(workload, wf.scan)
    data = workload.batch()
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype, name=f"x{i}") for i, a in enumerate(data)]
        loss = workload.loss(lib, net, *feeds)
        train = optimizer.minimize(loss)
    session = wf.Session(graph)
    feed_dict = dict(zip(feeds, data, strict=True))
    fetches = [loss, train]
    return lambda: float(session.run(fetches, feed_dict)[0])


def eager_step(workload: Workload, *, jitted: bool) -> Run:
    """Return a step as an ordinary function, run operation by operation or under jit."""
    import weft as wf

    lib, net, optimizer = weft_net(workload, loop(wf))
    data = [wf.tensor(a) for a in workload.batch()]

    def step(*data: Any) -> Any:
        optimizer.zero_grad()
        loss = workload.loss(lib, net, *data)
        loss.backward()
        optimizer.step()
        return loss

    taken = wf.jit(step) if jitted else step
    return lambda: float(taken(*data))


# -- peers ---------------------------------------------------------------------------------------


def with_torch(
    threads: int, *, compiled: bool = False, channels_last: bool = False
) -> Callable[[], Workloads]:
    """Return a function that makes the workloads for PyTorch."""

    def make() -> Workloads:
        import torch

        torch.set_num_threads(threads)
        layout = torch.channels_last if channels_last else torch.contiguous_format
        lib = Framework(torch.nn, torch.nn.functional, torch.arange, torch.gather, loop(torch))

        def step(workload: Workload) -> Run:
            net = workload.net(lib)
            with torch.no_grad():
                for name, p in net.named_parameters():
                    p.copy_(torch.from_numpy(initial(name, tuple(p.shape))))
            net = net.to(memory_format=layout)
            data = [torch.from_numpy(a) for a in workload.batch()]
            if workload.images:
                data[0] = data[0].contiguous(memory_format=layout)
            optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)
            objective = torch.compile(workload.loss) if compiled else workload.loss

            def run() -> float:
                optimizer.zero_grad(set_to_none=True)
                loss = objective(lib, net, *data)
                loss.backward()
                optimizer.step()
                return float(loss.item())

            return run

        return steps(step, images=channels_last)

    return make


def with_jax(threads: int) -> Callable[[], Workloads]:
    """Return a function that makes the workloads for JAX: steps jitted, their state donated."""

    def make() -> Workloads:
        if threads == 1:  # XLA takes as many threads as it may use processors
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        return jax_steps()

    return make


def jax_steps() -> Workloads:
    """Return the workloads for JAX: each step jitted, its state donated."""
    import jax
    import jax.numpy as jnp
    from step_jax import workloads

    def adam(p: Any, g: Any, m: Any, v: Any, t: Any) -> tuple[Any, Any, Any]:
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        root = jnp.sqrt(v / (1 - 0.999**t)) + 1e-8
        return p - 1e-3 * (m / (1 - 0.9**t)) / root, m, v

    def step(name: str) -> Run:
        workload = workloads()[name]
        loss_and_grad = jax.value_and_grad(workload.loss)

        def update(state: Any, *data: Any) -> tuple[Any, Any]:
            params, ms, vs, t = state
            loss, grads = loss_and_grad(params, *data)
            made = {k: adam(params[k], grads[k], ms[k], vs[k], t + 1.0) for k in params}
            return loss, (*({k: row[i] for k, row in made.items()} for i in range(3)), t + 1.0)

        jitted = jax.jit(update, donate_argnums=0)
        params = {k: jnp.array(initial(k, s)) for k, s in workload.shapes.items()}
        zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
        held = [(params, *zeros, jnp.zeros(()))]
        data = [jnp.array(a) for a in WORKLOADS[name].batch()]

        def run() -> float:
            loss, held[0] = jitted(held[0], *data)
            return float(loss)

        return run

    return {name: Step(lambda name=name: step(name)) for name in WORKLOADS}


def options() -> argparse.Namespace:
    """Return what this benchmark adds to the options of all; the harness reads the others."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--eager", dest="mode", action="store_const", const="eager")
    parser.add_argument("--jit", dest="mode", action="store_const", const="jit")
    parser.set_defaults(mode="graph")
    found, sys.argv[1:] = parser.parse_known_args()
    return found


if __name__ == "__main__":
    given = options()
    main(
        __file__,
        {
            "weft": with_weft(given.mode, given.threads),
            "torch": with_torch(given.threads),
            "channels_last": with_torch(given.threads, channels_last=True),
            "torch.compile": with_torch(given.threads, compiled=True),
            "jax": with_jax(given.threads),
            "session": with_weft("graph", given.threads),
        },
        bars=BARS[given.mode],
        tolerance=TOLERANCE,
        arguments=[f"--threads={given.threads}", *([f"--{given.mode}"] * (given.mode != "graph"))],
        asked_for=["session"],
    )
