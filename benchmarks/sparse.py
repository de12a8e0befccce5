"""A training step of a large table by row-sparse gradients, beside PyTorch's `sparse=True`.

    python benchmarks/sparse.py --peer-python /path/to/python [--rounds N] [--threads N]
    python benchmarks/sparse.py --memory

A step looks up rows of a table of 1,000,000 x 32 numbers, takes the sum of their squares, its
gradient, and a step of SGD, Adagrad or SparseAdam. Weft takes it in its three faces: as an ordinary
loop (eager), as a graph (session) and as that loop under `wf.jit`; PyTorch eagerly, which is the
only way it has. `--memory` prints how much memory steps take beyond the table and its state, for
tables of several sizes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from harness import Workloads, main

ROWS, WIDTH = 1_000_000, 32
BATCHES = (256, 1024, 4096)
FACES = ("eager", "session", "jit")
RATES = {"SGD": 0.1, "Adagrad": 0.01, "SparseAdam": 0.001}
VOCABULARIES = (100_000, 1_000_000, 10_000_000)


def _indices(batch: int, rows: int = ROWS) -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, rows, batch) for _ in range(16)]


def _table(rows: int = ROWS) -> Any:
    return np.random.default_rng(1).standard_normal((rows, WIDTH), np.float32)


def _weft(threads: int) -> Workloads:
    import weft as wf

    wf.set_num_threads(threads)
    return {
        f"{name} {batch} {face}": _later(lambda n=name, b=batch, f=face: _weft_step(n, b, f))
        for name in RATES
        for batch in BATCHES
        for face in FACES
    }


def _torch(threads: int) -> Workloads:
    import torch

    torch.set_num_threads(threads)
    return {
        f"{name} {batch} {face}": _later(lambda n=name, b=batch: _torch_step(n, b))
        for name in RATES
        for batch in BATCHES
        for face in FACES
    }


def _later(make: Callable[[], Callable[[], None]]) -> Callable[[], None]:
    """Return a workload that is built when it is first run: not all tables fit into memory."""

    def run() -> None:
        if _latest.get("make") is not make:
            _latest.clear()
            _latest.update(make=make, step=make())
        _latest["step"]()

    return run


_latest: dict[str, Any] = {}


def _weft_step(name: str, batch: int, face: str, rows: int = ROWS) -> Callable[[], None]:
    import weft as wf

    table = wf.nn.Embedding.from_pretrained(wf.from_numpy(_table(rows)), freeze=False, sparse=True)
    optimizer = getattr(wf.optim, name)(table.parameters(), lr=RATES[name])
    arrays = _indices(batch, rows)
    if face == "session":
        with wf.Graph() as graph:
            index = wf.placeholder((batch,), wf.int64)
            update = optimizer.minimize(table(index).square().sum())
        session, feeds = wf.Session(graph), cycle(arrays)
        return lambda: session.run(update, {index: next(feeds)})

    def step(index: Any) -> None:
        optimizer.zero_grad()
        table(index).square().sum().backward()
        optimizer.step()

    run, tensors = (wf.jit(step) if face == "jit" else step), cycle(map(wf.tensor, arrays))
    return lambda: run(next(tensors))


def _torch_step(name: str, batch: int) -> Callable[[], None]:
    import torch

    table = torch.nn.Embedding.from_pretrained(
        torch.from_numpy(_table()), freeze=False, sparse=True
    )
    optimizer = getattr(torch.optim, name)(table.parameters(), lr=RATES[name])
    tensors = cycle([torch.from_numpy(array) for array in _indices(batch)])

    def step() -> None:
        optimizer.zero_grad()
        table(next(tensors)).square().sum().backward()
        optimizer.step()

    return step


# -- memory ----------------------------------------------------------------------------------------


def memory() -> None:
    """Print what steps take beyond the table and its state, each table in a process of its own."""
    print(f"{'rows':>12}{'table':>10}", *(f"{face:>12}" for face in FACES))
    for rows in VOCABULARIES:
        peaks = [_in_process(rows, face) for face in FACES]
        table = f"{rows * WIDTH * 4 / 1e6:.0f} MB"
        print(f"{rows:>12,}{table:>10}", *(f"{peak:>9.1f} MB" for peak in peaks), flush=True)


def _in_process(rows: int, face: str) -> float:
    command = [sys.executable, __file__, "--peak", str(rows), face]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(found.stdout)


def peak_of(rows: int, face: str) -> float:
    """Return by how many megabytes memory grows, at most, over what is there before a step."""
    step = _weft_step("SGD", 1024, face, rows)
    for _ in range(3):  # code is written, libraries are loaded
        step()
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    for _ in range(20):
        step()
    return (_status("VmHWM") - before) / 1e3


def _status(name: str) -> int:
    """Return a size, in kilobytes, of what Linux says of this process."""
    lines: Iterator[str] = iter(Path("/proc/self/status").read_text().splitlines())
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--peak", nargs=2)
    parser.add_argument("--threads", type=int, default=2)
    options, sys.argv[1:] = parser.parse_known_args()
    if options.peak:
        print(peak_of(int(options.peak[0]), options.peak[1]))
    elif options.memory:
        memory()
    else:
        workloads = {
            "weft": lambda: _weft(options.threads),
            "torch": lambda: _torch(options.threads),
        }
        names = [f"{n} {b} {face}" for n in RATES for b in BATCHES for face in FACES]
        arguments = [f"--threads={options.threads}"]
        main(__file__, workloads, dict.fromkeys(names, 1.0), arguments=arguments)
