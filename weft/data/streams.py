"""Where the random numbers of a pipeline come from.

Every item that a DataLoader fetches has a random stream of its own, a function of the loader's
seed, the epoch and the item's place in the epoch, and of nothing else. So augmentation gives the
same results with any number of workers, and after a resume. Transforms draw from
`item_generator()`; outside a loader that is the default generator, see `wf.manual_seed`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..core import random as kernels
from ..core.rng import Generator, default_generator

Array = np.ndarray[Any, Any]

# Streams of one epoch's generator. Items are forked from a child, so that their places in the
# epoch (any 64-bit number) cannot meet these.
ORDER: Final = 0  # the sampler's order
ITEMS: Final = 1  # augmentation of items
BATCHES: Final = 2  # batch transforms, and the seeds of foreign generators in workers
PIPELINE: Final = 3  # shuffling and prefetching stages inside a dataset
SHARDS: Final = 1 << 32  # the items of worker w of a dataset that shards itself: SHARDS + w


@dataclass(frozen=True)
class WorkerInfo:
    """What a worker process knows of itself: `id` of `num_workers`, its `seed` and the epoch."""

    id: int
    num_workers: int
    seed: int
    epoch: int


class Streams:
    """The random streams of one epoch, and the place in it of the item being made."""

    __slots__ = ("_generator", "_items", "_place", "_stages", "epoch")

    def __init__(self, epoch: Generator, items: Generator) -> None:
        self.epoch = epoch
        self._items = items
        self._place = 0
        self._generator: Generator | None = None
        self._stages = 0

    @property
    def place(self) -> int:
        """Return the place of the item being made."""
        return self._place

    def restart(self) -> None:
        """Begin the epoch anew."""
        self._place, self._generator, self._stages = 0, None, 0

    def enter_item(self, place: int) -> None:
        """Begin the item that stands at a place of the epoch."""
        self._place, self._generator = place, None

    def generator(self) -> Generator:
        """Return the generator of the item, made when it is first asked for."""
        if self._generator is None:
            self._generator = self._items.fork(self._place)
        return self._generator

    def next_stage(self) -> Generator:
        """Return a generator for the next pipeline stage that starts to iterate.

        Stages are counted in the order in which they start, which is the same in every worker.
        """
        self._stages += 1
        return self.epoch.fork(PIPELINE).fork(self._stages)


class _Current(threading.local):
    """What this thread works for."""

    streams: Streams | None = None
    worker: WorkerInfo | None = None


_current = _Current()


def item_generator() -> Generator:
    """Return the generator for the item being made; the default generator outside a loader.

    >>> from weft.data import item_generator
    >>> item_generator() is item_generator()
    True
    """
    streams = _current.streams
    return default_generator if streams is None else streams.generator()


def stage_generator() -> Generator:
    """Return a generator for a pipeline stage that starts to iterate.

    Outside a loader it is seeded from the default generator, anew for each iteration.
    """
    streams = _current.streams
    return Generator(fresh_seed()) if streams is None else streams.next_stage()


def enter_item(place: int) -> None:
    """Begin the item that stands at a place of the epoch; nothing outside a loader."""
    if _current.streams is not None:
        _current.streams.enter_item(place)


def worker_info() -> WorkerInfo | None:
    """Return what a DataLoader's worker knows of itself, or None in the main process."""
    return _current.worker


def fresh_seed() -> int:
    """Draw a seed from the default generator, so that `wf.manual_seed` decides it."""
    key, counter = default_generator.reserve(1)
    return int(kernels.randint(key, counter, (), low=0, high=1 << 64, dtype="uint64"))


def set_worker(info: WorkerInfo | None) -> None:
    """Say which worker this thread runs for."""
    _current.worker = info


class using:  # noqa: N801  (called like a function; a generator would take longer to enter)
    """Draw from the given streams within the block."""

    __slots__ = ("_before", "_streams")

    def __init__(self, streams: Streams | None) -> None:
        self._streams = streams

    def __enter__(self) -> None:
        self._before = _current.streams
        _current.streams = self._streams

    def __exit__(self, *_: object) -> None:
        _current.streams = self._before


# -- draws ------------------------------------------------------------------------------------


def uniform(low: float = 0.0, high: float = 1.0, *, generator: Generator | None = None) -> float:
    """Draw a number from [low, high); `low` itself if both are equal."""
    if low == high:
        return low
    key, counter = _reserve(generator, 1)
    return float(kernels.uniform(key, counter, (), low=low, high=high, dtype="float64"))


def uniforms(
    shape: tuple[int, ...],
    low: float = 0.0,
    high: float = 1.0,
    *,
    generator: Generator | None = None,
) -> Array:
    """Draw an array of float64 numbers from [low, high)."""
    blocks = kernels.blocks_for(shape, "float64")
    key, counter = _reserve(generator, blocks)
    return kernels.uniform(key, counter, shape, low=low, high=high, dtype="float64")


def normals(
    shape: tuple[int, ...], dtype: str = "float64", *, generator: Generator | None = None
) -> Array:
    """Draw an array of standard normal numbers."""
    key, counter = _reserve(generator, kernels.blocks_for(shape, dtype))
    return kernels.normal(key, counter, shape, dtype=dtype)


def integer(low: int, high: int, *, generator: Generator | None = None) -> int:
    """Draw an integer from [low, high)."""
    key, counter = _reserve(generator, 1)
    return int(kernels.randint(key, counter, (), low=low, high=high))


# Draws that are too many to be held at once come in parts; all parts together are the same numbers
# as one draw. What they take of the generator is reserved when they are asked for.

PART: Final = 1 << 16  # a whole number of Philox blocks


def integer_parts(low: int, high: int, count: int, *, generator: Generator) -> Iterator[Array]:
    """Draw `count` integers from [low, high), as arrays of PART."""
    key, counter = generator.reserve(kernels.blocks_for((count,), "int64"))
    return (
        kernels.randint(key, counter + _blocks(start), (stop - start,), low=low, high=high)
        for start, stop in _parts(count, PART)
    )


def permutation_parts(n: int, rounds: int, *, generator: Generator) -> Iterator[Array]:
    """Draw several random orders of 0 ... n-1."""
    blocks = kernels.blocks_for((n,), "int64")
    key, counter = generator.reserve(blocks * rounds)
    return (kernels.permutation(key, counter + i * blocks, n) for i in range(rounds))


def category_parts(weights: Array, count: int, *, generator: Generator) -> Iterator[Array]:
    """Draw `count` indices with replacement; summing the weights is worth a part of their size."""
    size = PART * -(-len(weights) // PART)
    key, counter = generator.reserve(kernels.categorical_blocks(weights.shape, count))
    return (
        kernels.categorical(
            key, counter + _blocks(start), probabilities=weights, num_samples=stop - start
        )
        for start, stop in _parts(count, size)
    )


def _parts(count: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, count)) for start in range(0, count, size))


def _blocks(words: int) -> int:
    return kernels.blocks_for((words,), "int64")


def chance(probability: float, *, generator: Generator | None = None) -> bool:
    """Draw True with the given probability."""
    return uniform(generator=generator) < probability


def permutation(n: int, *, generator: Generator | None = None) -> Array:
    """Draw a random order of 0 ... n-1."""
    key, counter = _reserve(generator, kernels.blocks_for((n,), "int64"))
    return kernels.permutation(key, counter, n)


def categories(
    weights: Array, count: int, replacement: bool, *, generator: Generator | None = None
) -> Array:
    """Draw `count` indices with probabilities proportional to `weights`."""
    blocks = kernels.categorical_blocks(weights.shape, count, replacement=replacement)
    key, counter = _reserve(generator, blocks)
    return kernels.categorical(
        key, counter, probabilities=weights, num_samples=count, replacement=replacement
    )


def beta(alpha: float, *, generator: Generator | None = None) -> float:
    """Draw from the symmetric Beta(alpha, alpha): a ratio of gamma variates."""
    key, counter = _reserve(generator, kernels.gamma_blocks((2,)))
    a, b = kernels.gamma(key, counter, (2,), alpha=alpha, dtype="float64").tolist()
    return float(a / (a + b))


def _reserve(generator: Generator | None, blocks: int) -> tuple[int, int]:
    return (generator or item_generator()).reserve(blocks)
