"""The layer ImageData: image files that a list names, with their labels."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count, islice
from typing import Any

import numpy as np

from ...data.errors import check_file
from ...data.transforms.resample import resize
from ..errors import CaffeError
from ..inputs_protocol import Array
from .base import Batches, BatchStream, checked_batch_size
from .datum import decoded
from .listing import read_labelled
from .transform import Transformer


def read_pixels(path: str, *, color: bool = True, height: int = 0, width: int = 0) -> Array:
    """Return an image file as (channels, height, width) in the order B, G, R, resized if asked."""
    shown = check_file(path)
    with open(shown, "rb") as file:
        pixels = decoded(file.read(), shown, color=color, gray=not color)
    return resized(pixels, height, width) if height and width else pixels


def resized(pixels: Array, height: int, width: int) -> Array:
    """Return an image (channels, height, width) at another size, as OpenCV does: bilinear."""
    rows = resize(pixels.transpose(1, 2, 0), height, width, "bilinear", antialias=False)
    return np.ascontiguousarray(rows.transpose(2, 0, 1))


class ImageBatches(Batches):
    """Batches of image files."""

    def __init__(self, layer: Any, transformer: Transformer, source: str, seed: int) -> None:
        param = layer.image_data_param
        super().__init__(seed)
        self.layer = layer.name
        self.batch_size = checked_batch_size(layer.name, param.batch_size)
        if bool(param.new_height) != bool(param.new_width):
            raise CaffeError(
                f"layer {layer.name!r}: give both new_height and new_width, or neither"
            )
        self._size = {"height": int(param.new_height), "width": int(param.new_width)}
        self._color, self._shuffle = bool(param.is_color), bool(param.shuffle)
        self._folder = str(param.root_folder)
        self._entries = read_labelled(source)
        self._transformer, self._tops = transformer, len(layer.top)
        self._most_skipped = int(param.rand_skip)
        shape = transformer.shape(self._image(self._entries[0][0]).shape)
        self.shapes = [(self.batch_size, *shape), (self.batch_size,)][: self._tops]

    def stream(self, start: int) -> BatchStream:
        """Yield batches; the order is drawn anew in each round if it is shuffled."""
        entries = islice(
            self._ordered(), self.skipped(self._most_skipped) + start * self.batch_size, None
        )
        for number in count(start):
            chosen = list(islice(entries, self.batch_size))
            images = [self._image(name) for name, _ in chosen]
            data = self._transformer(images, self.generator(number))
            yield [data, np.array([label for _, label in chosen], np.float32)][: self._tops]

    def _ordered(self) -> Iterator[tuple[str, int]]:
        for number in count():
            if not self._shuffle:
                yield from self._entries
                continue
            # Orders have a stream of their own, away from those of batches.
            random = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 2, number]))
            yield from (self._entries[i] for i in random.permutation(len(self._entries)))

    def _image(self, name: str) -> Array:
        return read_pixels(os.path.join(self._folder, name), color=self._color, **self._size)
