"""Datasets of files: lines of text, records, pieces of one size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...data import IterableSource
from ..dtypes import int64, string
from ..recording import convert_to_tensor
from ..shapes import TensorShape
from . import reading
from .dataset import Dataset
from .given import Resolve
from .nests import Component

__all__ = ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]


class _FileDataset(Dataset):
    """The pieces of files, one after another.

    read   takes a file name and the values of `options`, yields bytes
    """

    def __init__(self, filenames: Any, read: Callable[..., Iterator[bytes]], *options: Any) -> None:
        source = filenames if isinstance(filenames, Dataset) else None
        given = convert_to_tensor(filenames, string) if source is None else None

        def make(resolve: Resolve) -> IterableSource:
            values = [resolve(option) for option in options]

            def pieces() -> Iterator[Any]:
                listed = (
                    np.atleast_1d(resolve(given)).ravel().tolist()
                    if source is None
                    else (element[0] for element in source.make(resolve))
                )
                for name in listed:
                    for piece in read(name, *values):
                        yield (_text(piece),)

            return IterableSource(pieces)

        inputs = [given] if source is None else list(source.inputs)
        super().__init__(Component(string, TensorShape(())), make, [*inputs, *options])


class TextLineDataset(_FileDataset):
    """The lines of text files, without their ends."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None
    ) -> None:
        kind = reading.compression_of(compression_type)
        super().__init__(filenames, lambda name: reading.lines(name, kind))


class TFRecordDataset(_FileDataset):
    """The records of TFRecord files, with their checksums."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        kind = reading.compression_of(compression_type)
        super().__init__(filenames, lambda name: reading.records(name, kind))


class FixedLengthRecordDataset(_FileDataset):
    """Pieces of one size of files."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
    ) -> None:
        sizes = [
            convert_to_tensor(x or 0, int64) for x in (record_bytes, header_bytes, footer_bytes)
        ]
        super().__init__(
            filenames,
            lambda name, size, header, footer: reading.fixed_records(
                name, int(size), int(header), int(footer)
            ),
            *sizes,
        )


def _text(value: bytes) -> Any:
    made = np.empty((), object)
    made[()] = value
    return made
