"""What runs in each rank: `python -m weft.distributed.launcher.worker script.py arguments`.

It tells the launcher that it lives, divides threads and memory of the host, writes a log, runs the
script as `python script.py` would, and tells with which exception it ended.
"""

from __future__ import annotations

import faulthandler
import os
import runpy
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...core.threads import set_num_threads, usable_processors
from ..environment import LaunchedProcess, find_launch
from . import messages
from .heartbeat import Heartbeat, start_heartbeat
from .output import log_path

_PAUSE: Final = 0.02  # seconds between two looks whether the others are through


def main(arguments: Sequence[str]) -> int:
    """Run a script, or with -m a module, in this rank; return its exit status."""
    place = find_launch(os.environ)
    _tell_place(place)
    _write_log(place)
    faulthandler.enable()
    _divide(place)
    heartbeat = start_heartbeat()
    try:
        status = _run(arguments)
    except KeyboardInterrupt as error:
        status = _fail(heartbeat, error, 130)
    except BaseException as error:
        status = _fail(heartbeat, error, 1)
    else:
        _end(heartbeat, status)
    return status


def _tell_place(place: LaunchedProcess) -> None:
    """Set the variables that scripts written for other launchers read."""
    os.environ.update(
        RANK=str(place.rank),
        WORLD_SIZE=str(place.size),
        LOCAL_RANK=str(place.local_rank),
        LOCAL_WORLD_SIZE=str(place.local_size),
    )


def _run(arguments: Sequence[str]) -> int:
    is_module = arguments[0] == "-m"
    target, given = (arguments[1], arguments[2:]) if is_module else (arguments[0], arguments[1:])
    sys.argv = [target, *given]
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(target).resolve().parent))
            runpy.run_path(target, run_name="__main__")
    except SystemExit as end:
        return _status(end)
    return 0


def _status(end: SystemExit) -> int:
    if end.code is None or isinstance(end.code, int):
        return end.code or 0
    print(end.code, file=sys.stderr)
    return 1


def _fail(heartbeat: Heartbeat | None, error: BaseException, status: int) -> int:
    """Tell an exception, and go at once: others wait for this rank, and MPI for all of them."""
    if heartbeat is None or not heartbeat.report(error):
        sys.excepthook(type(error), error, error.__traceback__)
    else:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _end(heartbeat: Heartbeat | None, status: int) -> None:
    """Say that this rank is through, and wait for the others where it still hears the launcher."""
    if heartbeat is None:
        return
    heartbeat.tell_end(status)
    if status:  # which ends all: nobody need wait for the others
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    _wait_for_all()
    heartbeat.stop()


def _wait_for_all() -> None:
    """Wait for all to be through: once Python has gone, MPI waits, deaf to the launcher."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    try:
        through = mpi.COMM_WORLD.Ibarrier()
        while not through.Test():
            time.sleep(_PAUSE)
    except mpi.Exception:  # a rank is lost: the launcher sees to that
        return


# -- this rank's part of the host ------------------------------------------------------------------


def _write_log(place: LaunchedProcess) -> None:
    """Send what ranks other than the first print to a file of their own."""
    folder = os.environ.get(messages.LOGS)
    if not folder or place.rank == 0:
        return
    path = log_path(Path(folder), place.rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a file, as started


def _divide(place: LaunchedProcess) -> None:
    """Take this rank's part of the host's processors and of its memory."""
    asked = os.environ.get(messages.THREADS)
    threads = int(asked) if asked else max(1, usable_processors() // place.local_size)
    os.environ["WEFT_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(threads)
    set_num_threads(threads)
    memory = os.environ.get(messages.MEMORY)
    if memory:
        _limit_memory(int(memory) // place.local_size)


def _limit_memory(most: int) -> None:
    """Let an allocation beyond this rank's part fail here, instead of the host running out."""
    import resource  # noqa: PLC0415  (not on every system, and only for --memory)

    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
