"""The states of a program, hundreds of them in a training step, read and written together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from sys import getrefcount
from typing import Any

import numpy as np

from ....core.dtype import Array
from ....graph.state import KeptTogether, State, kept_together
from ....lower.memory import WORD
from ....lower.storage import Buffer


def read_all(kept: Iterable[KeptTogether]) -> list[Any]:
    """Return the values of all states now."""
    return [value for together in kept for value in together.read()]


# Numbers


def words_of(memory: Array, numbers: Sequence[Buffer]) -> Iterator[Array]:
    """Return the array of each number, which lies in a word of its own."""
    for i, number in enumerate(numbers):
        yield memory[i : i + 1].view(number.dtype)[:1]


def numbers_in(memory: Array, states: Sequence[State]) -> list[tuple[KeptTogether, Array]]:
    """Return states whose values lie in words of memory: those of one dtype and keeper together."""
    found: list[tuple[KeptTogether, Array]] = []
    start = 0
    for dtype, some in groupby(states, lambda state: state.type.dtype):
        for together in kept_together(some):
            end = start + len(together.places)
            found.append((together, memory[start:end].view(dtype)[:: WORD // dtype.itemsize]))
            start = end
    return found


# Arrays that are changed in place


def _most_references(arrays: list[Array]) -> int:
    return max(map(getrefcount, arrays), default=0)


def _of_one_owner() -> int:
    owner = [np.zeros(1)]
    return _most_references(list(owner))


ALONE = _of_one_owner()  # what is seen of an array that its owner and one list hold


def are_alone(arrays: list[Array]) -> bool:
    """Tell whether nobody but its owner, and the list, holds an array."""
    return _most_references(arrays) <= ALONE


def parted(arrays: list[Array]) -> list[Array]:
    """Return copies of the arrays that others hold too, and would see change."""
    references = list(map(getrefcount, arrays))
    return [a.copy() if n > ALONE else a for a, n in zip(arrays, references, strict=True)]
