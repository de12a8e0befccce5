"""What a user waits for at the first call of a training step, beside JAX.

    python benchmarks/first_call.py --peer-python /path/to/python/with/jax
    python benchmarks/first_call.py --only mlp,dqn --rounds 9

The workloads are those of steps.py: a network, its weights and a batch are made, and then one step
is taken whose loss is read. Each measurement is a process of its own:

cold    Weft under wf.jit, with an empty object cache: all code is made
warm    Weft under wf.jit, with the cache that the cold process has filled
eager   Weft operation by operation, with a cache that an eager process has filled
jax     JAX with the whole step jitted, and no cache on disk

A round runs all of them one after another. `call` is the first call alone, after everything is
imported and the network is made; `import` loads the framework with its compiler (for JAX with its
device); `start` is everything since the process was started. Each is the median over rounds of
seconds on a clock; `cpu` are those of all processors for the call, with child processes. Columns of
ratios are medians of ratios within a round.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from step_nets import WORKLOADS
from steps import Run, eager_step, jax_steps

ROOT = Path(__file__).resolve().parent.parent
STARTED = "WEFT_BENCHMARK_STARTED"
CLOCKS = ("import", "call", "cpu", "start")
Times = dict[str, float]


def main() -> None:
    """Print a table of times, or serve as the process that is measured."""
    options = _parse()
    if options.worker:
        print(json.dumps(measure(options.worker, options.only, options.threads)))
        return
    # An installed package has its byte code beside it, as JAX's: this is no part of a first call.
    compileall.compile_dir(ROOT / "weft", quiet=1)
    _print_row("workload", [*(f"{w} {c}" for w in WAYS for c in CLOCKS), *RATIOS])
    for name in options.only.split(",") if options.only else WORKLOADS:
        rounds = [_round(name, options) for _ in range(options.rounds)]
        cells = [f"{statistics.median(r[w][c] for r in rounds):.3f}" for w in WAYS for c in CLOCKS]
        ratios = [f"{statistics.median(map(ratio, rounds)):.2f}" for ratio in RATIOS.values()]
        _print_row(name, [*cells, *ratios])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help="the workloads to run, separated by commas")
    parser.add_argument(
        "--peer-python",
        default=os.environ.get("WEFT_PEER_PYTHON", sys.executable),
        help="interpreter that has JAX installed",
    )
    return parser.parse_args()


def _print_row(name: str, cells: list[str]) -> None:
    print(f"{name:<10}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def _round(name: str, options: argparse.Namespace) -> dict[str, Times]:
    """Return the times of each way to run a workload, one right after the other."""
    with tempfile.TemporaryDirectory() as cache:
        times = {}
        for way in ("cold", "warm", "eager", "eager", "jax"):
            times[way] = _in_process(way, name, cache, options)  # of two, the last one counts
        return times


def _in_process(way: str, name: str, cache: str, options: argparse.Namespace) -> Times:
    python = options.peer_python if way == "jax" else sys.executable
    environment = {
        **os.environ,
        "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'benchmarks'}",
        "WEFT_CACHE_DIR": cache,
        "JAX_ENABLE_COMPILATION_CACHE": "false",
        STARTED: repr(time.monotonic()),
    }
    command = [python, __file__, "--worker", way, "--only", name, f"--threads={options.threads}"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    found: Times = json.loads(done.stdout)
    return found


# -- in the measured process -----------------------------------------------------------------------


def measure(way: str, name: str, threads: int) -> Times:
    """Make a workload and take its first step; return the seconds of each part."""
    before = time.monotonic()
    WAYS[way][0](threads)
    imported = time.monotonic() - before
    run = WAYS[way][1](name)
    wall, cpu = time.monotonic(), _processor_seconds()
    run()
    end = time.monotonic()
    spent = _processor_seconds() - cpu
    started = float(os.environ[STARTED])
    return {"import": imported, "call": end - wall, "cpu": spent, "start": end - started}


def _processor_seconds() -> float:
    """Return the time of this process and of the children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _import_weft(threads: int) -> None:
    import weft.backends.cpu.backend
    import weft.compiler.stages

    weft.set_num_threads(threads)


def _import_jax(threads: int) -> None:
    if threads == 1:  # XLA takes as many threads as it may use processors
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import jax

    jax.devices()


def _weft(*, jitted: bool) -> Callable[[str], Run]:
    return lambda name: eager_step(WORKLOADS[name], jitted=jitted)


WAYS: dict[str, tuple[Callable[[int], Any], Callable[[str], Run]]] = {
    "cold": (_import_weft, _weft(jitted=True)),
    "warm": (_import_weft, _weft(jitted=True)),
    "eager": (_import_weft, _weft(jitted=False)),
    "jax": (_import_jax, lambda name: jax_steps()[name].run),
}
RATIOS: dict[str, Callable[[dict[str, Times]], float]] = {
    "cold/jax": lambda r: r["cold"]["call"] / r["jax"]["call"],
    "cpu cold/jax": lambda r: r["cold"]["cpu"] / r["jax"]["cpu"],
    "start cold/jax": lambda r: r["cold"]["start"] / r["jax"]["start"],
    "warm-eager ms": lambda r: 1e3 * (r["warm"]["call"] - r["eager"]["call"]),
}

if __name__ == "__main__":
    main()
