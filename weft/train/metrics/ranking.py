"""Area under the ROC curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ..checks import optional_int
from .inputs import CLASS_AXIS, Array, as_array, as_labels, is_scores_of_classes, without_unit_axis
from .metric import Metric


class AUC(Metric):
    """The probability that a positive sample has a higher score than a negative one.

    Scores of several classes give the mean of each class against the rest, over the classes that
    occur. It is NaN while only one class has occurred.

    bins   None keeps all scores and is exact; a number counts scores in so many equal bins of
           [0, 1], which takes constant memory and needs probabilities

    >>> AUC()([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """

    name = "auc"
    _saved = ("scores", "labels", "histogram")

    def __init__(self, bins: int | None = None) -> None:
        self.bins = optional_int("auc: bins", bins, 2)
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._parts: list[tuple[Array, Array]] = []
        self.histogram: Array = np.zeros((0, 2, self.bins or 0), np.int64)

    def update(self, output: Any, target: Any) -> None:
        """Take in the scores of a batch."""
        scores, labels = _columns(as_array(output), as_array(target))
        if np.isnan(scores).any():
            raise ArgumentError("auc: a score is NaN, which has no rank")
        if self.bins is None:
            self._parts.append((scores, labels))
        else:
            self._count(scores, labels)

    def compute(self) -> float:
        """Return the area."""
        areas = self._exact_areas() if self.bins is None else self._binned_areas()
        known = [area for area in areas if not np.isnan(area)]
        return float(np.mean(known)) if known else float("nan")

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the scores, or the counts, of others."""
        scores, histogram = np.asarray(state["scores"]), np.asarray(state["histogram"])
        if len(scores):
            self._parts.append((scores, np.asarray(state["labels"])))
        if len(histogram):
            self.histogram = histogram + (self.histogram if len(self.histogram) else 0)

    # -- exact ---------------------------------------------------------------------------------

    @property
    def scores(self) -> Array:
        """Return all scores so far, one row for each sample."""
        return np.concatenate([s for s, _ in self._parts]) if self._parts else np.zeros((0, 1))

    @scores.setter
    def scores(self, scores: Array) -> None:
        self._parts = [(scores, np.zeros(len(scores), np.int64))] if len(scores) else []

    @property
    def labels(self) -> Array:
        """Return all labels so far."""
        parts = [labels for _, labels in self._parts]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    @labels.setter
    def labels(self, labels: Array) -> None:
        self._parts = [(scores, labels) for scores, _ in self._parts]

    def _exact_areas(self) -> list[float]:
        scores, labels = self.scores, self.labels
        if scores.shape[1] == 1:
            return [_area(scores[:, 0], labels == 1)]
        return [_area(scores[:, c], labels == c) for c in range(scores.shape[1])]

    # -- in bins -------------------------------------------------------------------------------

    def _count(self, scores: Array, labels: Array) -> None:
        assert self.bins is not None
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise ArgumentError("auc: bins take scores from 0 to 1; apply sigmoid or softmax")
        if not len(self.histogram):
            self.histogram = np.zeros((scores.shape[1], 2, self.bins), np.int64)
        places = np.minimum((scores * self.bins).astype(np.int64), self.bins - 1)
        for c in range(scores.shape[1]):
            positive = labels == (c if scores.shape[1] > 1 else 1)
            for row, chosen in enumerate((~positive, positive)):
                found = np.bincount(places[chosen, c], minlength=self.bins)
                self.histogram[c, row] += found

    def _binned_areas(self) -> list[float]:
        return [_area_of_counts(negative, positive) for negative, positive in self.histogram]


def _columns(scores: Array, target: Array) -> tuple[Array, Array]:
    """Return scores as (samples, classes) and labels as (samples,)."""
    labels = as_labels("auc", target).reshape(-1)
    if is_scores_of_classes(scores, target):
        classes = scores.shape[CLASS_AXIS]
        rows = np.moveaxis(scores, CLASS_AXIS, -1).reshape(-1, classes)
        # Two columns are one decision; the other column says the same again.
        return (rows[:, 1:] if classes == 2 else rows).astype(np.float64), labels
    scores = without_unit_axis(scores, target)
    if scores.shape != target.shape:
        raise ShapeError(
            "auc: expected scores (N, C, ...) beside labels (N, ...), or one shape. "
            f"Received: {scores.shape} and {target.shape}"
        )
    return scores.astype(np.float64).reshape(-1, 1), labels


def _area(scores: Array, positive: Array) -> float:
    """Return the area from ranks, ties counting half (Mann & Whitney 1947)."""
    levels, places = np.unique(scores, return_inverse=True)
    negatives = np.bincount(places[~positive], minlength=len(levels))
    return _area_of_counts(negatives, np.bincount(places[positive], minlength=len(levels)))


def _area_of_counts(negative: Array, positive: Array) -> float:
    pairs = int(negative.sum()) * int(positive.sum())
    if not pairs:
        return float("nan")
    below = np.cumsum(negative) - negative
    return float((positive * (below + 0.5 * negative)).sum() / pairs)
