"""Transforms of whole batches that mix images and their labels; for `DataLoader.batch_transform`.

They take a batch (images, labels), labels being class numbers or rows of probabilities, and return
images and rows of probabilities, which `cross_entropy` takes as targets.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.dtype import is_float
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.tensor import Tensor, wrap
from ..checks import as_count, as_probability, as_real
from ..streams import Array, beta, chance, integer, permutation


class _Mixing:
    """The part that both have in common: whom to mix with, how much, and the labels."""

    def __init__(self, num_classes: int, alpha: float = 1.0, p: float = 1.0) -> None:
        self.num_classes = as_count(self, "num_classes", num_classes)
        self.alpha = as_real(self, "alpha", alpha, 1e-9)
        self.p = as_probability(self, "p", p)

    def __call__(self, batch: Any) -> tuple[Tensor, Tensor]:
        """Return the mixed batch."""
        images, labels = self._checked(batch)
        targets = self._probabilities(labels, images.dtype)
        if not chance(self.p):
            return wrap(images), wrap(targets)
        partner = permutation(len(images))
        mixed, share = self._mixed(images, images[partner], beta(self.alpha))
        share = targets.dtype.type(share)
        return wrap(mixed), wrap(targets * share + targets[partner] * (1 - share))

    def _mixed(self, images: Array, others: Array, share: float) -> tuple[Array, float]:
        """Return mixed images, and the share that the first ones have in them."""
        raise NotImplementedError

    def _checked(self, batch: Any) -> tuple[Array, Array]:
        name = type(self).__name__
        if not isinstance(batch, tuple | list) or len(batch) != 2:
            raise ArgumentTypeError(
                f"{name}: expected a batch (images, labels). Received: {type(batch).__name__}"
            )
        images, labels = (np.asarray(part) for part in batch)
        if not is_float(images.dtype):
            raise DTypeError(
                f"{name}: images must be floats; use ToTensor() on the items. "
                f"Received: {images.dtype}"
            )
        if images.ndim == 0 or labels.ndim not in (1, 2) or len(images) != len(labels):
            raise ShapeError(
                f"{name}: expected images (n, ...) and labels (n,) or (n, classes). Received: "
                f"{images.shape} and {labels.shape}"
            )
        return images, labels

    def _probabilities(self, labels: Array, dtype: Any) -> Array:
        name = type(self).__name__
        if labels.ndim == 2:
            if labels.shape[1] != self.num_classes:
                raise ShapeError(
                    f"{name}: expected labels of {self.num_classes} classes. Received: "
                    f"{labels.shape}"
                )
            return labels.astype(dtype)
        if labels.dtype.kind not in "iu":
            raise DTypeError(f"{name}: class numbers must be integers. Received: {labels.dtype}")
        if labels.size and not 0 <= labels.min() <= labels.max() < self.num_classes:
            raise ArgumentError(
                f"{name}: class numbers must lie in [0, {self.num_classes}). Received: "
                f"{labels.min()} to {labels.max()}"
            )
        return np.eye(self.num_classes, dtype=dtype)[labels]


class MixUp(_Mixing):
    """Average each image with another of the batch, and their labels alike (Zhang et al. 2017).

    The share is drawn from Beta(alpha, alpha); `p` is the probability to mix a batch at all.
    """

    def _mixed(self, images: Array, others: Array, share: float) -> tuple[Array, float]:
        weight = images.dtype.type(share)
        return images * weight + others * (1 - weight), share


class CutMix(_Mixing):
    """Paste a rectangle of another image of the batch into each (Yun et al. 2019).

    Labels mix by the area that is left; `alpha` and `p` as for `MixUp`.
    """

    def _mixed(self, images: Array, others: Array, share: float) -> tuple[Array, float]:
        if images.ndim != 4:
            raise ShapeError(
                f"CutMix: images must have shape (n, channels, height, width). Received: "
                f"{images.shape}"
            )
        height, width = images.shape[2:]
        side = math.sqrt(1.0 - share)
        rows = _span(integer(0, max(height, 1)), side * height, height)
        columns = _span(integer(0, max(width, 1)), side * width, width)
        mixed = images.copy()
        mixed[:, :, rows, columns] = others[:, :, rows, columns]
        cut = (rows.stop - rows.start) * (columns.stop - columns.start)
        return mixed, 1.0 - cut / max(1, height * width)


def _span(centre: int, length: float, limit: int) -> slice:
    """Return an interval about a centre, cut off at the borders of the image."""
    half = int(length) // 2
    return slice(max(0, centre - half), min(limit, centre + half))
