"""Writers that die: run as `python -m tests.io.crashing kill|everywhere DIRECTORY ROUNDS`.

One process imports everything once and forks a writer for each death. After each it looks for the
last good checkpoint; any warning, wrong value or lost checkpoint is an error.
"""

import os
import random
import shutil
import signal
import struct
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import safetensors.numpy

from weft.core.tensor import wrap
from weft.io import CheckpointManager

CRASHED = 77
_CALLS = ("mkdir", "rename", "replace", "fsync", "unlink", "rmdir", "open", "chmod")


def make_manager(directory: Path) -> CheckpointManager:
    return CheckpointManager(directory, keep_last=2, keep_best=1, metric="loss", mode="max")


def make_state(step: int) -> dict[str, Any]:
    """Return a state in which everything tells the step."""
    return {
        "step": step,
        "model": {"weight": wrap(np.full((64, 300), step, np.float32))},
        "slots": [np.arange(step, step + 50), (step, float(step))],
    }


def check_state(state: dict[str, Any]) -> int:
    """Return the step of a state, all of whose parts must agree on it."""
    step = int(state["step"])
    expected = make_state(step)
    assert (
        state["model"]["weight"].numpy().tobytes() == expected["model"]["weight"].numpy().tobytes()
    )
    assert state["slots"][0].tobytes() == expected["slots"][0].tobytes()
    assert state["slots"][1] == expected["slots"][1]
    return step


def save(directory: Path, step: int) -> None:
    # The best metric is that of step 2, so that the newest and the best are different.
    make_manager(directory).save(step, make_state(step), {"loss": -abs(step - 2)})


def latest_step(directory: Path) -> int:
    """Return the step of the latest good checkpoint, 0 if there is none; nothing may be damaged."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = make_manager(directory).latest()
    return 0 if found is None else check_state(make_manager(directory).load(found))


def check_leftovers(directory: Path) -> None:
    """Check that a later save has removed whatever the dead left."""
    names = sorted(entry.name for entry in directory.iterdir())
    assert all(name.startswith("step-") for name in names), names
    assert len(names) <= 3, names


# -- killed at random moments ----------------------------------------------------------------------


def write_forever(directory: Path, acknowledge: int) -> NoReturn:
    step = latest_step(directory)
    while True:
        step += 1
        for _ in range(1 + step % 2):  # every other one twice, to replace a checkpoint
            save(directory, step)
        os.write(acknowledge, struct.pack("<Q", step))


def forked(work: Callable[[], object]) -> int:
    """Run `work` in a forked process that never returns here; return its id."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        sys.stderr.write(f"writer failed: {error!r}\n")
        os._exit(1)


def kill_once(directory: Path, delay: float) -> int:
    """Let a writer live for a while, kill it, and return the last step it had finished."""
    reading, writing = os.pipe()
    pid = forked(lambda: write_forever(directory, writing))
    os.close(writing)
    time.sleep(delay)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status), "the writer ended by itself"
    with os.fdopen(reading, "rb") as pipe:
        finished = pipe.read()
    return struct.unpack("<Q", finished[-8:])[0] if finished else 0


def kill_randomly(directory: Path, rounds: int) -> None:
    rng = random.Random(rounds)
    start = time.perf_counter()
    for step in (1, 2, 3):
        save(directory, step)
    span = time.perf_counter() - start
    reached = 3
    for _ in range(rounds):
        finished = kill_once(directory, rng.uniform(0.0, span))
        step = latest_step(directory)
        assert step >= max(finished, reached), (step, finished, reached)
        reached = step
    save(directory, reached + 1)
    check_leftovers(directory)
    print(f"{rounds} kills, {reached} steps")


# -- crashed at every call -------------------------------------------------------------------------


@contextmanager
def crash_at(number: int) -> Iterator[None]:
    """Make the process vanish just before its `number`-th call that changes the disk."""
    count = 0

    def wrap_call(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                os._exit(CRASHED)
            return function(*args, **kwargs)

        return counted

    for name in _CALLS:
        setattr(os, name, wrap_call(getattr(os, name)))
    safetensors.numpy.save_file = wrap_call(safetensors.numpy.save_file)
    yield  # never undone: the process ends


def crash_in_save(directory: Path, step: int, number: int) -> bool:
    """Save in a process that crashes at the given call; tell whether it came so far."""

    def work() -> None:
        with crash_at(number):
            save(directory, step)

    _, status = os.waitpid(forked(work), 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, CRASHED), code
    return code == CRASHED


def crash_everywhere(directory: Path, step: int) -> None:
    """Save `step` after steps 1 to 4 with a crash at each call in turn."""
    number, crashed = 0, True
    while crashed:
        number += 1
        shutil.rmtree(directory, ignore_errors=True)
        for earlier in (1, 2, 3, 4):
            save(directory, earlier)
        crashed = crash_in_save(directory, step, number)
        assert latest_step(directory) in (4, step)
        save(directory, 6)
        assert latest_step(directory) == 6
        check_leftovers(directory)
    assert number > 10, "the crashes were not where the work is"
    print(f"{number - 1} crashes")


if __name__ == "__main__":
    mode, where, count = sys.argv[1:]
    {"kill": kill_randomly, "everywhere": crash_everywhere}[mode](Path(where) / "run", int(count))
