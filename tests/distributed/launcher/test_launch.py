"""`weft launch` with real processes: exceptions, lost and stopped ranks, restarts, logs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from weft.distributed.launcher.launch import LaunchOptions, launch, parse_size, restarts

ROOT = Path(__file__).resolve().parent.parent.parent.parent

SCRIPT = """
import os, signal, sys, time
from mpi4py import MPI
from weft.distributed import restarts
world = MPI.COMM_WORLD
print("here is", world.rank, "of", world.size, flush=True)
act = sys.argv[1]
if world.rank == 1 and act == "raise":
    raise ValueError("no such thing")
if world.rank == 1 and act == "exit":
    sys.exit(7)
if world.rank == 1 and act == "kill" and restarts() == 0:
    os.kill(os.getpid(), signal.SIGKILL)
if world.rank == 1 and act == "stop" and restarts() == 0:
    os.kill(os.getpid(), signal.SIGSTOP)
world.Barrier()
print("threads", os.environ["WEFT_NUM_THREADS"], "attempt", restarts(), flush=True)
"""


def run(folder, *arguments, script=SCRIPT):
    """Run a script in two ranks; return status, output, messages, seconds."""
    pytest.importorskip("mpi4py")
    (folder / "script.py").write_text(script)
    *options, act = arguments
    command = [sys.executable, "-m", "weft.cli", "launch", "-n", "2", "--threads", "1", *options]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "script.py", act],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr, time.monotonic() - began


def test_an_exception_on_a_rank_ends_all_and_is_shown_once(tmp_path):
    status, out, said, _ = run(tmp_path, "--max-restarts", "2", "raise")
    assert status == 1, said
    assert out in ("", "here is 0 of 2\n")  # it may have been ended before
    assert said.count("ValueError: no such thing") == said.count("Traceback") == 1
    assert "rank 1 failed" in said
    assert "launcher" not in said.split("Traceback")[1].split("ValueError")[0]
    assert "starting again" not in said  # it would only fail again
    assert "here is 1 of 2" in (tmp_path / "logs/script-001/rank-1.log").read_text()


def test_a_lost_rank_is_named_and_all_start_again(tmp_path):
    status, out, said, _ = run(tmp_path, "--max-restarts", "1", "--logs", "mine", "kill")
    assert status == 0, said
    assert out.endswith("threads 1 attempt 1\n")
    assert "rank 1 (process" in said
    assert "was lost" in said
    assert (tmp_path / "mine/rank-1.log").read_text().count("here is 1 of 2") == 2
    assert (tmp_path / "mine/rank-0.log").read_text() == out


@pytest.mark.long
def test_a_stopped_rank_is_reported_by_name_and_given_up(tmp_path):
    status, _, said, seconds = run(tmp_path, "--silence", "5", "stop")
    assert status != 0
    assert "rank 1 (process" in said
    assert "its process is stopped" in said
    assert "counts as lost" in said
    assert seconds < 60


ONE_IS_THROUGH = """
import os, pathlib, time
from mpi4py import MPI
pathlib.Path(f"rank{MPI.COMM_WORLD.rank}").write_text(str(os.getpid()))
if MPI.COMM_WORLD.rank == 1:
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux sees to it")
def test_nobody_stays_when_the_launcher_is_killed(tmp_path):
    pytest.importorskip("mpi4py")
    (tmp_path / "script.py").write_text(ONE_IS_THROUGH)
    command = [sys.executable, "-m", "weft.cli", "launch", "-n", "2", "--threads", "1", "script.py"]
    launcher = subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.PIPE
    )
    pids = [_written(tmp_path / f"rank{rank}") for rank in range(2)]
    time.sleep(1.0)  # the first rank has come to its end, and waits inside MPI for the other
    launcher.kill()
    launcher.communicate()
    until = time.monotonic() + 20
    while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.1)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def _written(path):
    """Return the number that somebody writes to a file."""
    until = time.monotonic() + 60
    while not (path.exists() and path.read_text()):
        assert time.monotonic() < until, f"{path.name} was not written"
        time.sleep(0.05)
    return int(path.read_text())


@pytest.mark.long
def test_a_status_that_a_program_chose_is_that_of_all(tmp_path):
    status, _, said, _ = run(tmp_path, "--max-restarts", "1", "exit")
    assert status == 7
    assert "starting again" not in said


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads must be at least 1"),
        ({"max_restarts": -1}, "must not be negative"),
        ({"silence": 1.0}, "at least 4 seconds"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(ValueError, match=message):
        LaunchOptions(2, **options)


def test_scripts_that_are_not_there():
    with pytest.raises(ValueError, match=r"There is no file nothing\.py"):
        launch(["nothing.py"], LaunchOptions(2))
    with pytest.raises(ValueError, match="name of a module"):
        launch(["-m"], LaunchOptions(2))
    assert restarts() == 0


def test_sizes():
    assert parse_size("512m") == 2**29
    with pytest.raises(ValueError, match="as 8G"):
        parse_size("much")
