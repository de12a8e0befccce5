"""Which server has which parameters, and where in its memory everything lies.

The memory of a server:

    a word                        whether values are the last ones
    for each of its parameters    the versions of its last dense and last sparse update, its
                                  values, and of tables the version of each row
    for each worker               words by which both tell one another how far they are; learning
                                  rates; and a gradient: for each parameter its form, rows, values

A worker writes to its own part alone, so one that is killed leaves nothing locked or half-written
that another would read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from ...core.errors import ArgumentError

# Words of a worker: it writes the first six, the server the rest.
WORDS: Final = (
    "asked",
    "fetched",
    "pushed",
    "ended",
    "gone",
    "wanted",
    "granted",
    "version",
    "done",
    "given",
)
ABSENT, DENSE = -2, -1  # forms of a gradient; else the number of its rows
STATE: Final = 21  # tag of messages with what an optimizer keeps
_ALIGNED: Final = 64


class WindowRegion(NamedTuple):
    """Bytes in a window."""

    start: int
    size: int


@dataclass(frozen=True)
class Key:
    """A parameter as servers know it.

    number   its place among all parameters
    """

    number: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        """Return how many bytes its values take."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def rows(self) -> int:
        """Return how many rows it has, if it can have row-sparse gradients."""
        return self.shape[0] if len(self.shape) > 1 else 0


@dataclass(frozen=True)
class KeyPlace:
    """Where a parameter lies in its server's memory."""

    versions: WindowRegion  # dense, sparse
    values: WindowRegion
    row_versions: WindowRegion


@dataclass(frozen=True)
class GradientPlace:
    """Where a worker's gradient of a parameter lies in a server's memory."""

    form: WindowRegion
    rows: WindowRegion
    values: WindowRegion


@dataclass(frozen=True)
class ServerLayout:
    """The memory of one server."""

    keys: tuple[Key, ...]
    final: WindowRegion  # a word: whether the values are the last ones
    places: dict[int, KeyPlace]
    words: tuple[WindowRegion, ...]  # of each worker
    rates: tuple[WindowRegion, ...]  # of each worker: a learning rate for each group
    gradients: tuple[dict[int, GradientPlace], ...]
    size: int


def share_keys(keys: Sequence[Key], servers: int) -> list[tuple[Key, ...]]:
    """Share parameters among servers, about equally in bytes, the same way on all ranks.

    >>> keys = [Key(i, (n,), np.dtype("float32")) for i, n in enumerate((8, 3, 4))]
    >>> [[key.number for key in own] for own in share_keys(keys, 2)]
    [[0], [1, 2]]
    """
    if servers > len(keys):
        raise ArgumentError(
            f"{servers} servers would share {len(keys)} parameters: use at most {len(keys)}"
        )
    shares: list[list[Key]] = [[] for _ in range(servers)]
    for key in sorted(keys, key=lambda key: (-key.nbytes, key.number)):
        least = min(range(servers), key=lambda s: (sum(k.nbytes for k in shares[s]), s))
        shares[least].append(key)
    return [tuple(sorted(own, key=lambda key: key.number)) for own in shares]


def lay_out(keys: Sequence[Key], workers: int, groups: int) -> ServerLayout:
    """Return where everything lies in the memory of a server that has these parameters."""
    space = _Space()
    final = space.take(8)
    places = {
        key.number: KeyPlace(space.take(16), space.take(key.nbytes), space.take(8 * key.rows))
        for key in keys
    }
    words = tuple(space.take(8 * len(WORDS)) for _ in range(workers))
    rates = tuple(space.take(8 * groups) for _ in range(workers))
    gradients = tuple(
        {
            key.number: GradientPlace(
                space.take(8), space.take(8 * key.rows), space.take(key.nbytes)
            )
            for key in keys
        }
        for _ in range(workers)
    )
    return ServerLayout(tuple(keys), final, places, words, rates, gradients, space.used)


class _Space:
    """Memory that is given out piece by piece."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, size: int) -> WindowRegion:
        region = WindowRegion(self.used, size)
        self.used += -(-size // _ALIGNED) * _ALIGNED
        return region
