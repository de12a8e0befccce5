"""Making one batch: the same code in the main process and in workers.

A `Job` says which batch of which epoch; a fetcher makes it from the dataset. Everything that is
random in it comes from streams that are functions of the loader's seed and the job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple

import numpy as np

from ..core.rng import Generator
from ..core.tensor import wrap
from ..core.tree import flatten
from .collate import default_collate
from .dataset import batch_taker
from .iterable import IterableDataset
from .sampler import Indices, as_list
from .streams import BATCHES, ITEMS, SHARDS, Array, Streams, using
from .tensors import TensorDataset


class _End:
    """The answer of a stream that has no more batches; one object, also across processes."""

    def __reduce__(self) -> str:
        return "END"


END: Final = _End()


@dataclass(frozen=True)
class Recipe:
    """All that is needed to make batches; it is sent to each worker once."""

    dataset: Any
    batch_size: int | None  # None: single items
    drop_last: bool
    collate: Callable[[Any], Any] | None
    transform: Callable[[Any], Any] | None
    seed: int

    @property
    def is_stream(self) -> bool:
        """Tell whether the dataset is iterated rather than indexed."""
        return isinstance(self.dataset, IterableDataset)

    @property
    def batch_taker(self) -> Callable[[Any], Any] | None:
        """Return how the dataset gives whole batches, if it can and nobody collates items."""
        collates = self.collate is None and self.batch_size is not None and not self.is_stream
        return batch_taker(self.dataset) if collates else None


class Job(NamedTuple):
    """One batch: the `number`-th of an epoch, in the `iteration`-th walk through the loader.

    `place` is the place in the epoch of the batch's first item and `indices` are the items, None
    for a stream.
    """

    iteration: int
    epoch: int
    number: int
    place: int = 0
    indices: Indices | None = None

    @property
    def items(self) -> list[Any] | None:
        """Return the indices of the items as a list of numbers, None for a stream."""
        return None if self.indices is None else as_list(self.indices)


class Fetcher:
    """Makes the batches of one loader, in the main process or as worker `id` of `workers`."""

    def __init__(self, recipe: Recipe, worker_id: int = 0, workers: int = 1) -> None:
        self._recipe = recipe
        self._id, self._workers = worker_id, workers
        self._take = recipe.batch_taker
        self._draws = type(recipe.dataset) is not TensorDataset  # whose rows are copies
        self._is_stream = recipe.is_stream
        self._epoch: int | None = None
        self._iteration: int | None = None
        self._items: Streams
        self._batches: Streams
        self._stream: Iterator[Any] = iter(())

    def fetch(self, job: Job) -> Any:
        """Return the batch of a job, or END."""
        if job.epoch != self._epoch:
            self._enter_epoch(job.epoch)
        if self._is_stream:
            return self._next_of_stream(job)
        if self._take is not None:
            batch = self._taken(job)
            if batch is not None:
                return batch if self._recipe.transform is None else self._finished(batch, job)
        return self._collated(self._fetched(job), job)

    def batch_generator(self, job: Job) -> Generator:
        """Return a generator that belongs to one batch."""
        self._enter_epoch(job.epoch)
        self._batches.enter_item(job.number)
        return self._batches.generator()

    # -- the parts of a batch ----------------------------------------------------------------

    def _enter_epoch(self, epoch: int) -> None:
        if epoch == self._epoch:
            return
        generator = epoch_generator(self._recipe.seed, epoch)
        if self._shards_itself:
            generator = generator.fork(SHARDS + self._id)
        self._epoch = epoch
        self._items = Streams(generator, generator.fork(ITEMS))
        self._batches = Streams(generator, generator.fork(BATCHES))

    def _fetched(self, job: Job) -> list[Any]:
        indices = job.items
        assert indices is not None
        items = []
        with using(self._items):
            for offset, index in enumerate(indices):
                self._items.enter_item(job.place + offset)
                try:
                    items.append(self._recipe.dataset[index])
                except Exception as error:
                    raise _noted(error, f"item {index!r}", job) from error.__cause__
        return items

    def _taken(self, job: Job) -> Any:
        assert self._take is not None
        assert job.indices is not None
        try:
            if not self._draws:
                return self._take(job.indices)
            with using(self._items):
                self._items.enter_item(job.place)
                return self._take(_as_array(job.indices))
        except Exception as error:
            raise _noted(error, f"the items {job.items!r:.60}", job) from error.__cause__

    def _collated(self, items: list[Any], job: Job) -> Any:
        recipe = self._recipe
        if recipe.batch_size is None:
            return self._finished((recipe.collate or as_tensors)(items[0]), job)
        self._batches.enter_item(job.number)
        with using(self._batches):
            try:
                batch = (recipe.collate or default_collate)(items)
            except Exception as error:
                raise _noted(error, "the collation", job) from error.__cause__
        return self._finished(batch, job)

    def _finished(self, batch: Any, job: Job) -> Any:
        if self._recipe.transform is None:
            return batch
        self._batches.enter_item(job.number)
        with using(self._batches):
            try:
                return self._recipe.transform(batch)
            except Exception as error:
                raise _noted(error, "the batch transform", job) from error.__cause__

    # -- streams -----------------------------------------------------------------------------

    @property
    def _shards_itself(self) -> bool:
        return self._is_stream and self._recipe.dataset.shards_itself and self._workers > 1

    def _next_of_stream(self, job: Job) -> Any:
        size = self._recipe.batch_size or 1
        with using(self._items):
            try:
                if job.iteration != self._iteration:
                    self._open_stream(job, size)
                items = list(islice(self._stream, size))
            except Exception as error:
                raise _noted(error, f"item {self._items.place} of the stream", job) from (
                    error.__cause__
                )
        if not items or (len(items) < size and self._recipe.drop_last):
            return END
        return self._collated(items, job)

    def _open_stream(self, job: Job, size: int) -> None:
        """Begin at the job's batch; of the later ones, keep those that fall to this worker."""
        first, own = job.number, self._id
        workers = 1 if self._shards_itself else self._workers

        def keep(place: int) -> bool:
            number = place // size
            return number >= first and (workers == 1 or number % workers == own)

        self._items.restart()
        self._stream = self._recipe.dataset.select(keep)
        self._iteration = job.iteration


def _as_array(indices: Indices) -> Array:
    if isinstance(indices, range):
        return np.arange(indices.start, indices.stop, indices.step)
    return np.asarray(indices)


def epoch_generator(seed: int, epoch: int) -> Generator:
    """Return the generator from which everything random in an epoch is forked."""
    return Generator(seed).fork(epoch)


def as_tensors(item: Any) -> Any:
    """Return an item with its arrays and NumPy numbers as tensors."""
    leaves, structure = flatten(item)
    return structure.unflatten(
        wrap(np.asarray(leaf)) if isinstance(leaf, np.ndarray | np.number | np.bool_) else leaf
        for leaf in leaves
    )


def _noted(error: Exception, what: str, job: Job) -> Exception:
    """Return the error with a note that says where it came from."""
    if isinstance(error, StopIteration):  # out of __next__ it would end the epoch silently
        error = RuntimeError(f"the dataset raised StopIteration: {error}")
    error.add_note(f"while making {what} (batch {job.number} of epoch {job.epoch})")
    return error
