"""Data as `fit` takes it (arrays, nests of arrays, datasets, loaders) as batches of (x, y, w)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core.dtype import Array
from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.masked import check_unmasked
from ..core.tensor import Tensor
from ..core.tree import Structure, flatten
from ..data import DataLoader, TensorDataset
from ..nn import Module


class BatchParts(NamedTuple):
    """A batch in parts: inputs, target (or None), weights of the samples (or None)."""

    x: Any
    y: Any
    weights: Any


class BatchSource(NamedTuple):
    """Where batches come from, and how to take one apart."""

    loader: Iterable[Any]
    split: Callable[[Any], BatchParts]


class Arrays(NamedTuple):
    """Nests of arrays with one row per sample."""

    x: Any
    y: Any
    weights: Any

    @property
    def samples(self) -> int:
        """Return the number of samples."""
        return len(flatten(self.x)[0][0])

    def rows(self, chosen: slice) -> Arrays:
        """Return some of the samples."""
        return Arrays(*(_rows(part, chosen) for part in self))


def as_arrays(x: Any, y: Any, weights: Any, dtype: Any) -> Arrays:
    """Return inputs, targets and weights as arrays; floating-point ones get the model's dtype."""
    arrays = Arrays(*(_converted(part, dtype) for part in (x, y, weights)))
    leaves = [leaf for part in arrays for leaf in flatten(part)[0]]
    for leaf in leaves:
        if leaf.ndim == 0:
            raise ShapeError("data needs a first dimension, the samples. Received: a single number")
    lengths = sorted({len(leaf) for leaf in leaves})
    if len(lengths) != 1:
        shapes = ", ".join(str(leaf.shape) for leaf in leaves)
        raise ShapeError(f"all data must have the same number of samples. Received: {shapes}")
    for given in flatten(arrays.weights)[0]:
        if given.ndim != 1:
            raise ShapeError(
                f"sample_weight must be one number for each sample. Received: {given.shape}"
            )
    return arrays


def is_batched(x: Any) -> bool:
    """Tell whether data is a loader or a generator, which makes its own batches."""
    if isinstance(x, Tensor | np.ndarray | list | tuple | Mapping):
        return False
    return isinstance(x, Iterable) and not hasattr(x, "__getitem__")


def is_dataset(x: Any) -> bool:
    """Tell whether data is a dataset: it has items and a length but is no array."""
    plain = isinstance(x, Tensor | np.ndarray | list | tuple | Mapping)
    return not plain and hasattr(x, "__getitem__") and hasattr(x, "__len__")


def source_of_arrays(arrays: Arrays, **options: Any) -> BatchSource:
    """Return batches of arrays; `options` go to the DataLoader."""
    leaves, structure = flatten(tuple(arrays))
    if not arrays.samples:
        raise ArgumentError("there are no samples")
    loader = DataLoader(TensorDataset(*leaves), **options)
    if all(isinstance(part, np.ndarray) for part in arrays[: len(leaves)]):
        return source_of_batches(loader)
    return BatchSource(loader, lambda batch: _nested(structure, batch, len(leaves)))


def source_of_batches(loader: Iterable[Any]) -> BatchSource:
    """Return the batches of a loader: x, (x, y) or (x, y, weights)."""
    return BatchSource(loader, split_sample)


def split_sample(batch: Any) -> BatchParts:
    """Take a batch x, (x, y) or (x, y, weights) apart."""
    if not isinstance(batch, tuple | list):
        return BatchParts(batch, None, None)
    if not 1 <= len(batch) <= 3:
        raise ArgumentError(
            f"a batch must be x, (x, y) or (x, y, weights). Received: {len(batch)} parts"
        )
    return BatchParts(*batch, *[None] * (3 - len(batch)))


def float_dtype(model: Module) -> Any:
    """Return the dtype of a model's first floating-point parameter, or the default."""
    for parameter in model.parameters():
        if dt.is_float(parameter.dtype):
            return parameter.dtype
    return dt.default_float()


def split_off(arrays: Arrays, share: Any) -> tuple[Arrays, Arrays]:
    """Return the first samples and the last ones, which make up the given share.

    The last ones are for validation: taken before any shuffling, they are the same in each epoch.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0.0 < share < 1.0:
        raise ArgumentError(f"validation_split must lie between 0 and 1. Received: {share!r}")
    first = math.floor(arrays.samples * (1.0 - share))
    if first in (0, arrays.samples):
        raise ArgumentError(
            f"validation_split={share} of {arrays.samples} samples leaves one part empty"
        )
    return arrays.rows(slice(0, first)), arrays.rows(slice(first, None))


def class_weights(y: Any, weights: Mapping[int, float]) -> Array:
    """Return the weight of each sample's class; classes that are not named have 1."""
    labels = y.numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.ndim == 2:
        labels = labels.argmax(axis=1) if labels.shape[1] > 1 else labels[:, 0]
    if labels.ndim != 1:
        raise ShapeError(f"class_weight takes labels (n,) or one-hot (n, c). Received: {y.shape}")
    found = np.ones(len(labels))
    for label, weight in weights.items():
        found[labels == label] = weight
    return found


def _converted(part: Any, dtype: Any) -> Any:
    if part is None:
        return None
    leaves, structure = flatten(part, is_leaf=_is_array_like)
    if not leaves:
        raise ArgumentError("there is no data")
    return structure.unflatten(_as_array(leaf, dtype) for leaf in leaves)


def _is_array_like(value: Any) -> bool:
    """Tell lists of numbers, which are arrays, from lists and tuples of arrays."""
    if not isinstance(value, list | tuple):
        return False
    return not any(isinstance(item, Tensor | np.ndarray) and np.ndim(item) for item in value)


def _as_array(value: Any, dtype: Any) -> Array:
    check_unmasked(value, "data")
    array = value.detach().numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind in "OUSMmc":
        raise ArgumentTypeError(
            f"data must be real numbers. Received: {type(value).__name__} of {array.dtype}"
        )
    return array.astype(dtype, copy=False) if dt.is_float(array.dtype) else array


def _rows(part: Any, chosen: slice) -> Any:
    leaves, structure = flatten(part)
    return structure.unflatten(leaf[chosen] for leaf in leaves)


def _nested(structure: Structure, batch: Any, count: int) -> BatchParts:
    leaves = batch if count > 1 else (batch,)
    return BatchParts(*structure.unflatten(leaves))
