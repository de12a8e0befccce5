"""`chainer.dataset`: datasets, and how examples become batches."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from . import convert
from .convert import ConcatWithAsyncTransfer, concat_examples, converter, to_device

__all__ = [
    "ConcatWithAsyncTransfer",
    "DatasetMixin",
    "Iterator",
    "cached_download",
    "concat_examples",
    "convert",
    "converter",
    "get_dataset_directory",
    "get_dataset_root",
    "set_dataset_root",
    "to_device",
]

_ROOT = {"path": os.environ.get("CHAINER_DATASET_ROOT", os.path.join("~", ".chainer", "dataset"))}


class DatasetMixin:
    """Indexing by numbers, slices and lists, for classes with `get_example(i)` and `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self.get_example(i) for i in range(*index.indices(len(self)))]
        if isinstance(index, (list, np.ndarray)):
            return [self.get_example(int(i)) for i in index]
        return self.get_example(index)

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} defines no __len__()")

    def get_example(self, i: int) -> Any:
        """Return the i-th example; subclasses define it."""
        raise NotImplementedError(f"{type(self).__name__} defines no get_example(i)")


class Iterator:
    """Base of iterators over batches."""

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        raise NotImplementedError

    def next(self) -> Any:
        """Return the next batch."""
        return self.__next__()

    def finalize(self) -> None:
        """Release what was opened."""

    def serialize(self, serializer: Any) -> None:
        """Write the position to a serializer, or read it from one."""

    def __enter__(self) -> Iterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.finalize()


def get_dataset_root() -> str:
    """Return the folder of data files."""
    return os.path.expanduser(_ROOT["path"])


def set_dataset_root(path: str) -> None:
    """Use another folder of data files."""
    _ROOT["path"] = os.fspath(path)


def get_dataset_directory(dataset_name: str, create_directory: bool = True) -> str:
    """Return the folder of a dataset's files."""
    folder = os.path.join(get_dataset_root(), dataset_name)
    if create_directory:
        os.makedirs(folder, exist_ok=True)
    return folder


def cached_download(url: str) -> str:
    """Refuse: nothing is downloaded."""
    raise RuntimeError(
        f"Weft downloads nothing. Received: {url}; put the file into {get_dataset_root()}"
    )
