"""How a process was started, by its environment alone."""

from __future__ import annotations

import pytest

from weft.distributed.environment import ALONE, find_launch

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}


def test_without_variables_a_process_is_alone():
    assert find_launch({}) == ALONE
    assert find_launch({"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}) == ALONE  # no step of srun


@pytest.mark.parametrize(
    ("variables", "found"),
    [
        (OPEN_MPI, (3, 4, 1, 2)),
        ({"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2, 0, 1)),
        ({"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_LOCALID": "1"}, (5, 8, 1, 1)),
        ({"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}, (1, 2, 1, 1)),
    ],
)
def test_launchers(variables, found):
    assert tuple(find_launch(variables))[1:] == found


def test_mpiexec_comes_before_what_a_user_may_have_set():
    assert find_launch({**OPEN_MPI, "RANK": "0", "WORLD_SIZE": "1"}).size == 4


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"RANK": "one", "WORLD_SIZE": "2"}, "RANK must be a number. Received: 'one'"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK=2, WORLD_SIZE=2"),
        ({"RANK": "-1", "WORLD_SIZE": "2"}, "RANK=-1"),
    ],
)
def test_bad_variables_are_named(variables, message):
    with pytest.raises(RuntimeError, match=message):
        find_launch(variables)
