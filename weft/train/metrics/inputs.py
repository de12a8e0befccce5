"""What metrics are given: scores or labels, and targets, in the shapes that networks produce.

scores of classes   (N, C, ...) beside labels (N, ...)
class probabilities (N, C, ...) beside targets of the same shape, one-hot or soft
binary scores       (N, ...) or (N, 1, ...) beside 0/1 targets (N, ...)
labels              integers beside integers of the same shape
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ArgumentError, DTypeError, ShapeError
from ...core.masked import check_unmasked
from ...core.tensor import Tensor

Array = np.ndarray[Any, Any]
CLASS_AXIS = 1


def as_array(value: Any) -> Array:
    """Return a tensor, array, list or number as an array."""
    check_unmasked(value, "a metric: data")
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind in "OUSMmc":
        raise DTypeError(f"a metric takes real numbers. Received: an array of {array.dtype}")
    return array if array.dtype.kind in "biuf" else array.astype(np.float32)  # bfloat16


def labels_of(
    name: str, output: Any, target: Any, threshold: float = 0.5, ignore_index: int | None = None
) -> tuple[Array, Array]:
    """Return predicted and true labels as flat arrays of integers, without ignored positions."""
    scores, truth = as_array(output), as_array(target)
    predicted, true = _pair_of_labels(name, scores, truth, threshold)
    predicted, true = predicted.reshape(-1), true.reshape(-1)
    if ignore_index is not None:
        kept = true != ignore_index
        predicted, true = predicted[kept], true[kept]
    return predicted, true


def _pair_of_labels(
    name: str, scores: Array, truth: Array, threshold: float
) -> tuple[Array, Array]:
    if is_class_probabilities(scores, truth):
        return scores.argmax(CLASS_AXIS), truth.argmax(CLASS_AXIS)
    true = as_labels(name, truth)
    if is_scores_of_classes(scores, truth):
        return scores.argmax(CLASS_AXIS), true
    scores = without_unit_axis(scores, truth)
    if scores.shape != truth.shape:
        raise ShapeError(
            f"{name}: expected scores (N, C, ...) beside labels (N, ...), or one shape. "
            f"Received: {scores.shape} and {truth.shape}"
        )
    if scores.dtype.kind == "f":
        return (scores > threshold).astype(np.int64), true
    return scores.astype(np.int64), true


def is_class_probabilities(scores: Array, truth: Array) -> bool:
    """Tell whether targets are probabilities of (more than one) class."""
    same = scores.shape == truth.shape and scores.ndim > CLASS_AXIS
    return same and truth.dtype.kind == "f" and scores.shape[CLASS_AXIS] > 1


def is_scores_of_classes(scores: Array, truth: Array) -> bool:
    """Tell whether outputs are scores of (more than one) class beside labels."""
    if scores.ndim != truth.ndim + 1 or scores.ndim <= CLASS_AXIS or scores.shape[CLASS_AXIS] == 1:
        return False
    return bool(scores.shape[:CLASS_AXIS] + scores.shape[CLASS_AXIS + 1 :] == truth.shape)


def without_unit_axis(scores: Array, truth: Array) -> Array:
    """Return scores (N, 1, ...) of one class as (N, ...), if the targets have that shape."""
    one_more = scores.ndim == truth.ndim + 1 and scores.ndim > CLASS_AXIS
    return scores.squeeze(CLASS_AXIS) if one_more and scores.shape[CLASS_AXIS] == 1 else scores


def as_labels(name: str, truth: Array) -> Array:
    """Return labels as integers; floats will do if they are whole numbers."""
    if truth.dtype.kind != "f":
        return truth.astype(np.int64)
    labels = truth.astype(np.int64) if np.isfinite(truth).all() else np.zeros((), np.int64)
    if labels.shape != truth.shape or not np.array_equal(labels, truth):
        raise ArgumentError(f"{name}: targets must be labels, i.e. whole numbers")
    return labels
