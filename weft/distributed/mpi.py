"""The transport of MPI: clusters' own networks, launchers and fault tolerance, by mpi4py."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.imports import require
from .environment import ENVIRONMENT, LaunchedProcess
from .errors import DistributedError
from .launcher.heartbeat import pulse
from .transport import Array, tree_sum

_PIECE = 2**20  # bytes of a process that are scattered at once
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def connect(launch: LaunchedProcess) -> MPITransport:
    """Return the connections to all processes that were started together."""
    # Processes that wait must not take the cores of those that compute; read when MPI starts.
    os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")
    pulse.joining = True
    library = require("mpi4py.MPI", "mpi", f"{launch.by} started {launch.size} processes, which")
    world = library.COMM_WORLD
    if world.size != launch.size:
        raise DistributedError(
            f"{launch.by} says that there are {launch.size} processes, MPI sees {world.size}: "
            f"{_advice(launch)}"
        )
    transport = MPITransport(library, world.Dup())
    pulse.joining = False
    pulse.tell()  # before anything can happen to it
    return transport


def _advice(launch: LaunchedProcess) -> str:
    """Return what to do when MPI does not connect the processes that there are."""
    start = (
        "start them by mpiexec of the MPI that mpi4py uses (weft launch finds it), or by "
        "srun --mpi=pmix"
    )
    if launch.by != ENVIRONMENT:
        return start
    return (
        "RANK and WORLD_SIZE name processes and connect none, and MPI connects those alone that "
        f"its launcher started; {start} (weft launch -n {launch.size} script.py), or unset both "
        "to run this process alone"
    )


class MPITransport:
    """The processes of an MPI communicator, which belongs to Weft alone."""

    def __init__(self, library: Any, comm: Any) -> None:
        self.library, self.comm = library, comm
        self.rank: int = comm.rank
        self.size: int = comm.size
        self._sending: list[tuple[Any, Array]] = []  # arrays stay until they have left

    # -- computing on the way ----------------------------------------------------------------------

    def reduce(self, array: Array, how: str) -> Array:
        """Return the sum, product, maximum or minimum of all arrays, to all, in the array's place.

        A bucket of gradients is large: it need not be there twice.
        """
        if how == "sum" and _is_half(array) and array.ndim == 1:
            return self._half_sum(array)
        given = _computed_in(array)
        self.comm.Allreduce(self.library.IN_PLACE, given, getattr(self.library, how.upper()))
        return given.astype(array.dtype, copy=False)

    def _half_sum(self, array: Array) -> Array:
        """Return a sum that travels in 16 bits and is added in float32, a part by each process."""
        padded = np.zeros(-(-array.size // self.size) * self.size, array.dtype)
        padded[: array.size] = array
        parts = self.swap(padded.reshape(self.size, -1))
        total = parts.astype(np.float32).sum(0).astype(array.dtype)
        return self.gather(total).reshape(-1)[: array.size]

    def pairwise_sum(self, array: Array) -> Array:
        """Return the sum of all arrays, added as a balanced tree of neighbours."""
        if self.size & (self.size - 1):
            return tree_sum(list(self.gather(array)))
        total, other = array.copy(), np.empty_like(array)
        distance = 1
        while distance < self.size:  # recursive doubling: both partners have the same sum
            partner = self.rank ^ distance
            self.comm.Sendrecv(_movable(total), partner, 0, _movable(other), partner, 0)
            total += other
            distance *= 2
        return total

    def reduce_to(self, array: Array, root: int) -> Array:
        """Return the sum of all arrays to one process, zeros to the others."""
        given = _computed_in(array)
        result = np.zeros_like(given)
        self.comm.Reduce(given, result if self.rank == root else None, self.library.SUM, root)
        return result.astype(array.dtype, copy=False)

    def scatter_sum(self, array: Array) -> Array:
        """Return row `rank` of the sum of all arrays, each with a row for every process.

        MPI adds up in memory of its own, which may be twice that of its operand: so it is given
        large arrays piece by piece.
        """
        given = _computed_in(array)
        rows = given.reshape(self.size, -1)
        total = np.empty(rows.shape[1], given.dtype)
        step = max(1, _PIECE // self.size // given.itemsize)
        for start in range(0, max(1, total.size), step):
            piece = np.ascontiguousarray(rows[:, start : start + step])
            self.comm.Reduce_scatter_block(piece, total[start : start + step], self.library.SUM)
        return total.reshape(given.shape[1:]).astype(array.dtype, copy=False)

    # -- moving --------------------------------------------------------------------------------

    def broadcast(self, array: Array, root: int) -> Array:
        """Return the array of one process."""
        result = array.copy()
        self.comm.Bcast(_movable(result), root)
        return result

    def gather(self, array: Array) -> Array:
        """Return the arrays of all along a new first axis."""
        result = np.empty((self.size, *array.shape), array.dtype)
        self.comm.Allgather(_movable(array), _movable(result))
        return result

    def swap(self, array: Array) -> Array:
        """Return, in row i, row `rank` of the array of process i."""
        result = np.empty_like(array)
        self.comm.Alltoall(_movable(array), _movable(result))
        return result

    def shift(self, array: Array, by: int) -> Array:
        """Return the array of the process `by` places before this one, in a ring."""
        result = np.empty_like(array)
        target, source = (self.rank + by) % self.size, (self.rank - by) % self.size
        self.comm.Sendrecv(_movable(array), target, 0, _movable(result), source, 0)
        return result

    def send(self, array: Array, target: int, tag: int) -> None:
        """Send an array, without waiting until it is received."""
        self._sending = [(request, kept) for request, kept in self._sending if not request.Test()]
        own = array.copy()
        self._sending.append((self.comm.Isend(_movable(own), target, tag), own))

    def receive(self, array: Array, source: int, tag: int) -> None:
        """Receive into an array."""
        self.comm.Recv(_movable(array), source, tag)

    # -- agreeing ------------------------------------------------------------------------------

    def agree(self, number: int) -> list[int]:
        """Return a 63-bit number of each process."""
        numbers = np.empty(self.size, np.int64)
        self.comm.Allgather(np.array([number], np.int64), numbers)
        found: list[int] = numbers.tolist()
        return found

    def objects(self, item: Any) -> list[Any]:
        """Return a Python object of each process."""
        found: list[Any] = self.comm.allgather(item)
        return found

    def split(self, ranks: Sequence[int]) -> MPITransport | None:
        """Return the connections among some, if this is one of them; all processes must ask."""
        here = self.rank in ranks
        color = 0 if here else self.library.UNDEFINED
        key = list(ranks).index(self.rank) if here else 0
        comm = self.comm.Split(color, key)
        return MPITransport(self.library, comm) if here else None


def _computed_in(array: Array) -> Array:
    """Return an array in a dtype that MPI computes in."""
    return array.astype(np.float32) if _is_half(array) else array


def _is_half(array: Array) -> bool:
    """Tell whether elements are 16-bit floats, which are added in float32 as everywhere in Weft."""
    return array.dtype.itemsize == 2 and array.dtype.kind not in "iub"


def _movable(array: Array) -> Array:
    """Return the same memory in a dtype that MPI knows; what is only moved has no meaning."""
    return array.view(_UNSIGNED[array.dtype.itemsize])
