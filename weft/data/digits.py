"""The handwritten digits that come with scikit-learn: 1,797 images of 8 x 8 pixels."""

from __future__ import annotations

import numpy as np

from ..core.imports import require
from .tensors import TensorDataset


def load_digits(*, flat: bool = False) -> TensorDataset:
    """Load the digits as (image, label): float32 in [0, 1] and int64 (needs scikit-learn).

    Images have shape (1, 8, 8), or (64,) with `flat`. Nothing is downloaded. Split them with
    `random_split(dataset, [0.8, 0.2], seed=0)`.
    """
    datasets = require("sklearn.datasets", "sklearn", "load_digits")
    raw = datasets.load_digits()
    images = raw.images.astype(np.float32)[:, None] / np.float32(16)
    if flat:
        images = images.reshape(len(images), -1)
    return TensorDataset(images, raw.target.astype(np.int64))
