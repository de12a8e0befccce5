"""Which items make up which batch: the order of one epoch, as a DataLoader sees it.

Weft's samplers are functions of the seed and the epoch, so their order is never stored. Any other
iterable of indices may give another order each time; its order is kept as part of the loader's
position, and so is its state if it has `state_dict` and `load_state_dict`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from itertools import chain
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.rng import Generator
from .sampler import BatchSampler, Indices, RandomSampler, Sampler, SequentialSampler, as_list

Batches = Iterator[Indices]


class BatchOrder:
    """A batch sampler, of Weft or foreign, and how to read an epoch from it."""

    def __init__(self, batch_sampler: Any) -> None:
        self._sampler = batch_sampler
        self._repeatable = is_repeatable(batch_sampler)

    @classmethod
    def of_items(
        cls, dataset: Any, sampler: Any, shuffle: bool, batch_size: int, drop_last: bool
    ) -> BatchOrder:
        """Group the indices of a sampler, or all indices, into batches."""
        if sampler is None:
            sampler = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
        return cls(BatchSampler(_checked("sampler", sampler), batch_size, drop_last=drop_last))

    @classmethod
    def of_batches(cls, batch_sampler: Any) -> BatchOrder:
        """Take batches as they are."""
        return cls(_checked("batch_sampler", batch_sampler))

    def state_dict(self) -> Any:
        """Return the state of a foreign sampler that has one."""
        inner = self._stateful()
        return None if inner is None else inner.state_dict()

    def load_state_dict(self, state: Any) -> None:
        """Give a foreign sampler its state back."""
        inner = self._stateful()
        if inner is not None and state is not None:
            inner.load_state_dict(state)

    def _stateful(self) -> Any:
        sampler = self._sampler
        inner = sampler.sampler if isinstance(sampler, BatchSampler) else sampler
        known = hasattr(inner, "state_dict") and hasattr(inner, "load_state_dict")
        return inner if known and not self._repeatable else None

    def __len__(self) -> int:
        try:
            return len(self._sampler)
        except TypeError:
            raise ArgumentTypeError(
                "the DataLoader has no length, as its sampler has none: give the sampler __len__"
            ) from None

    def batches(self, generator: Generator, epoch: int, saved: Any) -> tuple[Batches, Any]:
        """Return the batches of an epoch, and what must be saved to have them again."""
        if type(self._sampler) is BatchSampler and self._repeatable:
            return self._sampler.runs(generator, epoch), None
        if self._repeatable:
            return _as_lists(self._sampler.order(generator, epoch)), None
        if saved is not None:
            return _joined(saved), saved
        source = _foreign(self._sampler, generator, epoch)
        if not isinstance(self._sampler, Sized) or not _has_length(self._sampler):
            return _as_lists(source), None  # perhaps endless
        order = _split(list(_as_lists(source)))
        return _joined(order), order


def is_repeatable(sampler: Any) -> bool:
    """Tell whether a sampler gives the same order for the same generator and epoch."""
    if not isinstance(sampler, Sampler) or type(sampler).order is Sampler.order:
        return False
    return not isinstance(sampler, BatchSampler) or is_repeatable(sampler.sampler)


def _foreign(sampler: Any, generator: Generator, epoch: int) -> Iterable[Any]:
    """Return an epoch of a sampler that follows its own rules."""
    if isinstance(sampler, BatchSampler):
        _tell_epoch(sampler.sampler, epoch)
        return sampler.order(generator, epoch)
    _tell_epoch(sampler, epoch)
    order: Iterable[Any] = iter(sampler)
    return order


def _tell_epoch(sampler: Any, epoch: int) -> None:
    if hasattr(sampler, "set_epoch"):
        sampler.set_epoch(epoch)


def _as_lists(batches: Iterable[Any]) -> Iterator[list[Any]]:
    return map(as_list, batches)


def _split(batches: list[list[Any]]) -> dict[str, Any]:
    """Return batches as one array of indices and the sizes, which a checkpoint stores compactly."""
    flat = list(chain.from_iterable(batches))
    whole = all(isinstance(index, int | np.integer) for index in flat)
    return {
        "indices": np.array(flat, np.int64) if whole else flat,
        "sizes": np.array([len(batch) for batch in batches], np.int64),
    }


def _joined(order: Any) -> Batches:
    indices = order["indices"]
    flat = indices.tolist() if hasattr(indices, "tolist") else list(indices)
    start = 0
    for size in np.asarray(order["sizes"]).tolist():
        yield flat[start : start + size]
        start += size


def _has_length(sampler: Any) -> bool:
    try:
        len(sampler)
    except TypeError:
        return False
    return True


def _checked(name: str, sampler: Any) -> Any:
    if isinstance(sampler, Iterable) and not isinstance(sampler, Iterator):
        return sampler
    hint = " (an iterator lasts for one epoch only)" if isinstance(sampler, Iterator) else ""
    raise ArgumentTypeError(
        f"DataLoader: {name} must be a Sampler or an iterable of indices{hint}. "
        f"Received: {type(sampler).__name__}"
    )
