"""`tf.data`: datasets and iterators."""

from __future__ import annotations

from typing import Any

from ...faces.absent import absent_names
from . import experimental
from .dataset import Dataset
from .experimental import AUTOTUNE
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import Iterator

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_shapes",
    "get_output_types",
    "make_initializable_iterator",
    "make_one_shot_iterator",
]


def make_one_shot_iterator(dataset: Dataset) -> Iterator:
    """Return an iterator that goes through a dataset once in each session."""
    return dataset.make_one_shot_iterator()


def make_initializable_iterator(dataset: Dataset, shared_name: Any = None) -> Iterator:
    """Return an iterator that begins when its `initializer` runs."""
    return dataset.make_initializable_iterator(shared_name)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Return the types of the components of elements."""
    return dataset_or_iterator.output_types


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Return the static shapes of the components of elements."""
    return dataset_or_iterator.output_shapes


_REASONS = {"Options": "leave it out: there is nothing to tune"}
__getattr__ = absent_names(globals(), _REASONS)
