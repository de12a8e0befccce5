"""Metrics of classification that follow from counts: accuracy, confusion, precision, recall, F1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ..checks import checked_int, optional_int
from .inputs import (
    CLASS_AXIS,
    Array,
    as_array,
    as_labels,
    is_class_probabilities,
    is_scores_of_classes,
    labels_of,
)
from .metric import Metric

AVERAGES = ("binary", "macro", "micro", "weighted", None)


class Accuracy(Metric):
    """The share of samples whose label was predicted.

    threshold      above which a single score means class 1 (0.5 for probabilities, 0 for logits)
    ignore_index   a target that counts for nothing

    >>> accuracy = Accuracy()
    >>> accuracy.update([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> round(accuracy.compute(), 4)
    0.6667
    """

    name = "accuracy"
    _saved = ("correct", "count")

    def __init__(self, threshold: float = 0.5, ignore_index: int | None = None) -> None:
        self.threshold, self.ignore_index = threshold, ignore_index
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self.correct = self.count = 0

    def update(self, output: Any, target: Any) -> None:
        """Count the samples of a batch, and the correct ones."""
        predicted, true = labels_of(self.name, output, target, self.threshold, self.ignore_index)
        self.correct += int((predicted == true).sum())
        self.count += true.size

    def compute(self) -> float:
        """Return the share of correct samples."""
        return self.correct / self.count if self.count else float("nan")

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the counts of others."""
        self.correct += int(state["correct"])
        self.count += int(state["count"])


class TopKAccuracy(Accuracy):
    """The share of samples whose label is among the k classes with the highest scores.

    Of classes with equal scores, those with lower numbers come first.

    >>> TopKAccuracy(k=2)([[0.1, 0.6, 0.3], [0.2, 0.3, 0.5]], [2, 0])
    0.5
    """

    name = "top_k_accuracy"

    def __init__(self, k: int = 5, ignore_index: int | None = None) -> None:
        self.k = checked_int("top_k_accuracy: k", k, 1)
        self.name = f"top_{k}_accuracy"
        super().__init__(ignore_index=ignore_index)

    def update(self, output: Any, target: Any) -> None:
        """Count the samples of a batch, and those with the label among the best k."""
        scores, truth = as_array(output), as_array(target)
        if is_class_probabilities(scores, truth):
            truth = truth.argmax(CLASS_AXIS)
        if not is_scores_of_classes(scores, truth):
            raise ShapeError(
                f"{self.name}: expected scores (N, C, ...) beside labels (N, ...). "
                f"Received: {scores.shape} and {truth.shape}"
            )
        rows = np.moveaxis(scores, CLASS_AXIS, -1).reshape(-1, scores.shape[CLASS_AXIS])
        true = as_labels(self.name, truth).reshape(-1)
        kept = np.ones(true.shape, bool) if self.ignore_index is None else true != self.ignore_index
        rows, true = rows[kept], true[kept]
        best = np.argsort(-rows.astype(np.float64), axis=1, kind="stable")[:, : self.k]
        self.correct += int((best == true[:, None]).any(axis=1).sum())
        self.count += true.size


class ConfusionMatrix(Metric):
    """How often each class (row) was predicted as each class (column).

    num_classes    size of the matrix; without it, it grows with the labels that occur
    normalize      None for counts, "true", "pred" or "all" for shares of rows, columns or all

    >>> ConfusionMatrix()([0, 1, 1], [0, 1, 0])
    array([[1, 1],
           [0, 1]])
    """

    name = "confusion_matrix"
    _saved = ("counts",)

    def __init__(
        self,
        num_classes: int | None = None,
        normalize: str | None = None,
        threshold: float = 0.5,
        ignore_index: int | None = None,
    ) -> None:
        if normalize not in (None, "true", "pred", "all"):
            raise ArgumentError(
                f"{self.name}: normalize must be None, 'true', 'pred' or 'all'. "
                f"Received: {normalize!r}"
            )
        self.num_classes = optional_int(f"{self.name}: num_classes", num_classes, 1)
        self.normalize = normalize
        self.threshold, self.ignore_index = threshold, ignore_index
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        size = self.num_classes or 0
        self.counts: Array = np.zeros((size, size), np.int64)

    def update(self, output: Any, target: Any) -> None:
        """Count the pairs of true and predicted labels of a batch."""
        predicted, true = labels_of(self.name, output, target, self.threshold, self.ignore_index)
        if not true.size:
            return
        least, most = min(predicted.min(), true.min()), max(predicted.max(), true.max())
        self._make_room(int(least), int(most))
        size = len(self.counts)
        self.counts += np.bincount(true * size + predicted, minlength=size**2).reshape(size, size)

    def _make_room(self, least: int, most: int) -> None:
        if least < 0 or (self.num_classes is not None and most >= self.num_classes):
            limit = "" if self.num_classes is None else f" less than {self.num_classes}"
            wrong = least if least < 0 else most
            raise ArgumentError(
                f"{self.name}: labels must be whole numbers from 0 on{limit}. Received: {wrong}"
            )
        missing = most + 1 - len(self.counts)
        if missing > 0:
            self.counts = np.pad(self.counts, (0, missing))

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the counts of others."""
        counts = np.asarray(state["counts"])
        self._make_room(0, len(counts) - 1)
        self.counts[: len(counts), : len(counts)] += counts

    def compute(self) -> Any:
        """Return the matrix; shares of nothing are 0."""
        counts = self.counts
        if self.normalize is None:
            return counts.copy()
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        total = counts.sum(axis=axis, keepdims=True)
        return np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)


class _CountMetric(ConfusionMatrix):
    """Base of what follows from the true and false positives of each class.

    average   "macro": the mean over the classes that occur; "weighted": weighted by how often they
              do; "micro": over all samples; "binary": of class 1 alone; None: one value per class

    Where there is nothing to divide by, the value is 0, as in scikit-learn.
    """

    def __init__(
        self,
        average: str | None = "macro",
        num_classes: int | None = None,
        threshold: float = 0.5,
        ignore_index: int | None = None,
    ) -> None:
        if average not in AVERAGES:
            raise ArgumentError(
                f"{self.name}: average must be one of {AVERAGES}. Received: {average!r}"
            )
        self.average = average
        super().__init__(num_classes, None, threshold, ignore_index)

    def ratio(self, hit: Array, predicted: Array, true: Array) -> Array:
        """Return the value from true positives, predicted and actual counts."""
        raise NotImplementedError

    def compute(self) -> Any:
        """Return the value, averaged over the classes as asked for."""
        hit = np.diag(self.counts).astype(np.float64)
        predicted, true = self.counts.sum(0), self.counts.sum(1)
        if not self.counts.sum():
            return float("nan")
        if self.average == "micro":
            return float(self.ratio(hit.sum(), predicted.sum(), true.sum()))
        values = self.ratio(hit, predicted, true)
        if self.average == "binary":
            return self._of_class_one(values)
        if self.average is None:
            return values
        weights = true if self.average == "weighted" else (predicted + true > 0)
        return float((values * weights).sum() / max(weights.sum(), 1))

    def _of_class_one(self, values: Array) -> float:
        if len(values) > 2:
            raise ArgumentError(
                f"{self.name}: average='binary' takes the classes 0 and 1. Received: "
                f"{len(values)} classes; choose 'macro', 'micro', 'weighted' or None"
            )
        return float(values[1]) if len(values) == 2 else 0.0


class Precision(_CountMetric):
    """The share of positives among what was predicted to be positive.

    >>> Precision(average="binary")([0, 1, 1, 1], [0, 1, 0, 1])
    0.6666666666666666
    """

    name = "precision"

    def ratio(self, hit: Array, predicted: Array, true: Array) -> Array:
        """Return hits over predictions."""
        return _divided(hit, predicted)


class Recall(_CountMetric):
    """The share of positives that were predicted to be positive.

    >>> Recall(average="binary")([0, 1, 0, 1], [0, 1, 1, 1])
    0.6666666666666666
    """

    name = "recall"

    def ratio(self, hit: Array, predicted: Array, true: Array) -> Array:
        """Return hits over positives."""
        return _divided(hit, true)


class F1(_CountMetric):
    """The harmonic mean of precision and recall.

    >>> F1(average="binary")([0, 1, 1, 1], [0, 1, 0, 1])
    0.8
    """

    name = "f1"

    def ratio(self, hit: Array, predicted: Array, true: Array) -> Array:
        """Return 2 hits / (predictions + positives)."""
        return _divided(2 * hit, predicted + true)


def _divided(x: Array, y: Array) -> Array:
    y = np.asarray(y, np.float64)
    return np.asarray(np.divide(x, y, out=np.zeros(y.shape), where=y > 0))
