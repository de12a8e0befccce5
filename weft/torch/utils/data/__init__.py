"""torch.utils.data: datasets, samplers and loaders, with PyTorch's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .... import data as core_data
from ....core import tensor as core
from ....core.errors import WeftError
from ....core.rng import Generator
from ....data.collate import collate_tree, stack_leaves
from ....data.dataset import batch_taker
from ....ops.random.draw import randint, randperm
from ...absent import absent
from ...adoption import adopt
from ...phrasing import phrase, phrased

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "get_worker_info",
    "random_split",
]

Sampler = core_data.Sampler


class Dataset(core_data.Dataset):
    """Items by their index: subclasses define `__getitem__`, and `__len__` where there is one."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Any) -> Any:
        return ConcatDataset([self, other])


class IterableDataset(core_data.IterableDataset):
    """Items one after the other: subclasses define `__iter__`."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class TensorDataset(Dataset):
    """Items that are the rows of tensors of one length."""

    def __init__(self, *tensors: Any) -> None:
        if any(len(x) != len(tensors[0]) for x in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __len__(self) -> int:
        return len(self.tensors[0])

    def __getitem__(self, index: Any) -> Any:
        return tuple(x[index] for x in self.tensors)

    def take_batch(self, indices: Any) -> Any:
        """Return the rows at `indices` as a batch, those of each tensor in one go."""
        places, length = np.asarray(indices), len(self)
        inside = places.dtype.kind in "iu" and bool(((-length <= places) & (places < length)).all())
        if not inside or not all(map(_is_plain, self.tensors)):
            return _collated([self[i] for i in indices])
        return [core.wrap(x._value.take(places, axis=0)) for x in self.tensors]


def _is_plain(x: Any) -> bool:
    """Tell whether something is a tensor in the memory of the machine."""
    return isinstance(x, core.Tensor) and type(x._value) is np.ndarray


class StackDataset(Dataset):
    """Items that are those of several datasets together."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.datasets: Any = args or kwargs

    def __len__(self) -> int:
        parts = self.datasets.values() if isinstance(self.datasets, dict) else self.datasets
        return len(next(iter(parts)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: part[index] for name, part in self.datasets.items()}
        return tuple(part[index] for part in self.datasets)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        self.cumulative_sizes = np.cumsum([len(d) for d in self.datasets]).tolist()

    def __len__(self) -> int:
        return int(self.cumulative_sizes[-1])

    def __getitem__(self, index: Any) -> Any:
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise ValueError("absolute value of index should not exceed dataset length")
        which = int(np.searchsorted(self.cumulative_sizes, number, "right"))
        return self.datasets[which][number - ([0, *self.cumulative_sizes][which])]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            yield from dataset


class Subset(Dataset):
    """Some items of a dataset, by their indices."""

    def __init__(self, dataset: Any, indices: Any) -> None:
        self.dataset, self.indices = dataset, indices

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]


def random_split(dataset: Any, lengths: Any, generator: Any = None) -> list[Any]:
    """Return a dataset as random parts of given lengths, or of given fractions."""
    sizes = _sizes(len(dataset), list(lengths))
    order = np.asarray(_permutation(len(dataset), generator)).tolist()
    stops = np.cumsum(sizes).tolist()
    return [Subset(dataset, order[s - n : s]) for s, n in zip(stops, sizes, strict=True)]


def _sizes(total: int, lengths: list[Any]) -> list[int]:
    if all(isinstance(n, float) for n in lengths) and abs(sum(lengths) - 1) < 1e-6:
        sizes = [int(total * n) for n in lengths]
        for i in range(total - sum(sizes)):
            sizes[i % len(sizes)] += 1
        return sizes
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    return [int(n) for n in lengths]


def _permutation(count: int, generator: Any) -> Any:
    return randperm(count, generator=generator)._value


class SequentialSampler(core_data.SequentialSampler):
    """Indices in their order."""

    def __init__(self, data_source: Any) -> None:
        super().__init__(data_source)


class RandomSampler(core_data.RandomSampler):
    """Indices in random order."""

    def __init__(
        self,
        data_source: Any,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Any = None,
    ) -> None:
        _check_count(len(data_source) if num_samples is None else num_samples)
        super().__init__(
            data_source, replacement=replacement, num_samples=num_samples, seed=seed_of(generator)
        )


def _check_count(count: Any) -> None:
    """Raise unless something is drawn."""
    if not isinstance(count, int) or count <= 0:
        raise ValueError(
            f"num_samples should be a positive integer value, but got num_samples={count}"
        )


class SubsetRandomSampler(core_data.SubsetRandomSampler):
    """Given indices in random order."""

    def __init__(self, indices: Any, generator: Any = None) -> None:
        super().__init__(indices, seed=seed_of(generator))


class WeightedRandomSampler(core_data.WeightedRandomSampler):
    """Indices drawn by weights."""

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Any = None
    ) -> None:
        _check_count(num_samples)
        given = weights._read() if isinstance(weights, core.Tensor) else weights
        super().__init__(given, num_samples, replacement=replacement, seed=seed_of(generator))


class BatchSampler(core_data.BatchSampler):
    """Lists of indices, of a size."""

    @phrased
    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        super().__init__(sampler, batch_size, drop_last=drop_last)


def seed_of(generator: Any) -> int | None:
    """Return a seed that a generator gives; None where there is none."""
    if generator is None:
        return None
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type(generator).__name__}")
    return int(randint(0, 2**31, (), generator=generator)._value)


@phrased
def default_collate(batch: Any) -> Any:
    """Return a list of items as a batch of tensors: tuples become lists, floats have 64 bits."""
    return adopt(_collated(batch))


def _collated(items: Any) -> Any:
    """Return items as a batch of Weft's tensors, which processes can hand on."""
    return _as_lists(collate_tree(items, _column))


def _column(leaves: list[Any], path: str) -> Any:
    if isinstance(leaves[0], float) and all(isinstance(x, (float, int)) for x in leaves):
        return core.wrap(np.array(leaves, np.float64))
    return stack_leaves(leaves, path)


def _as_lists(batch: Any) -> Any:
    """Return a batch in which tuples are lists, as PyTorch has them; named tuples stay."""
    if type(batch) in (tuple, list):
        return [_as_lists(part) for part in batch]
    if type(batch) is dict:
        return {name: _as_lists(part) for name, part in batch.items()}
    return batch


def default_convert(data: Any) -> Any:
    """Return arrays as tensors, and other things as they are."""
    if isinstance(data, np.ndarray) and data.dtype.kind in "biuf":
        return adopt(core.wrap(data))
    return data


def get_worker_info() -> Any:
    """Return what a worker process knows of itself; None in the main process."""
    return core_data.worker_info()


class DataLoader(core_data.DataLoader):
    """Iterate over a dataset in batches; each `iter(loader)` is one epoch."""

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    @phrased
    def __init__(  # noqa: PLR0913, PLR0917  (PyTorch's arguments)
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Any = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Any = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing.let "
                "num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
            )
        if shuffle and sampler is None and batch_sampler is None and hasattr(dataset, "__len__"):
            _check_count(len(dataset))
        self._lists = collate_fn is None
        if collate_fn is None and batch_size is not None and batch_taker(dataset) is None:
            collate_fn = _collated
        options: dict[str, Any] = (
            {} if prefetch_factor is None else {"prefetch_factor": prefetch_factor}
        )
        super().__init__(
            dataset,
            batch_size,
            bool(shuffle),
            sampler,
            num_workers,
            collate_fn,
            drop_last,
            seed_of(generator),
            batch_sampler=batch_sampler,
            timeout=timeout,
            worker_init_fn=worker_init_fn,
            multiprocessing_context=multiprocessing_context,
            persistent_workers=persistent_workers,
            **options,
        )

    def __iter__(self) -> Iterator[Any]:
        loaded = _batches(super().__iter__())
        return map(adopt, map(_as_lists, loaded) if self._lists else loaded)


def _batches(loaded: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; what cannot be put into one is refused in PyTorch's words."""
    try:
        yield from loaded
    except WeftError as error:
        raise phrase(error, "default_collate", {}) from None


__getattr__ = absent(globals(), {})
