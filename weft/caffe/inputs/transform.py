"""`transform_param`: images as stored -> the blob that a net sees (crop, mirror, mean, scale)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import CaffeError
from ..inputs_protocol import Array, Shape


class Transformer:
    """Cut, mirror, centre and scale images (channels, height, width).

    As in Caffe: windows lie at random in TRAIN and in the middle in TEST, `mirror` tosses its coin
    in both, and the mean of a file is taken at the place of the window.
    """

    def __init__(self, param: Any, *, layer: str, train: bool, mean: Array | None = None) -> None:
        self.layer, self.train = layer, train
        self.scale, self.mirror = np.float32(param.scale), bool(param.mirror)
        self.crop = int(param.crop_size)
        self.values = np.array(list(param.mean_value), np.float32)
        self.mean = None if mean is None else _checked_mean(layer, mean)
        if self.mean is not None and self.values.size:
            raise CaffeError(f"layer {layer!r}: give mean_file or mean_value, not both")

    def shape(self, image: Shape) -> Shape:
        """Return the shape of what comes of images of a shape."""
        channels, height, width = image
        self._check(image)
        return (channels, self.crop, self.crop) if self.crop else (channels, height, width)

    def __call__(self, images: Sequence[Array], random: np.random.Generator) -> Array:
        """Return images as one array of float32, (number, channels, height, width)."""
        first = images[0].shape
        alike = all(image.shape == first for image in images)
        if alike and not (self.crop and self.train):
            batch = self._windows(np.stack(images))
        else:
            batch = self._cut_each(images, random)
        if self.mirror:
            flipped = random.integers(0, 2, len(batch)).astype(bool)
            batch[flipped] = batch[flipped, :, :, ::-1]
        if self.scale != 1:
            batch *= self.scale
        return batch

    def _windows(self, images: Array) -> Array:
        """Return the middle windows of images of one shape, centred."""
        self._check(images.shape[1:])
        top, left = (self._middle(size) for size in images.shape[2:])
        return self._centred(images, top, left)

    def _cut_each(self, images: Sequence[Array], random: np.random.Generator) -> Array:
        """Return a window of each image, centred."""
        cut = []
        for image in images:
            self._check(image.shape)
            top, left = (self._offset(size, random) for size in image.shape[1:])
            cut.append(self._centred(image[None], top, left))
        shapes = {window.shape for window in cut}
        if len(shapes) > 1:
            raise CaffeError(
                f"layer {self.layer!r}: images of a batch have different sizes "
                f"{sorted(shape[1:] for shape in shapes)}; give crop_size, new_height and "
                "new_width, or batch_size: 1"
            )
        return np.concatenate(cut)

    def _centred(self, images: Array, top: int, left: int) -> Array:
        window = (
            np.s_[..., top : top + self.crop, left : left + self.crop] if self.crop else np.s_[:]
        )
        found = images[window].astype(np.float32)
        if self.mean is not None:
            found -= self.mean[window]
        elif self.values.size:
            found -= self.values[:, None, None]
        return found

    def _offset(self, size: int, random: np.random.Generator) -> int:
        if self.crop and self.train:
            return int(random.integers(0, size - self.crop + 1))
        return self._middle(size)

    def _middle(self, size: int) -> int:
        return (size - self.crop) // 2 if self.crop else 0

    def _check(self, image: Shape) -> None:
        channels, height, width = image
        if self.crop > min(height, width):
            raise CaffeError(
                f"layer {self.layer!r}: crop_size is {self.crop}, but an image is "
                f"{height} x {width}; make the images larger (new_height, new_width)"
            )
        if self.mean is not None and self.mean.shape != image:
            raise CaffeError(
                f"layer {self.layer!r}: the mean of mean_file has the shape {self.mean.shape}, "
                f"and an image has {image}"
            )
        if self.values.size not in (0, 1, channels):
            raise CaffeError(
                f"layer {self.layer!r}: give one mean_value or one for each of the {channels} "
                f"channels. Received: {self.values.size}"
            )


def _checked_mean(layer: str, mean: Array) -> Array:
    """Return the mean image of a blob (1, channels, height, width)."""
    found = np.asarray(mean, np.float32)
    if found.ndim == 4 and found.shape[0] == 1:
        found = found[0]
    if found.ndim != 3:
        raise CaffeError(
            f"layer {layer!r}: mean_file must hold one image (1, channels, height, width). "
            f"Received: {mean.shape}"
        )
    return found
