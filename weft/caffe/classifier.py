"""caffe.Classifier: a net that is given images and returns probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .io import Transformer, oversample, resize_image
from .message import TEST
from .pycaffe import Net

Array: TypeAlias = NDArray[Any]


class Classifier(Net):
    """A deploy net with the preparation of its images.

    image_dims     the size that images get before they are cropped
    mean, input_scale, raw_scale, channel_swap   as in `caffe.io.Transformer`
    """

    def __init__(
        self,
        model_file: Any,
        pretrained_file: Any,
        image_dims: Sequence[int] | None = None,
        mean: Any = None,
        input_scale: float | None = None,
        raw_scale: float | None = None,
        channel_swap: Sequence[int] | None = None,
    ) -> None:
        super().__init__(model_file, TEST, weights=pretrained_file)
        name = self.inputs[0]
        shape = self.blobs[name].shape
        self.transformer = Transformer({name: shape})
        self.transformer.set_transpose(name, (2, 0, 1))
        if mean is not None:
            self.transformer.set_mean(name, mean)
        if input_scale is not None:
            self.transformer.set_input_scale(name, input_scale)
        if raw_scale is not None:
            self.transformer.set_raw_scale(name, raw_scale)
        if channel_swap is not None:
            self.transformer.set_channel_swap(name, channel_swap)
        self.crop_dims = np.array(shape[2:])
        self.image_dims = self.crop_dims if image_dims is None else np.array(image_dims)

    def predict(self, inputs: Sequence[Any], oversample: bool = True) -> Array:
        """Return probabilities of images (height, width, channels); of ten crops, their mean."""
        size = [int(n) for n in self.image_dims]
        images = [resize_image(image, size) for image in inputs]
        crops = _crops(images, self.crop_dims, oversample)
        name = self.inputs[0]
        prepared = np.stack([self.transformer.preprocess(name, crop) for crop in crops])
        found = self.forward_all(**{name: prepared})[self.outputs[0]]
        if oversample:
            found = found.reshape(len(images), len(crops) // len(images), -1).mean(1)
        return found


def _crops(images: list[Array], size: Array, many: bool) -> Array:
    if many:
        return oversample(images, [int(n) for n in size])
    height, width = (int(n) for n in size)
    middles = [((a.shape[0] - height) // 2, (a.shape[1] - width) // 2) for a in images]
    return np.stack(
        [a[i : i + height, j : j + width] for a, (i, j) in zip(images, middles, strict=True)]
    )
