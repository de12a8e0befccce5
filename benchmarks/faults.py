"""Kill ranks at random moments, many times, and see what becomes of the job.

    python benchmarks/faults.py --runs 20 --kills 10          SIGKILL, all start again
    python benchmarks/faults.py --runs 50 --shrink --kills 2  SIGKILL, the others go on
    python benchmarks/faults.py --runs 10 --stop              SIGSTOP, must be reported by name

Each run trains a small model on three ranks under `weft launch`, with a checkpoint after every
second step. Ranks are killed at random moments, one in each attempt: while it starts (a fifth of
them), computes, exchanges gradients or writes a checkpoint (up to a tenth of a second behind a
random step of those to come; the kills of a run are spread over its steps). Each rank notes what
it does, so that kills are counted by what they hit. Counted is how many runs ended as they should:
with the weights of an undisturbed run to the last bit, or with --shrink with its loss; how many
seconds passed between a kill and the end of all ranks of that attempt, or with --shrink the next
step of one of the others; and whether all checkpoints can be read at the end. No run begins after
`--minutes`; what was found until then is reported.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import weft as wf

STEPS = 60
RANKS = 3
DONE = "was done"  # a rank that had nothing to do any more
LONGEST = 10.0  # seconds that ranks may take to end when one was killed
SCRIPT = """
import faulthandler, os, sys, time
from contextlib import contextmanager
from pathlib import Path
faulthandler.dump_traceback_later(90)  # a run that hangs says where
import numpy as np
folder, shrink = Path(sys.argv[1]), sys.argv[2] == "1"
me = os.environ["OMPI_COMM_WORLD_RANK"]
reached = folder / f"step-{me}"
phase = os.open(folder / f"phase-{me}", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
os.write(phase, b"starts   ")
(folder / f"pid-{me}").write_text(str(os.getpid()))
import weft as wf
from weft.distributed import (
    DistributedCheckpointManager, all_reduce, barrier, rank, run_resilient, size
)

wf.distributed.init()
wf.manual_seed(0)
model = wf.nn.Sequential(wf.nn.Linear(8, 64), wf.nn.ReLU(), wf.nn.Linear(64, 1))
optimizer = wf.optim.Adam(model.parameters(), lr=0.01)
rng = np.random.default_rng(0)
x = rng.normal(size=(60, 8)).astype(np.float32)
y = np.sin(x.sum(1, keepdims=True)).astype(np.float32)
manager = DistributedCheckpointManager(folder / "checkpoints", keep_last=2)
STEPS = int(sys.argv[3])


def loss_of(rows):
    return ((model(wf.tensor(x[rows])) - wf.tensor(y[rows])) ** 2).mean()


@contextmanager
def noted(what):
    os.pwrite(phase, what.ljust(9).encode(), 0)
    yield
    os.pwrite(phase, b"computes ", 0)


def step(i):
    mine = slice(rank() * 60 // size(), (rank() + 1) * 60 // size())
    optimizer.zero_grad()
    loss_of(mine).backward()
    with noted("exchanges"):
        for p in model.parameters():
            p.grad = all_reduce(p.grad, "mean")
    optimizer.step()
    reached.write_text(str(i))
    time.sleep(0.002)
    if not shrink and i % 2:
        with noted("saves"):
            manager.save(i + 1, {"model": model.state_dict(), "optimizer": optimizer.state_dict()})


def save(_=0):
    if rank() == 0:
        wf.save(folder / "final.safetensors", {**model.state_dict(), "loss": loss_of(slice(None))})
    barrier()  # or one that is lost while it saves is missed by nobody


if shrink:
    run_resilient(step, STEPS, state=[model, optimizer])
    run_resilient(save, 1, state=[model, optimizer])
else:
    start = 0
    path = manager.latest()
    if path is not None:
        state = manager.load(path)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = int(path.name.split("-")[1])
    for i in range(start, STEPS):
        step(i)
    save()
os.pwrite(phase, b"was done ", 0)
"""


def main() -> None:
    """Run as the command line says, and print what was found."""
    options = arguments()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "train.py").write_text(SCRIPT)
        expected, seconds = undisturbed(root, options)
        until = time.monotonic() + 60 * options.minutes
        found: list[dict[str, Any]] = []
        while len(found) < options.runs and time.monotonic() < until:
            found.append(disturbed(root, len(found), seconds, rng, options))
    report(found, expected, options)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=1, help="ranks killed in a run, one by one")
    parser.add_argument("--minutes", type=float, default=600.0, help="after which no run begins")
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--stop", action="store_true")
    return parser.parse_args()


def command(folder: Path, options: argparse.Namespace) -> list[str]:
    """Return the command of a run."""
    how = ["--survive"] if options.shrink else ["--max-restarts", str(options.kills)]
    launch = [sys.executable, "-m", "weft.cli", "launch", "-n", str(RANKS), "--threads", "1", *how]
    script = [str(folder.parent / "train.py"), str(folder), str(int(options.shrink)), str(STEPS)]
    return [*launch, "--logs", str(folder / "logs"), *script]


def undisturbed(root: Path, options: argparse.Namespace) -> tuple[Any, float]:
    """Return the weights of a run that nothing happens to, and how long its ranks take to start."""
    folder = root / "undisturbed"
    folder.mkdir()
    began = time.monotonic()
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command(folder, options), stdout=said, stderr=said)
        wait_for(folder / "pid-0")
        first = time.monotonic()
        wait_for(folder / "step-0")
        start = time.monotonic() - first
        assert process.wait(timeout=300) == 0, read(folder / "said")
    print(f"undisturbed: {time.monotonic() - began:.1f} s, {start:.1f} s to start a rank")
    return weights(folder), start


def weights(folder: Path) -> list[Any]:
    """Return the final weights of a run, and its loss as the last of them."""
    found = wf.load(folder / "final.safetensors")
    loss = found.pop("loss")
    return [x.numpy() for x in (*found.values(), loss)]


def disturbed(
    root: Path, number: int, seconds: float, rng: random.Random, options: argparse.Namespace
) -> dict[str, Any]:
    """Run, and kill ranks at random moments, one after another; return what happened."""
    folder = root / f"run-{number}"
    folder.mkdir()
    began = time.monotonic()
    with (folder / "said").open("w") as said:
        process = subprocess.Popen(command(folder, options), stdout=said, stderr=said)
        seen: set[int] = set()
        kills = [kill_one(folder, seen, seconds, rng, options)]
        while kills[-1]["killed"] and len(kills) < options.kills:
            kills.append(kill_one(folder, seen, seconds, rng, options))
        try:
            status = process.wait(timeout=180)
        except subprocess.TimeoutExpired:
            process.kill()
            status = -1
    late = [one["ended"] for one in kills if one["ended"] > LONGEST and not options.stop]
    saved = (folder / "final.safetensors").exists()
    if status or late or not saved:
        print(f"run {number}: status {status}, saved {saved}, {late} s after a kill")
        show(folder)
    text = (folder / "said").read_text()
    hits = [one for one in kills if one["killed"]]
    for one in hits:
        one["named"] = f"rank {one['rank']} (process {one['pid']}" in text
        if not one["named"] and one["phase"] != DONE:  # who had said goodbye is not missed
            print(f"run {number}: rank {one['rank']} {one['phase']}, and is not named")
            show(folder)
    print(
        f"run {number}: {[(one['rank'], one['phase']) for one in hits]}, status {status}, "
        f"{time.monotonic() - began:.1f} s",
        flush=True,
    )
    return {
        "kills": hits,
        "status": status,
        "restarted": len(re.findall("starting again", text)),
        "weights": weights(folder) if saved else None,
        "readable": all_readable(folder / "checkpoints"),
    }


def kill_one(
    folder: Path, seen: set[int], seconds: float, rng: random.Random, options: argparse.Namespace
) -> dict[str, Any]:
    """Kill a rank of those that run, at a random moment; wait until its attempt has ended."""
    dead = seen if options.shrink else set()
    rank = rng.choice([r for r in range(RANKS) if number_in(folder / f"pid-{r}") not in dead])
    pid = new_number(folder / f"pid-{rank}", seen)
    reached = number_in(folder / f"step-{rank}")
    late = reached + 1 >= STEPS or (rng.random() < 0.2 and not dead)
    near = min(STEPS, reached + 2 + 2 * STEPS // options.kills)
    step = None if late else rng.randrange(reached + 1, near)
    if step is not None:
        wait_for(folder / f"step-{rank}", step)
    time.sleep(rng.uniform(0.0, seconds if step is None else 0.1))
    pids = {n for r in range(RANKS) if (n := number_in(folder / f"pid-{r}"))}
    killed = hit(pid, signal.SIGSTOP if options.stop else signal.SIGKILL)
    at = time.monotonic()
    phase = read(folder / f"phase-{rank}").strip()
    seen |= {pid} if options.shrink else pids
    done = others_go_on(folder, seen) if options.shrink else all_gone(pids)
    while not done() and time.monotonic() - at < 60:
        time.sleep(0.02)
    ended = time.monotonic() - at
    return {"rank": rank, "pid": pid, "phase": phase, "killed": killed, "ended": ended}


def all_gone(pids: set[int]) -> Callable[[], bool]:
    """Return what tells whether all ranks of an attempt have ended."""
    return lambda: not any(is_alive(n) for n in pids)


def others_go_on(folder: Path, dead: set[int]) -> Callable[[], bool]:
    """Return what tells whether one of the ranks that are left has taken a step, or has ended."""
    before = [number_in(folder / f"step-{r}") for r in range(RANKS)]
    known: set[int] = set()

    def done() -> bool:
        found = {r: number_in(folder / f"pid-{r}") for r in range(RANKS)}
        left = {r: n for r, n in found.items() if n and n not in dead}
        known.update(left.values())
        steps = (number_in(folder / f"step-{r}") > before[r] for r in left)
        return any(steps) or not all(is_alive(n) for n in known)

    return done


def new_number(path: Path, seen: set[int]) -> int:
    """Return the number in a file, once it is another than those of before."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        number = number_in(path)
        if number and number not in seen:
            return number
        time.sleep(0.005)
    return 0


def number_in(path: Path) -> int:
    """Return the number in a file; 0 if there is none."""
    return int(read(path) or 0)


def show(folder: Path) -> None:
    """Print what was said in a run that did not end well, and by whom."""
    for path in (folder / "said", *sorted((folder / "logs").glob("*.log"))):
        print(f"---- {path.name}\n{read(path)[-4000:]}", flush=True)


def wait_for(path: Path, number: int = 0) -> None:
    """Wait until a file is there, with at least some number in it."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        text = read(path)
        if text and int(text) >= number:
            return
        time.sleep(0.005)


def read(path: Path) -> str:
    """Return the text of a file, if it is there."""
    try:
        return path.read_text()
    except OSError:
        return ""


def hit(pid: int, number: int) -> bool:
    """Send a signal to a process; tell whether it was there."""
    if not pid or not is_alive(pid):
        return False
    os.kill(pid, number)
    return True


def is_alive(pid: int) -> bool:
    """Tell whether a process runs."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def all_readable(folder: Path) -> bool:
    """Tell whether every checkpoint that is there can be read."""
    try:
        for path in folder.glob("step-*"):
            wf.io.load_state(path)
    except ValueError as error:
        print(error)
        return False
    return True


def report(found: list[dict[str, Any]], expected: Any, options: argparse.Namespace) -> None:
    """Print the counts."""
    hits = [one for run in found for one in run["kills"]]
    print(f"{len(found)} runs, {len(hits)} ranks {'stopped' if options.stop else 'killed'}")
    print(f"runs that ended well: {sum(one['status'] == 0 for one in found)}")
    missed = [one for one in hits if one["phase"] != DONE]
    print(
        f"ranks named: {sum(one['named'] for one in missed)} of {len(missed)} that had work to do"
    )
    print(f"runs whose checkpoints are readable: {sum(one['readable'] for one in found)}")
    print(f"what the ranks were doing: {dict(Counter(one['phase'] for one in hits))}")
    same = [one["weights"] for one in found if one["weights"] is not None]
    longest = max((one["ended"] for one in hits), default=0.0)
    if options.shrink:
        good = sum(np.allclose(weights[-1], expected[-1], rtol=0.05) for weights in same)
        print(f"runs with the loss of an undisturbed one, {expected[-1]:.3g}, to 5 %: {good}")
        print(f"longest time from a kill until another rank took a step: {longest:.1f} s")
    else:
        good = sum(equal(weights, expected) for weights in same)
        print(f"runs with the weights of an undisturbed one, to the last bit: {good}")
        print(f"longest time from a kill until all ranks had ended: {longest:.1f} s")


def equal(a: list[Any], b: list[Any]) -> bool:
    """Tell whether weights are the same."""
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


if __name__ == "__main__":
    main()
