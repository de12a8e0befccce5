"""Transports: how arrays get from process to process.

A transport connects the processes of one group. Its functions take C-contiguous arrays of one shape
and dtype on all of them, and return new arrays unless they say otherwise. That shapes agree was
checked by the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


def tree_sum(parts: Sequence[Array]) -> Array:
    """Return a sum of neighbours, of sums of neighbours, and so on.

    >>> tree_sum([np.array([1]), np.array([2]), np.array([3])])
    array([6])
    """
    sums = list(parts)
    while len(sums) > 1:
        pairs: list[Array] = [np.add(*sums[i : i + 2]) for i in range(0, len(sums) - 1, 2)]
        sums = pairs + sums[len(pairs) * 2 :]
    return sums[0]


class Transport(Protocol):
    """The connections among the processes of a group."""

    @property
    def rank(self) -> int:
        """Which of them this is."""

    @property
    def size(self) -> int:
        """How many they are."""

    def reduce(self, array: Array, how: str) -> Array:
        """Return the sum, product, maximum or minimum of all arrays, to all; may use its memory."""

    def pairwise_sum(self, array: Array) -> Array:
        """Return the sum of all arrays, added as a balanced tree: the same bits at any size."""

    def reduce_to(self, array: Array, root: int) -> Array:
        """Return the sum of all arrays to one process, zeros to the others."""

    def broadcast(self, array: Array, root: int) -> Array:
        """Return the array of one process."""

    def gather(self, array: Array) -> Array:
        """Return the arrays of all along a new first axis."""

    def scatter_sum(self, array: Array) -> Array:
        """Return row `rank` of the sum of all arrays, each with a row for every process."""

    def swap(self, array: Array) -> Array:
        """Return, in row i, row `rank` of the array of process i."""

    def shift(self, array: Array, by: int) -> Array:
        """Return the array of the process `by` places before this one, in a ring."""

    def send(self, array: Array, target: int, tag: int) -> None:
        """Send an array, without waiting until it is received."""

    def receive(self, array: Array, source: int, tag: int) -> None:
        """Receive into an array."""

    def agree(self, number: int) -> list[int]:
        """Return a 63-bit number of each process."""

    def objects(self, item: Any) -> list[Any]:
        """Return a Python object of each process."""

    def split(self, ranks: Sequence[int]) -> Transport | None:
        """Return the connections among some, if this is one of them; all processes must ask."""


class AloneTransport:
    """One process, which is all there is."""

    rank, size = 0, 1

    def __init__(self) -> None:
        self._sent: dict[int, list[Array]] = {}

    def reduce(self, array: Array, how: str) -> Array:
        """Return the array."""
        return array

    def pairwise_sum(self, array: Array) -> Array:
        """Return the array."""
        return array.copy()

    def reduce_to(self, array: Array, root: int) -> Array:
        """Return the array."""
        return array.copy()

    def broadcast(self, array: Array, root: int) -> Array:
        """Return the array."""
        return array.copy()

    def gather(self, array: Array) -> Array:
        """Return the array with a first axis of one."""
        return array[None].copy()

    def scatter_sum(self, array: Array) -> Array:
        """Return the only row."""
        only: Array = array[0].copy()
        return only

    def swap(self, array: Array) -> Array:
        """Return the array."""
        return array.copy()

    def shift(self, array: Array, by: int) -> Array:
        """Return the array."""
        return array.copy()

    def send(self, array: Array, target: int, tag: int) -> None:
        """Keep the array for who receives it here."""
        self._sent.setdefault(tag, []).append(array.copy())

    def receive(self, array: Array, source: int, tag: int) -> None:
        """Take what was sent first; there must be something, for nobody else will send."""
        waiting = self._sent.get(tag)
        if not waiting:
            raise LookupError(f"recv: nothing was sent with tag {tag}, and this process is alone")
        array[...] = waiting.pop(0)

    def agree(self, number: int) -> list[int]:
        """Return the number."""
        return [number]

    def objects(self, item: Any) -> list[Any]:
        """Return the object."""
        return [item]

    def split(self, ranks: Sequence[int]) -> Transport | None:
        """Return connections to nobody else."""
        return AloneTransport()
