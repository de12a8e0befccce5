"""The processes of a program, and groups of them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.distributed.processes import ENVIRONMENT, ROOT, run_checks
from weft import distributed as dist


def test_alone():
    assert dist.init() is dist.init() is dist.world()
    assert (dist.rank(), dist.size(), dist.is_initialized()) == (0, 1, True)
    assert dist.launch().size == 1


def test_groups_of_one():
    group = dist.new_group([0])
    assert (group.rank, group.size, dist.rank(group), dist.size(group)) == (0, 1, 0, 1)
    for ranks in ([], [0, 0], [1], [-1]):
        with pytest.raises(ValueError, match="different numbers from 0 to 0"):
            dist.new_group(ranks)
    with pytest.raises(TypeError, match="sequence of integers"):
        dist.new_group("ab")


def test_a_transport_is_given_first_or_never():
    dist.init()
    with pytest.raises(RuntimeError, match="first call only"):
        dist.init(transport=object())


def run_alone(code, **variables):
    command = [sys.executable, "-c", code]
    env = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=100, check=False
    )


def test_mpi_must_see_as_many_processes_as_the_environment_says():
    pytest.importorskip("mpi4py")
    done = run_alone(
        "import weft; weft.distributed.init()", RANK="0", WORLD_SIZE="2", **ENVIRONMENT
    )
    assert "says that there are 2 processes, MPI sees 1" in done.stderr
    assert "RANK and WORLD_SIZE name processes and connect none" in done.stderr
    assert "weft launch -n 2 script.py" in done.stderr
    assert "unset both to run this process alone" in done.stderr


def test_without_mpi4py_the_extra_is_named():
    hidden = "import sys; sys.modules['mpi4py'] = None; sys.modules['mpi4py.MPI'] = None\n"
    code = f"{hidden}import weft; weft.distributed.init()"
    done = run_alone(code, RANK="0", WORLD_SIZE="2")
    assert 'pip install "weft[mpi]"' in done.stderr


def test_importing_weft_imports_no_mpi():
    code = "import sys, weft; weft.distributed.rank(); print('mpi4py' in sys.modules)"
    assert run_alone(code).stdout.strip() == "False"


def test_an_exception_of_one_process_ends_all():
    with pytest.raises(AssertionError, match=r"\[rank 1\] ValueError: one fails"):
        run_checks("endings.py", 2, env={"WEFT_TEST_FAILS": "1"})
