"""Two equal towers that need nothing of one another, at the same time and one after the other.

    python benchmarks/branches.py
    python benchmarks/branches.py --against torch,jax --peer-python /path/to/python
    python benchmarks/branches.py --beside
    python benchmarks/branches.py --plans

mlp      40 layers of 64 with tanh, batch 32
lstm     64 steps of an LSTM of 64, batch 8
image    6 convolutions of 8 channels, one image of 16x16
conv     the same with a batch of 4
train    the towers of mlp, with 12 layers each, their loss, gradients and Adam
train2   the same with the towers of lstm, and SGD

Without peers both towers are fetched in one run, which two threads share, and in two runs, one
tower each; both ways run in turn in one process, and the least time of each counts. The bar is 0.6.

A tower alone is no slower on two threads than on one. Where it is faster, because threads share its
large kernels, less is left to gain: both towers take two processors at least as long as one of them
takes one processor. `limit` is that time, measured too, beside both one after the other. Where it
lies above the bar, towers fill the machine by themselves, and no order of theirs can reach it.

With --beside that limit is not a tower alone but two processes beside each other, each with one
tower and one thread, which share nothing but the machine: caches and memory that both use are part
of it.

With --against these towers of other frameworks run beside them, in processes of their own. With
--plans nothing is timed: of each workload of steps.py it is told whether its plan has chains, and
how long it took to find out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Workloads, main

BAR = 0.6
Array = np.ndarray[Any, Any]
Towers = list[list[Array]]  # the weights of each


def array(rng: Any, *shape: int) -> Array:
    """Return small numbers."""
    return (rng.standard_normal(shape) * 0.2).astype(np.float32)


def weights(kind: str) -> tuple[Array, Towers]:
    """Return what towers take, and the weights of two."""
    rng = np.random.default_rng(0)
    if kind == "mlp":
        shapes = [(64, 64), (64,)] * 40
        return array(rng, 32, 64), [[array(rng, *s) for s in shapes] for _ in range(2)]
    if kind == "lstm":
        shapes = [(256, 64), (256, 64), (256,), (256,)]
        return array(rng, 64, 8, 64), [[array(rng, *s) for s in shapes] for _ in range(2)]
    shapes = [(8, 8, 3, 3), (8,)] * 6
    images = 1 if kind == "image" else 4
    return array(rng, images, 8, 16, 16), [[array(rng, *s) for s in shapes] for _ in range(2)]


FORWARD = ("mlp", "lstm", "image", "conv")
TRAINED = {"train": "mlp", "train2": "lstm"}


def layers_of(kind: str) -> str:
    """Return which layers towers are made of."""
    return "conv" if kind == "image" else kind


# -- Weft ------------------------------------------------------------------------------------------


def weft_tower(kind: str, given: list[Array]) -> Any:
    """Return a tower as a module with given weights."""
    import weft as wf  # each framework is imported in its own process only

    pairs = len(given) // 2
    net = {
        "mlp": lambda: wf.nn.Sequential(
            *[f for _ in range(pairs) for f in (wf.nn.Linear(64, 64), wf.nn.Tanh())]
        ),
        "lstm": lambda: wf.nn.LSTM(64, 64),
        "conv": lambda: wf.nn.Sequential(
            *[f for _ in range(pairs) for f in (wf.nn.Conv2d(8, 8, 3, padding=1), wf.nn.ReLU())]
        ),
    }[layers_of(kind)]()
    for parameter, value in zip(net.parameters(), given, strict=True):
        parameter.assign(value)
    return net


def output(kind: str, made: Any) -> Any:
    """Return what a tower computes: of a recurrent net, its outputs."""
    return made[0] if kind == "lstm" else made


def weft_towers(kind: str) -> tuple[Any, list[Any], Any]:
    """Return a session, the sums of both towers, and what is fed."""
    import weft as wf  # as above

    x, towers = weights(kind)
    nets = [weft_tower(kind, tower) for tower in towers]
    with wf.Graph() as graph:
        fed = wf.placeholder(x.shape, wf.float32, name="x")
        sums = [output(kind, net(fed)).sum() for net in nets]
    return wf.Session(graph), sums, {fed: x}


def weft_training(kind: str) -> tuple[Any, list[Any], Any]:
    """Return a session, what trains each of two towers, and what is fed."""
    import weft as wf  # as above

    x, towers = weights(kind)
    nets = [weft_tower(kind, tower[:24]) for tower in towers]
    with wf.Graph() as graph:
        fed = wf.placeholder(x.shape, wf.float32, name="x")
        steps = []
        for net in nets:
            loss = (output(kind, net(fed)) ** 2).mean()
            make = wf.optim.Adam if kind == "mlp" else wf.optim.SGD
            steps.append([loss, make(net.parameters(), lr=1e-4).minimize(loss)])
    return wf.Session(graph), steps, {fed: x}


def weft() -> Workloads:
    """Return runs of both towers."""

    def run(kind: str) -> Callable[[], Any]:
        session, sums, feeds = weft_towers(kind)
        return lambda: [float(value) for value in session.run(sums, feeds)]

    return {kind: run(kind) for kind in FORWARD}


# -- peers -----------------------------------------------------------------------------------------


def torch() -> Workloads:
    """Return the same in PyTorch, eagerly."""
    import torch as th  # as above

    th.set_num_threads(2)

    def tower(kind: str, given: list[Array]) -> Any:
        pairs, nn = len(given) // 2, th.nn
        net = {
            "mlp": lambda: nn.Sequential(
                *[f for _ in range(pairs) for f in (nn.Linear(64, 64), nn.Tanh())]
            ),
            "lstm": lambda: nn.LSTM(64, 64),
            "conv": lambda: nn.Sequential(
                *[f for _ in range(pairs) for f in (nn.Conv2d(8, 8, 3, padding=1), nn.ReLU())]
            ),
        }[layers_of(kind)]()
        with th.no_grad():
            for parameter, value in zip(net.parameters(), given, strict=True):
                parameter.copy_(th.from_numpy(value))
        return net

    def run(kind: str) -> Callable[[], Any]:
        x, towers = weights(kind)
        nets, given = [tower(kind, t) for t in towers], th.from_numpy(x)

        def both() -> list[float]:
            with th.inference_mode():
                return [float(output(kind, net(given)).sum()) for net in nets]

        return both

    return {kind: run(kind) for kind in FORWARD}


def jax() -> Workloads:
    """Return the same in JAX, both towers in one jitted function."""
    import jax as jx  # as above
    import jax.numpy as jnp

    def mlp(x: Any, given: list[Any]) -> Any:
        for w, b in zip(given[::2], given[1::2], strict=True):
            x = jnp.tanh(x @ w.T + b)
        return x

    def lstm(xs: Any, given: list[Any]) -> Any:
        w, u, b, c = given
        zero = jnp.zeros(xs.shape[1:])

        def step(state: Any, x: Any) -> Any:
            h, cell = state
            i, f, g, o = jnp.split(x + h @ u.T + c, 4, axis=1)
            cell = jx.nn.sigmoid(f) * cell + jx.nn.sigmoid(i) * jnp.tanh(g)
            h = jx.nn.sigmoid(o) * jnp.tanh(cell)
            return (h, cell), h

        return jx.lax.scan(step, (zero, zero), xs @ w.T + b)[1]

    def conv(x: Any, given: list[Any]) -> Any:
        for w, b in zip(given[::2], given[1::2], strict=True):
            made = jx.lax.conv(x, w, (1, 1), "SAME")
            x = jnp.maximum(made + b[:, None, None], 0)
        return x

    def run(kind: str) -> Callable[[], Any]:
        x, towers = weights(kind)
        tower = {"mlp": mlp, "lstm": lstm, "conv": conv}[layers_of(kind)]
        both = jx.jit(lambda x, towers: [tower(x, t).sum() for t in towers])
        return lambda: [float(value) for value in both(x, towers)]

    return {kind: run(kind) for kind in FORWARD}


# -- at the same time, and one after the other -----------------------------------------------------


def made_with(threads: int, kind: str) -> tuple[Any, list[Any], Any]:
    """Return a session of towers that is planned for so many threads, and what it runs."""
    import weft as wf  # as above

    wf.set_num_threads(threads)
    session, fetches, feeds = weft_training(TRAINED[kind]) if kind in TRAINED else weft_towers(kind)
    for fetched in (*fetches, list(fetches)):
        session.run(fetched, feeds)
    return session, fetches, feeds


def least(runs: dict[str, tuple[int, Callable[[], Any]]], seconds: float) -> dict[str, float]:
    """Return the least microseconds of runs, on so many threads each, timed in turn."""
    import weft as wf  # as above

    best = dict.fromkeys(runs, float("inf"))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name, (threads, run) in runs.items():
            wf.set_num_threads(threads)
            run()
            for _ in range(20):
                start = time.perf_counter()
                run()
                best[name] = min(best[name], (time.perf_counter() - start) * 1e6)
    return best


def run_alone(kind: str, seconds: float) -> None:
    """Print the least microseconds of one tower on one thread."""
    session, (tower, _), feeds = made_with(1, kind)
    print(least({"alone": (1, lambda: session.run(tower, feeds))}, seconds)["alone"])


def two_processes(kind: str, seconds: float) -> float:
    """Return the microseconds of a tower in each of two processes beside each other: the mean."""
    command = [sys.executable, __file__, "--alone", kind, "--seconds", str(seconds)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    return sum(float(process.communicate()[0]) for process in both) / 2


def compare(seconds: float, only: list[str], *, beside: bool) -> None:
    """Print a line for each pair of towers."""
    print(f"{'towers':8} {'one after the other':>20} {'at the same time':>17} {'ratio':>7} limit")
    for kind in only:
        alone, (tower, _), feeds_alone = made_with(1, kind)
        session, fetches, feeds = made_with(2, kind)
        both, (one, other) = list(fetches), fetches
        times = least(
            {
                "alone": (1, lambda s=alone, a=tower, f=feeds_alone: s.run(a, f)),
                "after": (2, lambda s=session, a=one, b=other, f=feeds: (s.run(a, f), s.run(b, f))),
                "same": (2, lambda s=session, a=both, f=feeds: s.run(a, f)),
            },
            seconds,
        )
        if beside:
            times["alone"] = two_processes(kind, seconds)
        print_line(kind, **times)


def print_line(kind: str, alone: float, after: float, same: float) -> None:
    """Print the times of towers, and whether they keep the bar."""
    ratio, limit = same / after, alone / after
    mark = "" if ratio <= BAR else "! "
    fills = "fills the machine" if limit > BAR else ""
    print(f"{kind:8} {after:17.1f} us {same:14.1f} us {ratio:7.2f} {limit:5.2f} {mark}{fills}")


def show_plans() -> None:
    """Print what becomes of the programs of steps.py; nothing is compiled."""
    from steps import WORKLOADS, graph_step  # needs all of Weft, which peers do not have

    from weft.compiler import stages

    name, chosen = "branches at the same time", {}
    stage = stages.ON_PROGRAMS[name]

    def timed(program: Any, device: Any) -> Any:
        start = time.process_time()
        made = stage(program, device)
        chosen[len(program.kernels)] = made is not program, time.process_time() - start
        return made

    stages.ON_PROGRAMS[name] = timed
    stages.known_program = lambda *_: None  # plans that were kept are not made again
    for workload, net in WORKLOADS.items():
        chosen.clear()
        graph_step(net)()
        kernels = max(chosen)
        changed, seconds = chosen[kernels]
        way = "chains" if changed else "as before"
        print(f"{workload:10} {kernels:5} kernels: {way}, found in {seconds * 1e3:.1f} ms")


if __name__ == "__main__":
    if {"--worker", "--against"} & {word.partition("=")[0] for word in sys.argv}:
        main(__file__, {"weft": weft, "torch": torch, "jax": jax}, tolerance=1e-3)
    else:
        parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
        parser.add_argument("--seconds", type=float, default=5.0, help="for each")
        parser.add_argument("--only", default=",".join((*FORWARD, *TRAINED)))
        parser.add_argument("--beside", action="store_true", help="limits by two processes")
        parser.add_argument("--alone", help=argparse.SUPPRESS)  # one of these processes
        parser.add_argument("--plans", action="store_true", help="of steps.py, not timed")
        options = parser.parse_args()
        if options.plans:
            show_plans()
        elif options.alone:
            run_alone(options.alone, options.seconds)
        else:
            compare(options.seconds, options.only.split(","), beside=options.beside)
