"""Small helpers that Keras's programs use."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.errors import ArgumentError
from ..core.rng import manual_seed
from ..data import Dataset
from ..faces.absent import absent_names

__all__ = ["Sequence", "normalize", "set_random_seed", "to_categorical"]

Sequence = Dataset  # items of a Sequence are batches; see docs/faces/keras.md


def to_categorical(y: Any, num_classes: int | None = None, dtype: Any = "float32") -> Array:
    """Return labels as one-hot rows.

    >>> to_categorical([0, 2])
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    labels = np.asarray(y)
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    whole = labels.astype(np.int64)
    if labels.dtype.kind not in "biuf" or not np.array_equal(whole, labels):
        raise ArgumentError("to_categorical takes labels, i.e. whole numbers")
    classes = int(whole.max(initial=-1)) + 1 if num_classes is None else num_classes
    if whole.size and not 0 <= whole.min() <= whole.max() < classes:
        raise ArgumentError(
            f"labels must lie in 0 .. {classes - 1}. Received: {whole.min()} .. {whole.max()}"
        )
    return np.eye(classes, dtype=dtype)[whole]


def normalize(x: Any, axis: int = -1, order: int = 2) -> Array:
    """Return an array divided by its norms along an axis."""
    array = np.asarray(x)
    norms = np.linalg.norm(array, ord=order, axis=axis, keepdims=True)
    return np.asarray(array / np.where(norms == 0, 1, norms))


def set_random_seed(seed: int) -> None:
    """Begin all random numbers anew: NumPy's, which programs draw data by, and Weft's."""
    np.random.seed(seed)  # noqa: NPY002  (what Keras's function does)
    manual_seed(seed)


_REASONS = {
    "plot_model": "model.summary() prints the layers; wf.Graph.draw draws graphs",
    "get_file": "nothing is downloaded; give local files",
    "image_dataset_from_directory": "use wf.data.ImageFolder",
}
__getattr__ = absent_names(globals(), _REASONS)
