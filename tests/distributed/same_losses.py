"""The losses of fifty steps on one process and on several, in every way to train: one table.

    python -m tests.distributed.same_losses [--ranks 2 4] [--steps 50] [--only gpt zero ...]

One process trains everything first. Then two and four train the same global batches, and a cell of
the table is the largest relative difference of a loss to that of one process: at most 1e-10 in
float64 and 1e-4 in float32. Virtual shards must give the same bits, which is 0.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np

import weft as wf
from tests.distributed.divided import DIVIDED, divided_losses, pipeline_losses
from tests.distributed.processes import ENVIRONMENT, mpiexec, watched
from tests.distributed.workloads import (
    MODELS,
    MODES,
    WORKLOADS,
    train,
    train_by_shards,
    train_by_toml,
    write_data,
)
from weft import distributed as dist

BOUNDS = {"float64": 1e-10, "float32": 1e-4}
COLUMNS = (*MODES, "toml")


@dataclass(frozen=True)
class Case:
    """One way to train.

    found   trains on all processes, and returns the losses
    alone   trains on one; None: `found` does, which gives the same bits
    """

    workload: str
    way: str
    mode: str
    bound: float
    found: Callable[[], list[float]]
    alone: Callable[[], list[float]] | None = None

    def reference(self) -> list[float]:
        """Return the losses of one process."""
        return (self.found if self.alone is None else self.alone)()


# -- ways to train ---------------------------------------------------------------------------------

WAYS = {
    "float64": ({}, {}),  # what one process does as well, and what several do
    "float32": ({"dtype": "float32"}, {}),
    "small buckets": ({}, {"first_bucket_mib": 0.0005, "bucket_mib": 0.002}),
    "clipping": ({"clip": 0.1}, {}),
    "accumulation": ({"accumulate": 2}, {}),
    "schedule": ({"schedule": True}, {}),
    "all three": ({"clip": 0.1, "accumulate": 2, "schedule": True}, {}),
    **{f"zero {stage}": ({}, {"zero": stage}) for stage in (1, 2, 3)},
    "zero 3, all three": ({"clip": 0.1, "accumulate": 2, "schedule": True}, {"zero": 3}),
    "zero 3, float32": ({"dtype": "float32"}, {"zero": 3}),
}
BY_TOML = {  # accumulated, clipped, with a schedule
    "float64": ("float64", "true"),
    "float32": ("float32", "true"),
    **{f"zero {stage}": ("float64", f"{{ zero = {stage} }}") for stage in (1, 2, 3)},
    "zero 3, float32": ("float32", "{ zero = 3 }"),
}


def all_cases(steps, folder):
    """Return all ways, in the order of the table."""
    makers = (data_parallel, by_toml, sharded, divided, pipelines)
    return [case for make in makers for case in make(steps, folder)]


def data_parallel(steps, _):
    @cache
    def alone(name, way):
        return train(name, "eager", steps=steps, alone=True, **WAYS[way][0])

    for name in WORKLOADS:
        for way, (both, several) in WAYS.items():
            for mode in MODES:
                found = partial(train, name, mode, steps=steps, **both, **several)
                bound = BOUNDS[both.get("dtype", "float64")]
                yield Case(name, way, mode, bound, found, partial(alone, name, way))


def by_toml(steps, folder):
    @cache
    def alone(name, precision):
        return trained(name, "false", precision)

    def trained(name, how, precision):
        return train_by_toml(name, folder, how, steps=steps, accumulate=2, precision=precision)

    for name in MODELS:
        for way, (precision, how) in BY_TOML.items():
            found = partial(trained, name, how, precision)
            yield Case(name, way, "toml", BOUNDS[precision], found, partial(alone, name, precision))
        same_bits = partial(trained, name, "{ shards = 4, sync_batch_norm = true }", "float32")
        yield Case(name, "shards, same bits", "toml", 0.0, same_bits)


def sharded(steps, _):
    for name in WORKLOADS:
        for mode in ("eager", "jit"):
            found = partial(train_by_shards, name, mode, steps)
            yield Case(name, "shards, same bits", mode, 0.0, found)


def divided(steps, _):
    @cache
    def alone(name, kind, dtype):
        return divided_losses(name, kind, "eager", steps=steps, dtype=dtype, alone=True)[0]

    def found(name, kind, mode, dtype):
        return divided_losses(name, kind, mode, steps=steps, dtype=dtype)[0]

    for kind, (models, _) in DIVIDED.items():
        for name in models:
            for dtype, bound in BOUNDS.items():
                way = kind if dtype == "float64" else f"{kind}, {dtype}"
                for mode in MODES:
                    losses = partial(found, name, kind, mode, dtype)
                    yield Case(name, way, mode, bound, losses, partial(alone, name, kind, dtype))


def pipelines(steps, _):
    @cache
    def alone(name, dtype):
        return pipeline_losses(name, "", "eager", steps=steps, dtype=dtype, alone=True)

    for name in WORKLOADS:
        for schedule, dtype in (("gpipe", "float64"), ("1f1b", "float64"), ("1f1b", "float32")):
            way = f"pipeline, {schedule}" + (", float32" if dtype == "float32" else "")
            for mode in ("eager", "jit"):
                found = partial(pipeline_losses, name, schedule, mode, steps=steps, dtype=dtype)
                yield Case(name, way, mode, BOUNDS[dtype], found, partial(alone, name, dtype))


# -- on a process ----------------------------------------------------------------------------------


def work(options):
    """Train in some ways on all processes, one after another, and tell what was found."""
    wf.distributed.init()
    cases = all_cases(options.steps, options.work)
    for number in options.numbers:
        tell("BEGINS", number, None)
        try:
            losses = cases[number].reference() if dist.size() == 1 else cases[number].found()
        except Exception:
            print(line_of("FAILS", number, traceback.format_exc()), flush=True)
            os._exit(1)  # the others may wait for this one
        tell("LOSSES", number, losses)


def tell(kind, number, value):
    if dist.rank() == 0:
        print(line_of(kind, number, value), flush=True)


def line_of(kind, number, value):
    return f"{kind} {json.dumps([number, value])}"


# -- all of them -----------------------------------------------------------------------------------


def compare(ranks, steps, only=(), say=print):
    """Train on one process and on several; return the cells of the table by case and ranks.

    A cell is the difference to one process, or text that says what went wrong.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        cases = all_cases(steps, folder)
        wanted = [i for i, case in enumerate(cases) if is_wanted(case, only)]
        right = losses_on(1, wanted, folder, steps, silent)
        wrong = {cases[i].way: text for i, text in right.items() if isinstance(text, str)}
        assert not wrong, wrong
        cells = {}
        for count in ranks:
            found = losses_on(count, wanted, folder, steps, partial(say_one, say, cases, right))
            cells |= {(cases[i], count): difference(found[i], right[i]) for i in wanted}
            say(table(cells, count))
    return cells


def silent(line):
    pass


def say_one(say, cases, right, line):
    """Say what came of a case when it is there: all of them take long."""
    kind, _, told = line.partition(" ")
    if kind == "LOSSES":
        number, losses = json.loads(told)
        case = cases[number]
        say(f"{case.workload}, {case.way}, {case.mode}: {difference(losses, right[number]):.1g}")


def is_wanted(case, only):
    about = f"{case.workload} {case.way} {case.mode}"
    return all(word in about for word in only)


def losses_on(ranks, wanted, folder, steps, hear):
    """Return the losses of each case on so many processes, or how it failed: others go on."""
    found = {}
    while left := [number for number in wanted if number not in found]:
        command = [*(mpiexec(ranks) if ranks > 1 else ()), sys.executable, "-m", __spec__.name]
        command += ["--work", str(folder), "--steps", str(steps), "--numbers", *map(str, left)]
        cache = {"WEFT_CACHE_DIR": f"{folder}/objects", "WEFT_CACHE_KEY": f"{folder}/key"}
        _, said = watched(command, {**cache, **os.environ, **ENVIRONMENT}, hear)
        found |= results_of(said)
    return found


def results_of(said):
    """Return what processes told, and for the case at which they ended what they said."""
    found, begun = {}, None
    for line in said.splitlines():
        kind, _, told = line.partition(" ")
        if kind in ("BEGINS", "LOSSES", "FAILS"):
            number, value = json.loads(told)
            begun = number
            if kind != "BEGINS":
                found[number] = value
    assert begun is not None, said
    found.setdefault(begun, said[-4000:])
    return found


def difference(losses, right):
    """Return the largest relative difference."""
    if isinstance(losses, str):
        return losses
    a, b = np.asarray(losses), np.asarray(right)
    return float(np.max(np.abs(a - b) / np.maximum(np.abs(b), 1e-300)))


def is_good(case, cell):
    return not isinstance(cell, str) and cell <= case.bound


def table(cells, ranks):
    """Return the cells of so many processes as text."""
    rows = {}
    for (case, count), cell in cells.items():
        if count == ranks:
            shown = "error" if isinstance(cell, str) else f"{cell:.1g}"
            mark = "" if is_good(case, cell) else " !"
            rows.setdefault((case.workload, case.way), {})[case.mode] = shown + mark
    lines = [f"{ranks} processes" + " " * 24 + "".join(f"{mode:>10}" for mode in COLUMNS)]
    for workload, way in sorted(rows, key=lambda row: [*WORKLOADS].index(row[0])):
        row = rows[workload, way]
        shown = "".join(f"{row.get(mode, ''):>10}" for mode in COLUMNS)
        lines.append(f"{workload:6}{way:29}{shown}")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--only", nargs="+", default=(), help="words of workload, way and mode")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--numbers", type=int, nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        return work(options)
    cells = compare(options.ranks, options.steps, options.only, partial(print, flush=True))
    bad = {at: cell for at, cell in cells.items() if not is_good(at[0], cell)}
    for (case, ranks), cell in bad.items():
        print(f"\n{case.workload}, {case.way}, {case.mode} on {ranks} processes: {cell}")
    print(f"{len(cells) - len(bad)} of {len(cells)} within bounds")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
