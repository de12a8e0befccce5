"""The layer Data: records of a database, in the order of its keys, round after round."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from ..errors import CaffeError
from ..inputs_protocol import Array
from .base import Batches, BatchStream, checked_batch_size
from .databases import open_database
from .datum import read_datum
from .transform import Transformer


class DataBatches(Batches):
    """Batches of a database's images and labels."""

    def __init__(self, layer: Any, transformer: Transformer, source: str, seed: int) -> None:
        param = layer.data_param
        super().__init__(seed)
        self.layer, self.source = layer.name, source
        self.batch_size = checked_batch_size(layer.name, param.batch_size)
        self._transformer, self._tops = transformer, len(layer.top)
        self._database = open_database(source, param.which("backend"))
        options = layer.transform_param
        self._color = bool(options.force_color or param.force_encoded_color)
        self._gray = bool(options.force_gray)
        self._most_skipped = int(param.rand_skip)
        self._first = self._first_shape()
        shape = (self.batch_size, *transformer.shape(self._first))
        self.shapes = [shape, (self.batch_size,)][: self._tops]

    def _first_shape(self) -> tuple[int, int, int]:
        records = self._database.records()
        try:
            key, value = next(records)
        except StopIteration:
            raise CaffeError(f"layer {self.layer!r}: the database {self.source} is empty") from None
        finally:
            records.close()  # type: ignore[attr-defined]  # a generator
        channels, height, width = self._image(key, value)[0].shape
        return channels, height, width

    def stream(self, start: int) -> BatchStream:
        """Yield batches; an epoch's end lies inside one if the sizes do not fit."""
        images = self._images(self.skipped(self._most_skipped) + start * self.batch_size)
        for number in count(start):
            found = list(islice(images, self.batch_size))
            data = self._transformer([image for image, _ in found], self.generator(number))
            labels = np.array([label for _, label in found], np.float32)
            yield [data, labels][: self._tops]

    def _images(self, start: int) -> Iterator[tuple[Array, int]]:
        skipped = start % len(self._database) if start else 0
        while True:
            records = islice(self._database.records(), skipped, None)
            skipped = 0
            for key, value in records:
                yield self._image(key, value)

    def _image(self, key: bytes, value: bytes) -> tuple[Array, int]:
        where = f"layer {self.layer!r}: record {key!r} of {self.source}"
        return read_datum(value, where, color=self._color, gray=self._gray)
