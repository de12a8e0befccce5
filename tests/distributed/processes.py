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
import traceback
from pathlib import Path

import pytest

import weft as wf

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAMS = Path(__file__).resolve().parent / "programs"
SECONDS = int(os.environ.get("WEFT_TEST_SECONDS", "170"))


def run_checks(program, ranks, *names, env=None):
    """Return what a program prints whose checks, all or those named, pass on so many processes."""
    pytest.importorskip("mpi4py")
    command = [*mpiexec(ranks), sys.executable, __file__, str(PROGRAMS / program), *names]
    done = subprocess.run(
        command,
        env={**os.environ, **ENVIRONMENT, **(env or {})},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    outcomes = [line for line in done.stdout.splitlines() if line.startswith("OUTCOME ")]
    found = [json.loads(line.removeprefix("OUTCOME ")) for line in outcomes]
    failed = [f"{name} on rank {rank}:\n{text}" for rank, name, text in found if text]
    assert not failed, "\n".join(failed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sum(name == "all" for _, name, _ in found) == ranks, done.stdout + done.stderr
    return done.stdout


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
