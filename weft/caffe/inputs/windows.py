"""The layer WindowData: windows of images, as detectors (R-CNN) are trained with.

A window file holds, for each image: "# number", its path, channels, height, width, the number of
windows, and a line for each: class, overlap with an object, x1 y1 x2 y2 (corners inclusive).
"""

from __future__ import annotations

import os
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ...data import DataFileError
from ..errors import CaffeError
from ..inputs_protocol import Array
from .base import Batches, BatchStream, checked_batch_size
from .images import read_pixels, resized
from .listing import read_lines
from .transform import Transformer


class Window(NamedTuple):
    """A window of an image: the image's number, the class, the overlap and the corners."""

    image: int
    label: int
    overlap: float
    box: tuple[int, int, int, int]


def read_windows(path: Any) -> tuple[list[str], list[Window]]:
    """Return the images and the windows of a window file."""
    lines, images, windows = read_lines(path), [], []
    place = 0
    try:
        while place < len(lines):
            mark, _, _ = lines[place].partition(" ")
            number = int(lines[place + 5])
            if mark != "#" or number < 0:
                raise ValueError("each image begins with '# number'")
            images.append(lines[place + 1])
            place += 6
            if place + number > len(lines):
                raise ValueError(f"{number} windows are announced, and fewer follow")
            for line in lines[place : place + number]:
                label, overlap, *box = line.split()
                x1, y1, x2, y2 = (int(float(x)) for x in box)
                windows.append(
                    Window(len(images) - 1, int(label), float(overlap), (x1, y1, x2, y2))
                )
            place += number
    except (ValueError, IndexError, OverflowError) as error:
        raise DataFileError(path, f"entry {place + 1}", f"no window file: {error}") from None
    return images, windows


class WindowBatches(Batches):
    """Batches of windows: a share of objects, the rest background, drawn at random."""

    def __init__(self, layer: Any, transformer: Transformer, source: str, seed: int) -> None:
        param = layer.window_data_param
        super().__init__(seed)
        self.layer, self._param, self._transformer = layer.name, param, transformer
        self.batch_size = checked_batch_size(layer.name, param.batch_size)
        self._crop = transformer.crop
        if not self._crop:
            raise CaffeError(f"layer {layer.name!r}: WindowData needs a crop_size")
        if param.crop_mode not in ("warp", "square"):
            raise CaffeError(
                f"layer {layer.name!r}: crop_mode must be warp or square. "
                f"Received: {param.crop_mode}"
            )
        self._root = str(param.root_folder)
        self._images, windows = read_windows(source)
        self._objects = [w for w in windows if w.overlap >= param.fg_threshold]
        self._background = [w._replace(label=0) for w in windows if w.overlap < param.bg_threshold]
        if not self._objects or not self._background:
            raise CaffeError(
                f"layer {layer.name!r}: {source} needs windows of objects (overlap of at least "
                f"{param.fg_threshold:g}) and of background (below {param.bg_threshold:g}). "
                f"Received: {len(self._objects)} and {len(self._background)}"
            )
        self._cache: dict[str, Array] = {}
        channels = self._pixels(windows[0].image).shape[0]
        self.shapes = [(self.batch_size, channels, self._crop, self._crop), (self.batch_size,)]

    def stream(self, start: int) -> BatchStream:
        """Yield batches: background first, as Caffe puts it."""
        objects = int(self.batch_size * self._param.fg_fraction)
        for number in count(start):
            random = self.generator(number)
            chosen = [
                *self._drawn(self._background, self.batch_size - objects, random),
                *self._drawn(self._objects, objects, random),
            ]
            data = np.stack([self._cut(window, random) for window in chosen])
            yield [data, np.array([window.label for window in chosen], np.float32)]

    def _drawn(self, windows: list[Window], number: int, random: Any) -> list[Window]:
        return [windows[i] for i in random.integers(0, len(windows), number)]

    def _pixels(self, image: int) -> Array:
        path = os.path.join(self._root, self._images[image])
        if path in self._cache:
            return self._cache[path]
        pixels = read_pixels(path)
        if self._param.cache_images:
            self._cache[path] = pixels
        return pixels

    def _cut(self, window: Window, random: np.random.Generator) -> Array:
        """Return a window at the size of the crop; what lies outside the image is 0."""
        pixels = self._pixels(window.image)
        mirrored = self._transformer.mirror and bool(random.integers(0, 2))
        clipped, (top, left, height, width) = self._placed(window.box, pixels.shape[1:])
        x1, y1, x2, y2 = clipped
        found = resized(pixels[:, y1 : y2 + 1, x1 : x2 + 1], height, width)
        left = self._crop - width - left if mirrored else left
        found = self._centred(found[:, :, ::-1] if mirrored else found, top, left)
        out = np.zeros((pixels.shape[0], self._crop, self._crop), np.float32)
        out[:, top : top + height, left : left + width] = found * self._transformer.scale
        return out

    def _centred(self, pixels: Array, top: int, left: int) -> Array:
        height, width = pixels.shape[1:]
        mean = self._transformer.mean
        if mean is not None:  # its middle, at the place where the window goes
            rows = (mean.shape[1] - self._crop) // 2 + top
            columns = (mean.shape[2] - self._crop) // 2 + left
            return pixels - mean[:, rows : rows + height, columns : columns + width]
        values = self._transformer.values
        return pixels - values[:, None, None] if values.size else pixels

    def _placed(self, box: Any, size: Any) -> tuple[Any, Any]:
        """Return the window with its surroundings in the image, and where it goes in the crop."""
        x1, y1, x2, y2 = self._surrounded(box)
        height, width = size
        before_x, before_y = max(0, -x1), max(0, -y1)
        full_w, full_h = x2 - x1 + 1, y2 - y1 + 1
        cx1, cy1 = min(max(x1, 0), width - 1), min(max(y1, 0), height - 1)
        cx2, cy2 = max(min(x2, width - 1), cx1), max(min(y2, height - 1), cy1)
        scale_x, scale_y = self._crop / full_w, self._crop / full_h
        left, top = (
            min(round(before_x * scale_x), self._crop - 1),
            min(round(before_y * scale_y), self._crop - 1),
        )
        w = min(max(1, round((cx2 - cx1 + 1) * scale_x)), self._crop - left)
        h = min(max(1, round((cy2 - cy1 + 1) * scale_y)), self._crop - top)
        return (cx1, cy1, cx2, cy2), (top, left, h, w)

    def _surrounded(self, box: Any) -> tuple[int, int, int, int]:
        """Return a box with the context around it, and square if that was asked for."""
        x1, y1, x2, y2 = box
        pad, square = self._param.context_pad, self._param.crop_mode == "square"
        if not pad and not square:
            return x1, y1, max(x1, x2), max(y1, y2)
        scale = self._crop / max(1, self._crop - 2 * pad)
        half_h, half_w = (y2 - y1 + 1) / 2, (x2 - x1 + 1) / 2
        centre_x, centre_y = x1 + half_w, y1 + half_h
        if square:
            half_h = half_w = max(half_h, half_w)
        left, right = round(centre_x - half_w * scale), round(centre_x + half_w * scale)
        top, bottom = round(centre_y - half_h * scale), round(centre_y + half_h * scale)
        return left, top, max(left, right), max(top, bottom)
