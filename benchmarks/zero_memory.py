"""Memory of a rank with sharded state (ZeRO), measured as a whole, beside the formulas.

    python benchmarks/zero_memory.py --ranks 2 4

A net of equal linear layers is trained with Adam on some rows, eagerly and jitted. Measured is the
resident memory of the process: its peak over some steps, less what it was before the model was
made, when a smaller model had been trained so that the compiler and its libraries were loaded. So
everything counts: parameters, gradients, slots, what is gathered, buffers of exchanges, the arena
of compiled programs and activations.

With P bytes of parameters in U layers on N ranks:

    stage 0      4 P               parameters, gradients, two slots
                 + B               the bucket that is exchanged
    stage 1, 2   4 P / N           a part of each
                 + P               parameters gathered from forward to backward
                 + 2 P / U         the gradient of a layer, and its sum on the way
    stage 3      4 P / N           a part of each
                 + 3 P / U         a layer's parameters, its gradient, and its sum on the way

In an eager step of stages 1 and 2 the parts of gradients come as gathered parameters go, so that
both count as P. A captured step has memory for all of its gradients from its start. It gathers the
parameters of the next layer while it computes one, and so has those of another layer: it is
measured beside the same formulas. Weft keeps memory that was freed for what comes next, up to
WEFT_POOL_MB (512 MB unless set): that would be counted, so here it is 0.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import weft as wf
from weft import distributed as dist

MIB = 1 << 20
BUCKET = 4.0  # MiB
STAGES = (0, 1, 2, 3)
MODES = ("eager", "jit")


def main() -> None:
    """Start ranks and print the table, or be one of them."""
    options = arguments()
    if options.rank_of is not None:
        measure(options)
        return
    print("memory of a rank in MiB: measured, formula, measured / formula")
    print(f"{'ranks':>5} {'stage':>5} {'mode':>6} {'measured':>9} {'formula':>8} {'ratio':>6}")
    for ranks in options.ranks:
        for stage, mode in [(stage, mode) for stage in options.stages for mode in options.modes]:
            found = started(ranks, stage, mode, options)
            expected = formula(stage, mode, ranks, options)
            figures = f"{found:9.1f} {expected:8.1f} {found / expected:6.2f}"
            print(f"{ranks:5} {stage:5} {mode:>6} {figures}", flush=True)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--stages", type=int, nargs="+", default=STAGES)
    parser.add_argument("--modes", nargs="+", default=MODES)
    parser.add_argument("--width", type=int, default=1200)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--rows", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rank-of", type=int, default=None, help=argparse.SUPPRESS)
    return parser.parse_args()


def formula(stage: int, mode: str, ranks: int, options: argparse.Namespace) -> float:
    """Return the MiB that a rank needs."""
    layer = (options.width + 1) * options.width * 4 / MIB
    whole = layer * options.layers
    if stage == 0:
        return 4 * whole + max(BUCKET, layer)
    if stage == 3:
        return 4 * whole / ranks + 3 * layer
    return (3 if mode == "eager" else 4) * whole / ranks + whole + 2 * layer


def started(ranks: int, stage: int, mode: str, options: argparse.Namespace) -> float:
    """Return what the fullest of so many ranks measures."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "weft.cli", "launch", "-n", str(ranks), "--threads", "1"]
        command += ["--logs", folder, __file__, "--rank-of", str(ranks), "--stages", str(stage)]
        command += ["--modes", mode, "--width", str(options.width), "--layers"]
        command += [str(options.layers), "--rows", str(options.rows), "--steps", str(options.steps)]
        done = subprocess.run(
            command,
            env={"WEFT_POOL_MB": "0", **os.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    lines = [line for line in done.stdout.splitlines() if line.startswith("MEMORY ")]
    assert lines, done.stdout + done.stderr
    return float(json.loads(lines[-1].removeprefix("MEMORY ")))


def measure(options: argparse.Namespace) -> None:
    """Train, and print the memory of the fullest rank."""
    stage, mode = options.stages[0], options.modes[0]
    train(stage, mode, 64, options)  # so that everything is loaded and compiled once
    gc.collect()
    before = status("VmRSS")
    model = train(stage, mode, options.width, options)
    found = (status("VmHWM") - before) / MIB
    del model
    fullest = float(dist.all_reduce(wf.tensor([found]), "max")[0])
    if dist.rank() == 0:
        print(f"MEMORY {fullest}", flush=True)


def train(stage: int, mode: str, width: int, options: argparse.Namespace) -> Any:
    """Take some steps; the peak of memory is that of the steps behind the first."""
    model = wf.nn.Sequential(*[wf.nn.Linear(width, width) for _ in range(options.layers)])
    dist.parallel(model, zero=stage, bucket_mib=BUCKET, first_bucket_mib=BUCKET)
    optimizer = wf.optim.Adam(model.parameters(), lr=1e-4)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = wf.jit(step, strict=True) if mode == "jit" else step
    x = wf.randn(options.rows, width)
    for i in range(options.steps + 1):
        run(x)
        if i == 0:
            gc.collect()
            forget_peak()
    return model, optimizer, run


def forget_peak() -> None:
    """Let the peak of memory begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def status(name: str) -> int:
    """Return a figure of this process's memory in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


if __name__ == "__main__":
    main()
