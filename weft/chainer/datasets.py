"""`chainer.datasets`: datasets made of others, and readers of local files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.imports import require
from ..data import load_mnist
from .dataset import DatasetMixin, get_dataset_directory


class TupleDataset:
    """Examples as tuples of the elements of several sequences."""

    def __init__(self, *datasets: Any) -> None:
        if not datasets:
            raise ValueError("no datasets are given")
        lengths = [len(d) for d in datasets]
        if len(set(lengths)) > 1:
            raise ValueError(f"dataset lengths do not match: {lengths}")
        self._datasets, self._length = datasets, lengths[0]

    def __getitem__(self, index: Any) -> Any:
        parts = [d[index] for d in self._datasets]
        if isinstance(index, (slice, list, np.ndarray)):
            return list(zip(*parts, strict=True))
        return tuple(parts)

    def __len__(self) -> int:
        return self._length


class DictDataset:
    """Examples as dictionaries of the elements of several sequences."""

    def __init__(self, **datasets: Any) -> None:
        if not datasets:
            raise ValueError("no datasets are given")
        if len({len(d) for d in datasets.values()}) > 1:
            raise ValueError("dataset lengths do not match")
        self._datasets = datasets

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return {key: d[index] for key, d in self._datasets.items()}

    def __len__(self) -> int:
        return len(next(iter(self._datasets.values())))


class SubDataset(DatasetMixin):
    """A part of a dataset, in another order if one is given."""

    def __init__(self, dataset: Any, start: int, finish: int, order: Any = None) -> None:
        if start < 0 or finish > len(dataset) or start > finish:
            raise ValueError(
                f"subset overruns the base dataset: {start} to {finish} of {len(dataset)}"
            )
        self._dataset, self._start, self._size, self._order = dataset, start, finish - start, order

    def __len__(self) -> int:
        return self._size

    def get_example(self, i: int) -> Any:
        """Return the i-th example of the part."""
        i = i + self._size if i < 0 else i
        if not 0 <= i < self._size:
            raise IndexError("dataset index out of range")
        index = self._start + i
        return self._dataset[index if self._order is None else int(self._order[index])]


class ConcatenatedDataset(DatasetMixin):
    """Datasets one after another."""

    def __init__(self, *datasets: Any) -> None:
        self._datasets = datasets

    def __len__(self) -> int:
        return sum(len(d) for d in self._datasets)

    def get_example(self, i: int) -> Any:
        """Return the i-th example of all."""
        i = i + len(self) if i < 0 else i
        for dataset in self._datasets:
            if 0 <= i < len(dataset):
                return dataset[i]
            i -= len(dataset)
        raise IndexError("dataset index out of range")


class TransformDataset(DatasetMixin):
    """A dataset whose examples go through a function."""

    def __init__(self, dataset: Any, *args: Any) -> None:
        self._dataset = dataset
        self._transform: Callable[[Any], Any] = args[-1]

    def __len__(self) -> int:
        return len(self._dataset)

    def get_example(self, i: int) -> Any:
        """Return the i-th example, transformed."""
        return self._transform(self._dataset[i])


class ImageDataset(DatasetMixin):
    """Image files as float32 arrays (channels, height, width)."""

    def __init__(self, paths: Any, root: str = ".", dtype: Any = None) -> None:
        self._paths, self._root, self._dtype = _lines(paths), root, dtype or np.float32

    def __len__(self) -> int:
        return len(self._paths)

    def get_example(self, i: int) -> Any:
        """Return the i-th image."""
        return _image(os.path.join(self._root, self._paths[i]), self._dtype)


class LabeledImageDataset(DatasetMixin):
    """Pairs of image files and labels, from a list or a text file with a pair in each line."""

    def __init__(
        self, pairs: Any, root: str = ".", dtype: Any = None, label_dtype: Any = np.int32
    ) -> None:
        if isinstance(pairs, (str, os.PathLike)):
            split = [line.rsplit(maxsplit=1) for line in _lines(pairs)]
            pairs = [(path, int(label)) for path, label in split]
        self._pairs, self._root = pairs, root
        self._dtype, self._label_dtype = dtype or np.float32, label_dtype

    def __len__(self) -> int:
        return len(self._pairs)

    def get_example(self, i: int) -> Any:
        """Return the i-th image and its label."""
        path, label = self._pairs[i]
        return _image(os.path.join(self._root, path), self._dtype), np.array(
            label, self._label_dtype
        )


def _lines(paths: Any) -> list[str]:
    if not isinstance(paths, (str, os.PathLike)):
        return list(paths)
    with open(paths, encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def _image(path: str, dtype: Any) -> Any:
    with require("PIL.Image", "image", "an image file").open(path) as opened:
        array = np.asarray(opened, dtype)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def split_dataset(dataset: Any, split_at: int, order: Any = None) -> tuple[SubDataset, SubDataset]:
    """Return the examples before a place and those from it on."""
    size = len(dataset)
    if not 0 <= split_at <= size:
        raise ValueError(f"split_at must be between 0 and {size}. Received: {split_at}")
    return SubDataset(dataset, 0, split_at, order), SubDataset(dataset, split_at, size, order)


def split_dataset_random(
    dataset: Any, first_size: int, seed: int | None = None
) -> tuple[SubDataset, SubDataset]:
    """Return two parts of a dataset in a random order."""
    return split_dataset(dataset, first_size, np.random.RandomState(seed).permutation(len(dataset)))


def split_dataset_n(dataset: Any, n: int, order: Any = None) -> list[SubDataset]:
    """Return n parts of equal size; what is left over is left out."""
    size = len(dataset) // n
    return [SubDataset(dataset, i * size, (i + 1) * size, order) for i in range(n)]


def split_dataset_n_random(dataset: Any, n: int, seed: int | None = None) -> list[SubDataset]:
    """Return n parts of equal size in a random order."""
    return split_dataset_n(dataset, n, np.random.RandomState(seed).permutation(len(dataset)))


def get_cross_validation_datasets(
    dataset: Any, n_folds: int, order: Any = None
) -> list[tuple[Any, Any]]:
    """Return pairs of training and test parts, each part the test part once."""
    order = np.arange(len(dataset)) if order is None else np.asarray(order)
    folds = np.array_split(order, n_folds)
    pairs = []
    for i, fold in enumerate(folds):
        rest = np.concatenate([f for j, f in enumerate(folds) if j != i])
        pairs.append(
            (SubDataset(dataset, 0, len(rest), rest), SubDataset(dataset, 0, len(fold), fold))
        )
    return pairs


def get_cross_validation_datasets_random(
    dataset: Any, n_folds: int, seed: int | None = None
) -> list[tuple[Any, Any]]:
    """Return pairs of training and test parts of a random order."""
    return get_cross_validation_datasets(
        dataset, n_folds, np.random.RandomState(seed).permutation(len(dataset))
    )


def get_mnist(
    withlabel: bool = True,
    ndim: int = 1,
    scale: float = 1.0,
    dtype: Any = None,
    label_dtype: Any = np.int32,
    rgb_format: bool = False,
) -> tuple[Any, Any]:
    """Return MNIST's training and test sets from its IDX files in the dataset folder.

    The folder is pfnet/chainer/mnist below CHAINER_DATASET_ROOT; nothing is downloaded.
    """
    folder = get_dataset_directory("pfnet/chainer/mnist", create_directory=False)
    return _digits(folder, withlabel, ndim, scale, dtype, label_dtype, rgb_format)


def get_fashion_mnist(**options: Any) -> tuple[Any, Any]:
    """Return Fashion-MNIST's sets from its IDX files: pfnet/chainer/fashion-mnist."""
    folder = get_dataset_directory("pfnet/chainer/fashion-mnist", create_directory=False)
    given = {
        "withlabel": True,
        "ndim": 1,
        "scale": 1.0,
        "dtype": None,
        "label_dtype": np.int32,
        "rgb_format": False,
    }
    return _digits(folder, *({**given, **options}).values())


def _digits(
    folder: str,
    withlabel: bool,
    ndim: int,
    scale: float,
    dtype: Any,
    label_dtype: Any,
    rgb_format: bool,
) -> tuple[Any, Any]:
    if ndim not in (1, 2, 3):
        raise ValueError(f"invalid ndim for MNIST dataset: {ndim}; it is 1, 2 or 3")
    found = []
    for split in ("train", "test"):
        images, labels = load_mnist(folder, split).tensors
        x = np.asarray(images)[:, 0].astype(dtype or np.float32) * np.asarray(
            scale, dtype or np.float32
        )
        x = x.reshape(len(x), -1) if ndim == 1 else x
        x = x[:, None] if ndim == 3 else x
        x = np.broadcast_to(x, (len(x), 3, *x.shape[2:])).copy() if ndim == 3 and rgb_format else x
        y = np.asarray(labels).astype(label_dtype)
        found.append(TupleDataset(x, y) if withlabel else x)
    return found[0], found[1]


def get_ptb_words() -> tuple[Any, Any, Any]:
    """Return the words of the Penn Treebank as numbers: training, validation and test.

    Reads ptb.train.txt, ptb.valid.txt and ptb.test.txt in pfnet/chainer/ptb of the dataset folder.
    """
    vocabulary: dict[str, int] = {}
    found = []
    for part in ("train", "valid", "test"):
        words = _ptb(part)
        found.append(np.array([vocabulary.setdefault(w, len(vocabulary)) for w in words], np.int32))
    return found[0], found[1], found[2]


def get_ptb_words_vocabulary() -> dict[str, int]:
    """Return the numbers of the words of the Penn Treebank."""
    vocabulary: dict[str, int] = {}
    for part in ("train", "valid", "test"):
        for word in _ptb(part):
            vocabulary.setdefault(word, len(vocabulary))
    return vocabulary


def _ptb(part: str) -> list[str]:
    path = os.path.join(
        get_dataset_directory("pfnet/chainer/ptb", create_directory=False), f"ptb.{part}.txt"
    )
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"there is no file {path}: put the Penn Treebank there, nothing is downloaded"
        )
    with open(path, encoding="utf-8") as file:
        return [word for line in file for word in [*line.split(), "<eos>"]]
