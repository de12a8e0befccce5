"""`chainer.iterators`: batches of examples, epoch after epoch."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

from .dataset import Iterator


class ShuffleOrderSampler:
    """A new random order for each epoch."""

    def __init__(self, random_state: Any = None) -> None:
        self._random: Any = np.random if random_state is None else random_state

    def __call__(self, current_order: Any, current_position: int) -> Any:
        """Return the order of an epoch."""
        return self._random.permutation(len(current_order))


class SerialIterator(Iterator):
    """Batches made one after another, by default in a new order in each epoch."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: Any = None,
        order_sampler: Any = None,
    ) -> None:
        if isinstance(batch_size, bool) or int(batch_size) != batch_size or batch_size < 1:
            raise ValueError(f"batch_size must be a positive integer. Received: {batch_size!r}")
        self.dataset, self.batch_size, self._repeat = dataset, batch_size, repeat
        self._shuffle = (True if shuffle is None else shuffle) if order_sampler is None else True
        self.order_sampler = order_sampler or (ShuffleOrderSampler() if self._shuffle else None)
        self.reset()

    def reset(self) -> None:
        """Begin again."""
        self.current_position, self.epoch, self.is_new_epoch = 0, 0, False
        self._previous = Fraction(-1)
        self._order = None
        if self.order_sampler is not None:
            self._order = self.order_sampler(np.arange(len(self.dataset)), 0)

    @property
    def _epoch_size(self) -> int:
        return len(self.dataset) if self._order is None else len(self._order)

    @property
    def position(self) -> Fraction:
        """The number of epochs, exactly."""
        return self.epoch + Fraction(self.current_position, max(self._epoch_size, 1))

    @property
    def epoch_detail(self) -> float:
        """The number of epochs with its fraction."""
        return float(self.position)

    @property
    def previous_epoch_detail(self) -> float | None:
        """The number of epochs before the last batch, or None before the first."""
        return None if self._previous < 0 else float(self._previous)

    @property
    def repeat(self) -> bool:
        """Whether epochs follow one another without end."""
        return self._repeat

    def __next__(self) -> list[Any]:
        if not self._repeat and self.epoch > 0:
            raise StopIteration
        self._previous = self.position
        size = self._epoch_size
        if size == 0:
            raise StopIteration
        begin, end = self.current_position, self.current_position + self.batch_size
        numbers = self._taken(begin, min(end, size))
        self.is_new_epoch = end >= size
        if end >= size:
            rest = end - size
            self.epoch += 1
            if self.order_sampler is not None and self._repeat:
                self._order = self.order_sampler(self._order, begin)
            numbers = numbers + (self._taken(0, rest) if self._repeat and rest else [])
            self.current_position = rest if self._repeat else 0
        else:
            self.current_position = end
        return self._read(numbers)

    def _taken(self, begin: int, end: int) -> list[int]:
        return (
            list(range(begin, end))
            if self._order is None
            else [int(i) for i in self._order[begin:end]]
        )

    def _read(self, numbers: list[int]) -> list[Any]:
        return [self.dataset[i] for i in numbers]

    def serialize(self, serializer: Any) -> None:
        """Write position and order to a serializer, or read them from one."""
        self.current_position = int(serializer("current_position", self.current_position))
        self.epoch = int(serializer("epoch", self.epoch))
        self.is_new_epoch = bool(serializer("is_new_epoch", self.is_new_epoch))
        if self._order is not None:
            self._order = np.asarray(serializer("order", np.asarray(self._order)))
        previous = serializer("previous_epoch_detail", float(self._previous))
        self._previous = Fraction(float(previous)).limit_denominator(max(self._epoch_size, 1))

    def __copy__(self) -> SerialIterator:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made


class MultithreadIterator(SerialIterator):
    """Batches whose examples are read by several threads."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: Any = None,
        n_threads: int = 1,
        order_sampler: Any = None,
    ) -> None:
        self._pool = ThreadPoolExecutor(n_threads)
        super().__init__(dataset, batch_size, repeat, shuffle, order_sampler)

    def _read(self, numbers: list[int]) -> list[Any]:
        futures: list[Future[Any]] = [
            self._pool.submit(self.dataset.__getitem__, i) for i in numbers
        ]
        return [future.result() for future in futures]

    def finalize(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=False)


class MultiprocessIterator(MultithreadIterator):
    """Batches as Chainer's processes make them; here threads do, in the same order."""

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        repeat: bool = True,
        shuffle: Any = None,
        n_processes: int | None = None,
        n_prefetch: int = 1,
        shared_mem: Any = None,
        order_sampler: Any = None,
        **_: Any,
    ) -> None:
        super().__init__(dataset, batch_size, repeat, shuffle, n_processes or 1, order_sampler)
