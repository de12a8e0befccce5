"""Datasets with a length and items by index, and the views that are made of them.

A view (`map`, `subset`, `shuffle`, `concat`, ...) holds its source and computes an item when it is
asked for one. A dataset that can fetch many items faster than one by one also defines
`take_batch`; views pass it on where they can.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ..core.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRange,
)
from ..core.rng import Generator
from ..core.shape import as_int
from .apply import applied, check_key
from .checks import as_count, as_real, check_callable, several
from .iterable import IterableDataset, PrefetchedStream
from .streams import Array, enter_item, fresh_seed, permutation

NO_BATCH = None  # what `take_batch` returns when a view's source has none


class Dataset:
    """A dataset of `len(dataset)` items, `dataset[i]`. Subclasses define these two.

    >>> from weft.data import Dataset
    >>> class Squares(Dataset):
    ...     def __len__(self):
    ...         return 4
    ...
    ...     def __getitem__(self, i):
    ...         return i * i
    >>> list(Squares().filter(lambda x: x > 0).map(float))
    [1.0, 4.0, 9.0]
    """

    @abstractmethod
    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define __len__")

    @abstractmethod
    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def take_batch(self, indices: Array) -> Any:
        """Return the collated batch of the items at `indices`, or None if there is no fast way."""
        return NO_BATCH

    # -- views -------------------------------------------------------------------------------

    def map(self, fn: Callable[[Any], Any], *, key: int | str | None = None) -> Dataset:
        """Return the dataset of `fn(item)`; with `key`, of items whose entry `key` is replaced."""
        return MappedDataset(self, fn, key)

    def filter(self, predicate: Callable[[Any], Any]) -> Dataset:
        """Return the items for which `predicate(item)` is true, which is asked once, when needed.

        Every item is made for that; a predicate must not depend on random numbers.
        """
        return FilteredDataset(self, predicate)

    def batch(self, size: int, *, drop_last: bool = False) -> Dataset:
        """Return the dataset of lists of `size` successive items."""
        return BatchedDataset(self, size, drop_last)

    def shuffle(self, seed: int | None = None) -> Dataset:
        """Return the items in one random order; a DataLoader's `shuffle` gives one per epoch."""
        generator = Generator(fresh_seed() if seed is None else seed)
        return Subset(self, permutation(len(self), generator=generator))

    def subset(self, indices: Iterable[int]) -> Dataset:
        """Return the items at `indices`."""
        return Subset(self, indices)

    def take(self, n: int) -> Dataset:
        """Return the first `n` items, or all if there are fewer."""
        return Subset(self, range(min(as_count("take", "n", n, 0), len(self))))

    def skip(self, n: int) -> Dataset:
        """Return the items without the first `n`."""
        return Subset(self, range(min(as_count("skip", "n", n, 0), len(self)), len(self)))

    def repeat(self, times: int) -> Dataset:
        """Return the items `times` times over."""
        return RepeatedDataset(self, times)

    def concat(self, *others: Any) -> Dataset:
        """Return the items of this dataset followed by those of the others."""
        return ConcatDataset(self, *several(others, Dataset))

    def __add__(self, other: object) -> Dataset:
        return ConcatDataset(self, other) if isinstance(other, Dataset) else NotImplemented

    def zip(self, *others: Any) -> Dataset:
        """Return the tuples of items at the same index; the shortest dataset sets the length."""
        return ZippedDataset(self, *several(others, Dataset))

    def random_split(
        self, lengths: Sequence[int] | Sequence[float], seed: int | None = None
    ) -> list[Dataset]:
        """Return datasets of the given lengths, or fractions of the length, without overlap."""
        return random_split(self, lengths, seed)

    def cache(self) -> Dataset:
        """Return the same items, each kept in memory (of each worker) once it was made."""
        return CachedDataset(self)

    def prefetch(self, buffer_size: int = 2) -> IterableDataset:
        """Return the items in order as a stream, made ahead by a background thread."""
        return PrefetchedStream(DatasetStream(self), buffer_size)

    def stream(self) -> IterableDataset:
        """Return the items in order as a stream."""
        return DatasetStream(self)


def random_split(
    dataset: Dataset, lengths: Sequence[int] | Sequence[float], seed: int | None = None
) -> list[Dataset]:
    """Split a dataset at random into parts of the given lengths, or fractions of the length.

    With fractions, which must sum to 1, each part gets the floor and the first parts get what is
    left over, one item each.

    >>> from weft.data import TensorDataset, random_split
    >>> [len(part) for part in random_split(TensorDataset(range(10)), [0.75, 0.25], seed=0)]
    [8, 2]
    """
    sizes = _split_sizes(len(dataset), list(lengths))
    generator = Generator(fresh_seed() if seed is None else seed)
    order = permutation(len(dataset), generator=generator)
    stops = accumulate(sizes)
    spans = zip(sizes, stops, strict=True)
    return [Subset(dataset, order[stop - size : stop]) for size, stop in spans]


def _split_sizes(total: int, lengths: list[Any]) -> list[int]:
    if not lengths:
        raise ArgumentError("random_split: lengths must not be empty")
    if all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in lengths):
        sizes = [as_count("random_split", "each length", n, 0) for n in lengths]
        if sum(sizes) == total:
            return sizes
        hint = "; use fractions such as [0.8, 0.2] to split any length" if sum(sizes) != 1 else ""
        raise ArgumentError(
            f"random_split: lengths must sum to the dataset's length {total}{hint}. "
            f"Received: {lengths} (sum {sum(sizes)})"
        )
    return _fraction_sizes(total, lengths)


def _fraction_sizes(total: int, fractions: list[Any]) -> list[int]:
    values = [as_real("random_split", "each fraction", f, 0.0) for f in fractions]
    if abs(sum(values) - 1.0) > 1e-6:
        raise ArgumentError(
            f"random_split: fractions must sum to 1. Received: {fractions} (sum {sum(values):g})"
        )
    sizes = [int(total * value + 1e-9) for value in values]  # 0.29 * 100 is just below 29
    for i in range(total - sum(sizes)):
        sizes[i % len(sizes)] += 1
    return sizes


def normal_index(index: Any, length: int, what: str) -> int:
    """Return an index as one from 0 to length - 1; negative ones count from the end."""
    number = as_int(index, f"{what}: index")
    if -length <= number < length:
        return number % length
    raise IndexOutOfRange(f"{what}: index {number} is out of range for {length} items")


def batch_taker(dataset: Any) -> Callable[[Array], Any] | None:
    """Return the dataset's `take_batch` if it speaks for its `__getitem__`.

    A subclass that overrides `__getitem__` alone has changed the items, so that an inherited
    `take_batch` is no longer right. A subset has a fast way if its source does.
    """
    for cls in type(dataset).__mro__:
        if cls is Subset and batch_taker(dataset._source) is None:
            return None
        if "take_batch" in vars(cls):
            taker: Callable[[Array], Any] | None = dataset.take_batch
            return taker
        if "__getitem__" in vars(cls):
            return None
    return None


# -- views ----------------------------------------------------------------------------------------


class _View(Dataset):
    """A dataset made from another one, of the same length unless it says otherwise."""

    def __init__(self, source: Dataset) -> None:
        self._source = checked_source(source)

    def __len__(self) -> int:
        return len(self._source)


class MappedDataset(_View):
    """A function of each item."""

    def __init__(
        self, source: Dataset, fn: Callable[[Any], Any], key: int | str | None = None
    ) -> None:
        super().__init__(source)
        check_callable("map", "fn", fn)
        self._fn, self._key = fn, check_key(key)

    def __getitem__(self, index: Any) -> Any:
        return applied(self._fn, self._source[index], self._key)


class Subset(_View):
    """The items at certain indices of another dataset, in that order."""

    def __init__(self, source: Dataset, indices: Iterable[int]) -> None:
        super().__init__(source)
        self.indices = _index_array(indices, len(self._source))

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        return self._source[int(self.indices[normal_index(index, len(self), "Subset")])]

    def take_batch(self, indices: Array) -> Any:
        """Return the batch at the source's indices, if the source has a fast way."""
        take = batch_taker(self._source)
        return NO_BATCH if take is None else take(self.indices[indices])


class FilteredDataset(_View):
    """The items that satisfy a predicate."""

    def __init__(self, source: Dataset, predicate: Callable[[Any], Any]) -> None:
        super().__init__(source)
        check_callable("filter", "predicate", predicate)
        self._predicate = predicate
        self._found: Array | None = None

    @property
    def _indices(self) -> Array:
        if self._found is None:
            kept = [i for i in range(len(self._source)) if self._predicate(self._source[i])]
            self._found = np.array(kept, np.int64)
        return self._found

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: Any) -> Any:
        return self._source[int(self._indices[normal_index(index, len(self), "filter")])]


class BatchedDataset(_View):
    """Lists of successive items."""

    def __init__(self, source: Dataset, size: int, drop_last: bool = False) -> None:
        super().__init__(source)
        self._size, self._drop_last = as_count("batch", "size", size), drop_last

    def __len__(self) -> int:
        total = len(self._source)
        return total // self._size if self._drop_last else -(-total // self._size)

    def __getitem__(self, index: Any) -> list[Any]:
        start = normal_index(index, len(self), "batch") * self._size
        return [self._source[i] for i in range(start, min(start + self._size, len(self._source)))]


class CachedDataset(_View):
    """Items kept in memory once they were made."""

    def __init__(self, source: Dataset) -> None:
        super().__init__(source)
        self._items: dict[int, Any] = {}

    def __getitem__(self, index: Any) -> Any:
        i = normal_index(index, len(self), "cache")
        if i not in self._items:
            self._items[i] = self._source[i]
        return self._items[i]


class RepeatedDataset(_View):
    """The items of a dataset several times over."""

    def __init__(self, source: Dataset, times: int) -> None:
        super().__init__(source)
        self._times = as_count("repeat", "times", times)

    def __len__(self) -> int:
        return len(self._source) * self._times

    def __getitem__(self, index: Any) -> Any:
        i = normal_index(index, len(self), "repeat")
        return self._source[i % len(self._source)]


class ConcatDataset(Dataset):
    """One dataset after another: several, or one list of them.

    >>> from weft.data import ConcatDataset, TensorDataset
    >>> a, b = TensorDataset(range(3)), TensorDataset(range(4))
    >>> len(ConcatDataset([a, b])), len(ConcatDataset(a, b))
    (7, 7)
    """

    def __init__(self, *sources: Any) -> None:
        sources = _spread(sources)
        if not sources:
            raise ArgumentError("ConcatDataset needs at least one dataset")
        self._sources = tuple(checked_source(source) for source in sources)
        self._stops = list(accumulate(len(source) for source in self._sources))

    def __len__(self) -> int:
        return self._stops[-1]

    def __getitem__(self, index: Any) -> Any:
        i = normal_index(index, len(self), "concat")
        which = bisect_right(self._stops, i)
        start = self._stops[which - 1] if which else 0
        return self._sources[which][i - start]


class ZippedDataset(Dataset):
    """Tuples of the items of several datasets."""

    def __init__(self, *sources: Dataset) -> None:
        self._sources = tuple(checked_source(source) for source in sources)

    def __len__(self) -> int:
        return min((len(source) for source in self._sources), default=0)

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        i = normal_index(index, len(self), "zip")
        return tuple(source[i] for source in self._sources)


class DatasetStream(IterableDataset):
    """The items of a dataset in order, as a stream."""

    def __init__(self, source: Dataset) -> None:
        self._source = checked_source(source)

    def __iter__(self) -> Iterator[Any]:
        return (self._source[i] for i in range(len(self._source)))

    def select(self, keep: Callable[[int], bool]) -> Iterator[Any]:
        """Yield the items at the places that `keep` names, making no others."""
        for place in filter(keep, range(len(self._source))):
            enter_item(place)
            yield self._source[place]


def _spread(sources: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return datasets, of which a single list, tuple or iterator holds several."""
    if len(sources) == 1 and isinstance(sources[0], list | tuple | Iterator):
        return tuple(sources[0])
    return sources


def checked_source(source: Any) -> Any:
    """Return a dataset (anything with a length and items) or say why it is none."""
    if hasattr(source, "__len__") and hasattr(source, "__getitem__"):
        return source
    hint = "; streams have their own concat and zip" if isinstance(source, IterableDataset) else ""
    raise ArgumentTypeError(
        f"expected a dataset with __len__ and __getitem__{hint}. Received: {type(source).__name__}"
    )


def _index_array(indices: Iterable[int], length: int) -> Array:
    given = np.asarray(indices if isinstance(indices, np.ndarray) else list(indices))
    if given.size == 0:
        return np.zeros(0, np.int64)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ArgumentTypeError(
            f"subset: indices must be a list of integers. Received: {given!r:.80}"
        )
    outside = (given < -length) | (given >= length)
    if outside.any():
        raise IndexOutOfRange(
            f"subset: index {given[outside][0]} is out of range for {length} items"
        )
    return np.where(given < 0, given + length, given).astype(np.int64)
