"""Datasets that are streams: iterated from the start, of unknown length perhaps.

Stages (`map`, `filter`, `batch`, `shuffle`, `prefetch`, ...) wrap a stream and are streams again.
A DataLoader asks for the items at certain places by `select`, which is how workers share a stream
and how a loader resumes in the middle of it.
"""

from __future__ import annotations

import os
import queue
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count, islice
from typing import Any, TypeVar

from ..core.errors import ArgumentTypeError
from .apply import applied, check_key
from .checks import as_count, check_callable, several
from .errors import WorkerError
from .streams import (
    Streams,
    enter_item,
    integer,
    set_worker,
    stage_generator,
    using,
    worker_info,
)

T = TypeVar("T")
Keep = Callable[[int], bool]


class IterableDataset:
    """A dataset that is a stream of items. Subclasses define `__iter__`.

    Every iteration must give the same items in the same order (randomness comes from
    `item_generator()`). A DataLoader with several workers then divides the stream between them,
    batch by batch, so that its batches are the same with any number of workers; each worker walks
    through the whole stream and leaves out what is not its own. Where walking is expensive, set
    `shards_itself = True` and yield only this worker's part, see `shard`.

    >>> from weft.data import IterableDataset
    >>> class Countdown(IterableDataset):
    ...     def __iter__(self):
    ...         return iter([3, 2, 1])
    >>> list(Countdown().map(lambda x: x * x))
    [9, 4, 1]
    """

    shards_itself: bool = False

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """Yield the items from the first to the last."""
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def select(self, keep: Keep) -> Iterator[Any]:
        """Yield the items at the places (0, 1, ...) for which `keep(place)` is true.

        Override it where items can be skipped without being made.
        """
        items = iter(self)
        for place in count():
            enter_item(place)
            try:
                item = next(items)
            except StopIteration:
                return
            if keep(place):
                yield item

    # -- stages ------------------------------------------------------------------------------

    def map(self, fn: Callable[[Any], Any], *, key: int | str | None = None) -> IterableDataset:
        """Return the stream of `fn(item)`; with `key`, of items whose entry `key` is replaced."""
        return MappedStream(self, fn, key)

    def filter(self, predicate: Callable[[Any], Any]) -> IterableDataset:
        """Return the stream of the items for which `predicate(item)` is true."""
        return FilteredStream(self, predicate)

    def batch(self, size: int, *, drop_last: bool = False) -> IterableDataset:
        """Return the stream of lists of `size` successive items."""
        return BatchedStream(self, size, drop_last)

    def shuffle(self, buffer_size: int) -> IterableDataset:
        """Return the stream in a random order: each item is drawn from a buffer of the next ones.

        The order is another one in each epoch.
        """
        return ShuffledStream(self, buffer_size)

    def prefetch(self, buffer_size: int = 2) -> IterableDataset:
        """Return the same stream, made ahead by a background thread."""
        return PrefetchedStream(self, buffer_size)

    def take(self, n: int) -> IterableDataset:
        """Return the stream of the first `n` items."""
        return SlicedStream(self, 0, as_count("take", "n", n, 0))

    def skip(self, n: int) -> IterableDataset:
        """Return the stream without its first `n` items."""
        return SlicedStream(self, as_count("skip", "n", n, 0), None)

    def repeat(self, times: int | None = None) -> IterableDataset:
        """Return the stream repeated `times` times, or for ever."""
        return RepeatedStream(self, times)

    def concat(self, *others: Any) -> IterableDataset:
        """Return this stream followed by the others."""
        return ChainedStream(self, *several(others, IterableDataset))

    def __add__(self, other: object) -> IterableDataset:
        return ChainedStream(self, other) if isinstance(other, IterableDataset) else NotImplemented

    def zip(self, *others: Iterable[Any]) -> IterableDataset:
        """Return the stream of tuples of items that stand at the same place; the shortest ends."""
        return ZippedStream(self, *several(others, IterableDataset))


def shard(items: Iterable[T]) -> Iterator[T]:
    """Yield this worker's part of `items`: every item in the main process.

    For streams that divide themselves (`shards_itself = True`), over file names for example:
    worker w of n gets items w, w + n, w + 2n, ...

    >>> list(shard("abc"))
    ['a', 'b', 'c']
    """
    info = worker_info()
    if info is None:
        return iter(items)
    return islice(items, info.id, None, info.num_workers)


class IterableSource(IterableDataset):
    """The stream that a function returns, or that iterating over an object gives.

    >>> from weft.data import IterableSource
    >>> list(IterableSource(lambda: iter("ab")).repeat(2))
    ['a', 'b', 'a', 'b']
    """

    def __init__(
        self, source: Iterable[Any] | Callable[[], Iterable[Any]], *, shards_itself: bool = False
    ) -> None:
        if isinstance(source, Iterator):
            raise ArgumentTypeError(
                "IterableSource: an iterator can be read only once; give a function that makes "
                f"one, or a sequence. Received: {type(source).__name__}"
            )
        if not callable(source) and not isinstance(source, Iterable):
            raise ArgumentTypeError(
                f"IterableSource: expected a function or an iterable. Received: {source!r:.60}"
            )
        self._source = source
        self.shards_itself = shards_itself

    def __iter__(self) -> Iterator[Any]:
        return iter(self._source() if callable(self._source) else self._source)


class _Stage(IterableDataset):
    """A stream made from another one."""

    def __init__(self, source: IterableDataset) -> None:
        self._source = checked_stream(source)
        self.shards_itself = source.shards_itself


class MappedStream(_Stage):
    """A function of each item; items that are skipped are not computed."""

    def __init__(
        self, source: IterableDataset, fn: Callable[[Any], Any], key: int | str | None = None
    ) -> None:
        super().__init__(source)
        check_callable("map", "fn", fn)
        self._fn, self._key = fn, check_key(key)

    def __iter__(self) -> Iterator[Any]:
        return (applied(self._fn, item, self._key) for item in self._source)

    def select(self, keep: Keep) -> Iterator[Any]:
        """Yield the items at the places that `keep` names, computing no others."""
        return (applied(self._fn, item, self._key) for item in self._source.select(keep))


class FilteredStream(_Stage):
    """The items that satisfy a predicate."""

    def __init__(self, source: IterableDataset, predicate: Callable[[Any], Any]) -> None:
        super().__init__(source)
        check_callable("filter", "predicate", predicate)
        self._predicate = predicate

    def __iter__(self) -> Iterator[Any]:
        return (item for item in self._source if self._predicate(item))


class BatchedStream(_Stage):
    """Lists of successive items."""

    def __init__(self, source: IterableDataset, size: int, drop_last: bool = False) -> None:
        super().__init__(source)
        self._size, self._drop_last = as_count("batch", "size", size), drop_last

    def __iter__(self) -> Iterator[list[Any]]:
        items = iter(self._source)
        while batch := list(islice(items, self._size)):
            if len(batch) == self._size or not self._drop_last:
                yield batch


class ShuffledStream(_Stage):
    """Items in the order in which they are drawn from a buffer."""

    def __init__(self, source: IterableDataset, buffer_size: int) -> None:
        super().__init__(source)
        self._size = as_count("shuffle", "buffer_size", buffer_size)

    def __iter__(self) -> Iterator[Any]:
        generator = stage_generator()
        items = iter(self._source)
        buffer = list(islice(items, self._size))
        for item in items:
            place = integer(0, len(buffer), generator=generator)
            yield buffer[place]
            buffer[place] = item
        while buffer:
            place = integer(0, len(buffer), generator=generator)
            buffer[place], buffer[-1] = buffer[-1], buffer[place]
            yield buffer.pop()


class SlicedStream(_Stage):
    """The items from one place to another."""

    def __init__(self, source: IterableDataset, start: int, stop: int | None) -> None:
        super().__init__(source)
        self._start, self._stop = start, stop

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self._source), self._start, self._stop)


class RepeatedStream(_Stage):
    """A stream again and again."""

    def __init__(self, source: IterableDataset, times: int | None = None) -> None:
        super().__init__(source)
        self._times = None if times is None else as_count("repeat", "times", times, 0)

    def __iter__(self) -> Iterator[Any]:
        rounds = count() if self._times is None else range(self._times)
        for _ in rounds:
            empty = True
            for item in self._source:
                empty = False
                yield item
            if empty:  # for ever nothing would never return
                return


class ChainedStream(IterableDataset):
    """One stream after another."""

    def __init__(self, *sources: IterableDataset) -> None:
        self._sources = tuple(checked_stream(source) for source in sources)
        self.shards_itself = _common_sharding(self._sources)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._sources)


class ZippedStream(IterableDataset):
    """Tuples of the items of several streams."""

    def __init__(self, *sources: Iterable[Any]) -> None:
        self._sources = sources
        self.shards_itself = _common_sharding(sources)

    def __iter__(self) -> Iterator[Any]:
        return zip(*self._sources, strict=False)


def checked_stream(source: Any) -> IterableDataset:
    """Return a stream, or say that it is none."""
    if isinstance(source, IterableDataset):
        return source
    raise ArgumentTypeError(
        "expected an IterableDataset (dataset.stream() makes one of a Dataset). "
        f"Received: {type(source).__name__}"
    )


def _common_sharding(sources: Iterable[Any]) -> bool:
    answers = {bool(getattr(source, "shards_itself", False)) for source in sources}
    if len(answers) > 1:
        raise ArgumentTypeError(
            "streams that shard themselves (shards_itself) cannot be joined with streams that "
            "do not: the workers would see different parts of them"
        )
    return answers.pop() if answers else False


# -- prefetching -------------------------------------------------------------------------------


class PrefetchedStream(_Stage):
    """Items made ahead of time by a thread, at most `buffer_size` of them."""

    def __init__(self, source: IterableDataset, buffer_size: int = 2) -> None:
        super().__init__(source)
        self._size = as_count("prefetch", "buffer_size", buffer_size)

    def __iter__(self) -> Iterator[Any]:
        generator = stage_generator()
        ahead = _Ahead(self._source, Streams(generator, generator.fork(0)), self._size)
        try:
            yield from ahead.results()
        finally:
            ahead.stop()


class _Ahead:
    """A thread that fills a bounded queue with the items of a stream.

    The thread has streams of its own, in which items are counted from 0, so that how far it has
    run ahead does not show in the random numbers.
    """

    _END = object()
    _POLL_SECONDS = 0.1  # how soon a full thread notices that nobody reads any more
    _GRACE_SECONDS = 1.0  # user code that blocks must not block whoever stops reading

    def __init__(self, source: IterableDataset, streams: Streams, size: int) -> None:
        self._queue: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(size)
        self._stopped = threading.Event()
        self._owner = os.getpid()
        arguments = (source, streams, worker_info())
        self._thread = threading.Thread(target=self._run, args=arguments, daemon=True)
        self._thread.start()

    def results(self) -> Iterator[Any]:
        """Yield what the thread made; raise what it raised."""
        while True:
            self._check_owner()
            item, error = self._queue.get()
            if error is not None:
                raise error
            if item is self._END:
                return
            yield item

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise WorkerError(
                "prefetch: this iteration was begun before a fork, and the thread that makes its "
                "items does not exist in the new process; iterate over the dataset again there"
            )

    def stop(self) -> None:
        """Tell the thread to end; it does so once it has left the user's code."""
        self._stopped.set()
        self._thread.join(timeout=self._GRACE_SECONDS)

    def _run(self, source: IterableDataset, streams: Streams, worker: Any) -> None:
        set_worker(worker)
        try:
            with using(streams):
                for item in source.select(lambda place: True):
                    if not self._put(item, None):
                        return
            self._put(self._END, None)
        except BaseException as error:
            self._put(None, error)

    def _put(self, item: Any, error: BaseException | None) -> bool:
        while not self._stopped.is_set():
            try:
                self._queue.put((item, error), timeout=self._POLL_SECONDS)
                return True
            except queue.Full:
                continue
        return False
