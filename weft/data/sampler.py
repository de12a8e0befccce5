"""Samplers: in which order the items of a dataset are visited.

A sampler is a pure rule: `order(generator, epoch)` gives the indices of one epoch. A DataLoader
calls it with a generator of its own for each epoch, so that a position in the epoch is all that
must be saved to continue exactly. Iterating over a sampler directly gives one epoch after another.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sized
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.rng import Generator
from ..core.tensor import Tensor
from .checks import as_count
from .streams import (
    Array,
    categories,
    category_parts,
    fresh_seed,
    integer_parts,
    permutation,
    permutation_parts,
)

T = TypeVar("T")
Indices: TypeAlias = list[Any] | range | Array


class Sampler:
    """Base of the samplers; a subclass defines `order` and `__len__`."""

    epoch: int = 0
    _seed: int | None = None

    @abstractmethod
    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    @abstractmethod
    def order(self, generator: Generator, epoch: int) -> Iterable[Any]:
        """Return the indices of one epoch, drawing from `generator` if the order is random."""
        raise NotImplementedError(f"{type(self).__name__} must define order")

    def set_epoch(self, epoch: int) -> None:
        """Say which epoch `iter(sampler)` gives next."""
        self.epoch = as_count(self, "epoch", epoch, 0)

    def __iter__(self) -> Iterator[Any]:
        if self._seed is None:
            self._seed = fresh_seed()
        epoch, self.epoch = self.epoch, self.epoch + 1
        order = self.order(Generator(self._seed).fork(epoch), epoch)
        return iter(order.tolist() if isinstance(order, np.ndarray) else order)


class SequentialSampler(Sampler):
    """All indices in order.

    >>> from weft.data import SequentialSampler
    >>> list(SequentialSampler(3))
    [0, 1, 2]
    """

    def __init__(self, source: Sized | int) -> None:
        self._length = _length(self, source)

    def __len__(self) -> int:
        return self._length

    def order(self, generator: Generator, epoch: int) -> range:
        """Return 0, 1, 2, ..."""
        return range(self._length)


class _Drawing(Sampler):
    """Base of samplers that draw, from a generator of their own if they have a seed."""

    _count: int

    def __init__(self, seed: int | None) -> None:
        self._own = None if seed is None else Generator(seed)

    def __len__(self) -> int:
        return self._count

    def order(self, generator: Generator, epoch: int) -> Iterable[int]:
        """Return the indices drawn."""
        if self._count == 0:
            return np.zeros(0, np.int64)
        return self._drawn(generator if self._own is None else self._own.fork(epoch))

    def _drawn(self, generator: Generator) -> Iterable[int]:
        raise NotImplementedError


class RandomSampler(_Drawing):
    """All indices in a random order; with `replacement`, independent draws.

    `num_samples` (the length by default) may exceed the length: without replacement the order is
    then made of several permutations. `seed` makes the order independent of the loader's seed.
    Draws are made as they are needed: `num_samples` may be any number.
    """

    def __init__(
        self,
        source: Sized | int,
        *,
        replacement: bool = False,
        num_samples: int | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self._length = _length(self, source)
        count = self._length if num_samples is None else num_samples
        self._count = as_count(self, "num_samples", count, 0)
        if self._count and not self._length:
            raise ArgumentError(f"RandomSampler: cannot draw {self._count} samples from no items")
        self._replacement = replacement

    def _drawn(self, generator: Generator) -> Iterable[int]:
        if self._replacement:
            parts = integer_parts(0, self._length, self._count, generator=generator)
        else:
            rounds = -(-self._count // self._length)
            parts = permutation_parts(self._length, rounds, generator=generator)
        return _in_a_row(parts, self._count)


class SubsetRandomSampler(_Drawing):
    """The given indices in a random order."""

    def __init__(self, indices: Iterable[int], *, seed: int | None = None) -> None:
        super().__init__(seed)
        self._indices = np.array(list(indices))
        if self._indices.size and self._indices.dtype.kind not in "iu":
            raise ArgumentTypeError(
                f"SubsetRandomSampler: indices must be integers. Received: {self._indices!r:.80}"
            )
        self._count = len(self._indices)

    def _drawn(self, generator: Generator) -> Array:
        return self._indices[permutation(self._count, generator=generator)]


class WeightedRandomSampler(_Drawing):
    """Indices drawn with probabilities proportional to `weights`, which need not sum to 1.

    Without replacement, each draw is in proportion to the weights that remain.
    """

    def __init__(
        self,
        weights: Any,
        num_samples: int | None = None,
        *,
        replacement: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(seed)
        self._weights = _checked_weights(weights)
        count = len(self._weights) if num_samples is None else num_samples
        self._count = as_count(self, "num_samples", count, 0)
        self._replacement = replacement
        possible = int(np.count_nonzero(self._weights))
        if not replacement and self._count > possible:
            raise ArgumentError(
                f"WeightedRandomSampler: cannot draw {self._count} different items, only "
                f"{possible} have a weight above 0; use replacement=True"
            )

    def _drawn(self, generator: Generator) -> Iterable[int]:
        if not self._replacement:
            return categories(self._weights, self._count, False, generator=generator)
        parts = category_parts(self._weights, self._count, generator=generator)
        return _in_a_row(parts, self._count)


class ShardSampler(Sampler):
    """The part of the indices that process `index` of `num_shards` visits.

    All processes shuffle alike, by `seed` and epoch, and take every `num_shards`-th index. So that
    all parts have the same length, indices from the start are repeated at the end, or with
    `drop_last` the tail is left out.

    >>> from weft.data import ShardSampler
    >>> [list(ShardSampler(5, num_shards=2, index=i)) for i in (0, 1)]
    [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        source: Sized | int,
        *,
        num_shards: int,
        index: int,
        shuffle: bool = False,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self._length = _length(self, source)
        self._shards = as_count(self, "num_shards", num_shards)
        self._index = as_count(self, "index", index, 0)
        if self._index >= self._shards:
            raise ArgumentError(
                f"ShardSampler: index must be below num_shards={self._shards}. Received: {index}"
            )
        self._shuffle, self._drop_last = shuffle, drop_last
        self._own = Generator(seed)

    def __len__(self) -> int:
        whole, rest = divmod(self._length, self._shards)
        return whole if self._drop_last or not rest else whole + 1

    def order(self, generator: Generator, epoch: int) -> Iterable[int]:
        """Return this shard of an order that all shards share."""
        places = range(self._index, len(self) * self._shards, self._shards)
        if not self._shuffle:
            return (i % self._length for i in places)
        everything = permutation(self._length, generator=self._own.fork(epoch))
        shared: Array = everything[np.arange(places.start, places.stop, places.step) % self._length]
        return shared


class BatchSampler(Sampler):
    """Lists of `batch_size` successive indices of another sampler, or of any iterable of them.

    >>> from weft.data import BatchSampler, SequentialSampler
    >>> list(BatchSampler(SequentialSampler(5), 2))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[int], batch_size: int, *, drop_last: bool = False) -> None:
        self.sampler = sampler
        self.batch_size = as_count(self, "batch_size", batch_size)
        self.drop_last = drop_last

    def __len__(self) -> int:
        total = len(self.sampler)  # type: ignore[arg-type]  # raises TypeError if it has no length
        return total // self.batch_size if self.drop_last else -(-total // self.batch_size)

    def order(self, generator: Generator, epoch: int) -> Iterator[list[int]]:
        """Yield the batches of one epoch."""
        return map(as_list, self.runs(generator, epoch))

    def runs(self, generator: Generator, epoch: int) -> Iterator[Indices]:
        """Yield the same, where ranges and arrays of indices stay what they are."""
        inner = self.sampler
        indices: Iterable[Any] = inner
        if isinstance(inner, Sampler) and type(inner).order is not Sampler.order:
            indices = inner.order(generator, epoch)  # else by its __iter__
        if not isinstance(indices, np.ndarray | range):
            return batched(indices, self.batch_size, self.drop_last)
        size, count = self.batch_size, len(indices)
        end = count - count % size if self.drop_last else count
        return (indices[i : i + size] for i in range(0, end, size))


def batched(items: Iterable[T], size: int, drop_last: bool = False) -> Iterator[list[T]]:
    """Yield lists of `size` successive items."""
    batch: list[T] = []
    for index in items:
        batch.append(index)
        if len(batch) == size:
            yield batch
            batch = []
    if batch and not drop_last:
        yield batch


def as_list(indices: Indices) -> list[Any]:
    """Return indices as a list of Python's numbers."""
    if isinstance(indices, np.ndarray):
        numbers: list[Any] = indices.tolist()
        return numbers
    return indices if type(indices) is list else list(indices)


def _in_a_row(parts: Iterator[Array], count: int) -> Iterable[int]:
    """Return the first elements of arrays one after another; a single array as it is."""
    first = next(parts)
    if len(first) >= count:
        return first[:count]
    rest = chain.from_iterable(part.tolist() for part in chain((first,), parts))
    return islice(rest, count)


def _length(sampler: Sampler, source: Sized | int) -> int:
    if isinstance(source, int | np.integer):
        return as_count(sampler, "the number of items", source, 0)
    try:
        return len(source)
    except TypeError:
        raise ArgumentTypeError(
            f"{type(sampler).__name__} needs a dataset with a length, or a number. "
            f"Received: {type(source).__name__}"
        ) from None


def _checked_weights(weights: Any) -> Array:
    values = weights.numpy() if isinstance(weights, Tensor) else weights
    array = np.array(values, np.float64)
    if array.ndim != 1 or array.size == 0:
        raise ShapeError(
            "WeightedRandomSampler: weights must be a list of one number per item. "
            f"Received: shape {array.shape}"
        )
    if not np.all((array >= 0) & (array < np.inf)) or not array.any():
        raise ArgumentError(
            "WeightedRandomSampler: weights must be finite, not negative and not all 0. "
            f"Received: {array}"
        )
    return array
