"""`tf.data`: datasets and iterators."""

from .dataset import Dataset
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from .iterator import Iterator

AUTOTUNE = -1

__all__ = [
    "AUTOTUNE",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "TFRecordDataset",
    "TextLineDataset",
]
