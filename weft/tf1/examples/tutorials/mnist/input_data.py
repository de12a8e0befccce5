"""`input_data.read_data_sets`: MNIST from files of a folder; nothing is downloaded."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .....data.idx import load_mnist
from ....dtypes import as_dtype

__all__ = ["DataSet", "Datasets", "read_data_sets"]


class DataSet:
    """Images and labels, from which batches are taken in random order."""

    def __init__(self, images: Any, labels: Any, seed: int | None = None) -> None:
        self._images, self._labels = images, labels
        self._draws = np.random.default_rng(seed)
        self._order = np.arange(len(images))
        self._at = 0
        self._epochs = 0

    @property
    def images(self) -> Any:
        """Return the images, one vector each."""
        return self._images

    @property
    def labels(self) -> Any:
        """Return the labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """Return the number of images."""
        return len(self._images)

    @property
    def epochs_completed(self) -> int:
        """Return how often all images have been taken."""
        return self._epochs

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> Any:
        """Return the next images and labels; after the last ones they are in another order."""
        if shuffle and not self._at and not self._epochs:
            self._draws.shuffle(self._order)
        chosen = self._order[self._at : self._at + batch_size].copy()
        self._at += batch_size
        if self._at >= len(self._order):
            self._epochs += 1
            rest = batch_size - len(chosen)
            if shuffle:
                self._draws.shuffle(self._order)
            chosen, self._at = np.concatenate([chosen, self._order[:rest]]), rest
        return self._images[chosen], self._labels[chosen]


class Datasets(NamedTuple):
    """What a network learns from, is watched on, and is judged by."""

    train: DataSet
    validation: DataSet
    test: DataSet


def read_data_sets(
    train_dir: Any,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = "float32",
    reshape: bool = True,
    validation_size: int = 5000,
    seed: Any = None,
    source_url: str = "",
) -> Datasets:
    """Return the digits that a folder holds, as MNIST's four files (gzipped or not)."""
    parts = [
        _read(train_dir, split, one_hot, as_dtype(dtype), reshape) for split in ("train", "test")
    ]
    (images, labels), test = parts
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    cut = validation_size
    return Datasets(
        DataSet(images[cut:], labels[cut:], seed),
        DataSet(images[:cut], labels[:cut], seed),
        DataSet(*test, seed),
    )


def _read(folder: Any, split: str, one_hot: bool, kind: Any, flat: bool) -> tuple[Any, Any]:
    images, labels = (np.asarray(x.numpy()) for x in load_mnist(folder, split).tensors)
    pixels = images.reshape(len(images), -1) if flat else images.reshape(len(images), 28, 28, 1)
    scaled = pixels if kind.is_integer else pixels.astype(kind.dtype)
    if not kind.is_integer and scaled.size and scaled.max() > 1:
        scaled = scaled / np.asarray(255, kind.dtype)
    return scaled, np.eye(10)[labels] if one_hot else labels.astype(np.uint8)
