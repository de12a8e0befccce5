"""The layer MemoryData: batches of arrays that the program sets."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

from ..errors import CaffeError
from ..inputs_protocol import Array
from .base import Batches, BatchStream, Input, checked_batch_size


class MemoryBatches(Batches):
    """Slices of the arrays that were set, from the first to the last and again."""

    def __init__(self, layer: Any, seed: int = 0) -> None:
        param = layer.memory_data_param
        super().__init__(seed)
        self.layer = layer.name
        self.batch_size = checked_batch_size(layer.name, param.batch_size)
        self._image = (param.channels, param.height, param.width)
        if min(self._image) < 1:
            raise CaffeError(
                f"layer {layer.name!r}: channels, height and width must be positive. "
                f"Received: {self._image}"
            )
        self._arrays: list[Array] | None = None
        self.shapes = [(self.batch_size, *self._image), (self.batch_size,)]

    def set_arrays(self, data: Any, labels: Any) -> None:
        """Take arrays (n, channels, height, width) and (n,); n is a multiple of the batch size."""
        pixels = np.ascontiguousarray(data, np.float32)
        numbers = np.ascontiguousarray(labels, np.float32).reshape(-1)
        if pixels.shape[1:] != self._image or len(pixels) != len(numbers):
            raise CaffeError(
                f"layer {self.layer!r} takes data (n, {', '.join(map(str, self._image))}) and n "
                f"labels. Received: {pixels.shape} and {numbers.shape}"
            )
        if not len(pixels) or len(pixels) % self.batch_size:
            raise CaffeError(
                f"layer {self.layer!r}: the number of images must be a multiple of batch_size, "
                f"{self.batch_size}. Received: {len(pixels)}"
            )
        self._arrays = [pixels, numbers]

    def stream(self, start: int) -> BatchStream:
        """Yield slices of the arrays."""
        if self._arrays is None:
            raise CaffeError(
                f"layer {self.layer!r}: MemoryData needs arrays: net.set_input_arrays(data, labels)"
            )
        for number in count(start):
            first = number * self.batch_size % len(self._arrays[0])
            yield [array[first : first + self.batch_size] for array in self._arrays]


class MemoryInput(Input):
    """The input of a MemoryData layer, which a program gives arrays."""

    _batches: MemoryBatches

    def __init__(self, layer: Any) -> None:
        super().__init__(MemoryBatches(layer))

    def set_arrays(self, data: Any, labels: Any) -> None:
        """Take arrays and begin with their first batch; see MemoryBatches.set_arrays."""
        self._batches.set_arrays(data, labels)
        self.restore({"batch": 0, "seed": 0})
