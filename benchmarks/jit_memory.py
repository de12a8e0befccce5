"""Whether many jitted steps take more memory than a few: they must not.

    python benchmarks/jit_memory.py [--steps 10000] [--only plain,sizes]

plain        steps of 16-64-64-4, always alike
sizes        the same with batches of four sizes, in turn
alternating  a step that branches on a value, now one way and now the other
kept         losses as numbers that the caller keeps, and gradients that it reads
nested       batches as dictionaries, and a keyword

Each runs in a process of its own. A row gives the resident memory after a tenth of the steps and at
the end, what it grew by between the two (the bar is 1 %), and how many things there are at both
times: recordings that were made, paths that are kept and written entries of the function, texts of
written functions, and objects that Python tracks.
"""

from __future__ import annotations

import argparse
import gc
import linecache
import os
import subprocess
import sys

import numpy as np

BAR = 0.01
PAGE = os.sysconf("SC_PAGE_SIZE")


def network(wf):
    """Return a network, its optimizer, and a function that makes batches."""
    wf.set_num_threads(1)
    wf.manual_seed(0)
    nn = wf.nn
    net = nn.Sequential(
        nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)
    )
    rng = np.random.default_rng(0)

    def batch(rows):
        return (
            wf.tensor(rng.normal(size=(rows, 16)).astype(np.float32)),
            wf.tensor(rng.integers(0, 4, rows)),
        )

    return net, wf.optim.Adam(net.parameters(), lr=1e-4), batch


def plain(wf):
    """Return a jitted function, and what takes a step with it."""
    net, optimizer, batch = network(wf)
    step = wf.jit(training(wf, net, optimizer))
    return step, lambda i: step(*batch(32))


def sizes(wf):
    """Return the same for batches of four sizes."""
    net, optimizer, batch = network(wf)
    step = wf.jit(training(wf, net, optimizer))
    return step, lambda i: step(*batch((8, 16, 24, 32)[i % 4]))


def alternating(wf):
    """Return the same for a step that depends on a value."""
    net, optimizer, batch = network(wf)
    take = training(wf, net, optimizer)

    @wf.jit
    def step(x, y):
        loss = take(x, y)
        return loss * 2 if x[0, 0] > 0 else -loss

    return step, lambda i: step(*batch(32))


def kept(wf):
    """Return the same where the caller keeps numbers and reads gradients."""
    net, optimizer, batch = network(wf)
    take = training(wf, net, optimizer)
    step = wf.jit(lambda x, y: take(x, y).item())
    losses = []

    def run(i):
        losses.append(step(*batch(32)))
        del losses[:-100]
        return [float(p.grad.numpy().sum()) for p in net.parameters()]

    return step, run


def nested(wf):
    """Return the same where a batch is a dictionary."""
    net, optimizer, batch = network(wf)
    take = training(wf, net, optimizer)
    step = wf.jit(lambda batch, *, scale: {"loss": take(*batch["data"]) * scale})
    return step, lambda i: step({"data": batch(32)}, scale=1.0 + i)


def training(wf, net, optimizer):
    """Return a step as one writes it."""

    def step(x, y):
        optimizer.zero_grad()
        loss = wf.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


CASES = {f.__name__: f for f in (plain, sizes, alternating, kept, nested)}


def resident() -> int:
    """Return the resident memory of this process, in bytes."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGE


def counted(step) -> list[int]:
    """Return how many things are kept."""
    stats = step.stats()
    gc.collect()
    written = sum(name.startswith("<weft") for name in linecache.cache)
    kept = [stats["recordings"], stats["paths"], len(step._entries.quick), written]
    return [*kept, len(gc.get_objects())]


def measure(name: str, steps: int) -> None:
    """Take the steps of one case and print its row."""
    import weft as wf

    step, run = CASES[name](wf)
    first = steps // 10
    for i in range(first):
        run(i)
    before, then = counted(step), resident()
    for i in range(first, steps):
        run(i)
    after, now = counted(step), resident()
    growth = now / then - 1
    kept = "  ".join(f"{a}:{b}" for a, b in zip(before, after, strict=True))
    mark = "" if growth <= BAR else "  over the bar"
    print(f"{name:<13}{then / 2**20:9.2f}{now / 2**20:9.2f}{100 * growth:9.2f} %   {kept}{mark}")


def main() -> None:
    """Run each case in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        measure(options.worker, options.steps)
        return
    head = f"{'case':<13}{'MB then':>9}{'MB now':>9}{'growth':>11}"
    print(f"{head}   recordings, paths, entries, texts, objects (then:now)", flush=True)
    for name in options.only.split(","):
        command = [sys.executable, __file__, "--worker", name, "--steps", str(options.steps)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
