"""Run checks in real processes: one start of mpiexec runs all checks of a program.

A program is a module whose functions `check_...` run on all processes, one after another, in the
order of the file. `python processes.py program.py` runs them on one of the processes.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest

import weft as wf

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = int(os.environ.get("WEFT_TEST_SECONDS", "170"))  # without a sign of life


def run_checks(program, ranks, *names, env=None):
    """Return what a program prints whose checks, all or those named, pass on so many processes."""
    pytest.importorskip("mpi4py")
    command = [*mpiexec(ranks), sys.executable, __file__, str(PROGRAMS / program), *names]
    code, said = watched(command, {**os.environ, **ENVIRONMENT, **(env or {})})
    assert code is not None, f"nothing was said for {SECONDS} s:\n{said}"
    outcomes = [line for line in said.splitlines() if line.startswith("OUTCOME ")]
    found = [json.loads(line.removeprefix("OUTCOME ")) for line in outcomes]
    failed = [f"{name} on rank {rank}:\n{text}" for rank, name, text in found if text]
    assert not failed, "\n".join(failed)
    assert code == 0, said
    assert sum(name == "all" for _, name, _ in found) == ranks, said
    return said


def watched(command, env, hear=lambda line: None):
    """Return the status of a command, None if it had to be ended, and what it said.

    hear   is called with each line when it comes

    It is ended if it says nothing for too long. Checks say when they begin: how long all of them
    take is the machine's affair; that none of them goes on is a mistake.
    """
    lines = []

    def read(pipe):
        for line in pipe:
            lines.append(line)
            hear(line)

    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
        reader.start()
        known = -1
        while known != len(lines) and reader.is_alive():
            known = len(lines)
            reader.join(SECONDS)
        silent = reader.is_alive()
        if silent:
            process.kill()
            reader.join(SECONDS)
    return None if silent else process.returncode, "".join(lines)


def mpiexec(ranks):
    """Return the command that starts so many processes, more than there are cores if need be."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("needs mpiexec")
    return [found, "--map-by", ":OVERSUBSCRIBE", "-n", str(ranks)]


ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "WEFT_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT),
}


def main(path, *names):
    wf.distributed.init()
    spec = importlib.util.spec_from_file_location("program", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    checks = [name for name in vars(program) if name.startswith("check_")]
    for name in names or checks:
        if wf.distributed.rank() == 0:
            sys.stdout.write(f"BEGINS {name}\n")
            sys.stdout.flush()
        wf.manual_seed(0)
        try:
            getattr(program, name)()
        except Exception:
            tell(name, traceback.format_exc())
            if wf.distributed.size() > 1:  # the others may wait for this one
                os._exit(1)
    tell("all", "")


def tell(name, text):
    sys.stdout.write(f"OUTCOME {json.dumps([wf.distributed.rank(), name, text])}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
