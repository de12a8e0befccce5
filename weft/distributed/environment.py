"""How this process was started: alone, or as one of several by mpiexec, srun or a scheduler.

Only environment variables are looked at, so that a process on its own needs no MPI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .errors import DistributedError


class LaunchedProcess(NamedTuple):
    """Who started this process, which of how many it is, and which of those on this machine."""

    by: str
    rank: int
    size: int
    local_rank: int = 0
    local_size: int = 1


ALONE = LaunchedProcess("", 0, 1)
ENVIRONMENT = "the environment"

# Who starts processes, and the variables that it sets: rank, size, local rank, local size. Slurm
# says of a whole batch job too how many tasks it may have; of a step it says so by these.
LAUNCHERS = (
    (
        "Open MPI's mpiexec",
        *("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
        *("OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    ),
    ("MPICH's mpiexec", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
    (ENVIRONMENT, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"),
)


def find_launch(environment: Mapping[str, str]) -> LaunchedProcess:
    """Return how a process with some environment was started.

    >>> find_launch({"RANK": "1", "WORLD_SIZE": "4"})
    LaunchedProcess(by='the environment', rank=1, size=4, local_rank=0, local_size=1)
    """
    for by, rank, size, local_rank, local_size in LAUNCHERS:
        if rank in environment and size in environment:
            place = _number(environment, rank), _number(environment, size)
            local = environment.get(local_rank, "0"), environment.get(local_size, "1")
            known = [int(text) if text.isdigit() else i for i, text in enumerate(local)]
            return _checked(LaunchedProcess(by, *place, *known), rank, size)
    return ALONE


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except ValueError:
        raise DistributedError(
            f"the environment variable {name} must be a number. Received: {environment[name]!r}"
        ) from None


def _checked(launch: LaunchedProcess, rank: str, size: str) -> LaunchedProcess:
    if not 0 <= launch.rank < launch.size:
        raise DistributedError(
            f"the environment variable {rank} must lie between 0 and {size} - 1. "
            f"Received: {rank}={launch.rank}, {size}={launch.size}"
        )
    return launch
