"""Perplexity of language models."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from .inputs import Array, as_array, as_labels
from .metric import Averaged


class Perplexity(Averaged):
    """The exponential of the mean negative log likelihood per token.

    axis           of the classes in the output: (N, C, ...) has 1, (N, T, C) has -1
    ignore_index   a target that counts for nothing
    from_logits    False if outputs are probabilities

    >>> round(Perplexity()([[0.0, 0.0, 0.0, 0.0]], [2]), 6)
    4.0
    """

    name = "perplexity"
    larger_is_better = False

    def __init__(
        self, axis: int = 1, ignore_index: int | None = -100, from_logits: bool = True
    ) -> None:
        self.axis, self.ignore_index, self.from_logits = axis, ignore_index, from_logits
        super().__init__()

    def update(self, output: Any, target: Any) -> None:
        """Add the negative log likelihoods of a batch."""
        scores, labels = as_array(output), as_labels(self.name, as_array(target))
        if scores.ndim < 2 or not -scores.ndim <= self.axis < scores.ndim:
            raise ShapeError(f"{self.name}: outputs need a class axis. Received: {scores.shape}")
        rows = np.moveaxis(scores, self.axis, -1).astype(np.float64)
        if rows.shape[:-1] != labels.shape:
            raise ShapeError(
                f"{self.name}: outputs of shape {scores.shape} with classes on axis {self.axis} "
                f"do not fit targets of shape {labels.shape}"
            )
        self._add(rows.reshape(-1, rows.shape[-1]), labels.reshape(-1))

    def _add(self, rows: Array, labels: Array) -> None:
        kept = (
            np.ones(labels.shape, bool)
            if self.ignore_index is None
            else (labels != self.ignore_index)
        )
        rows, labels = rows[kept], labels[kept]
        if labels.size and (labels.min() < 0 or labels.max() >= rows.shape[1]):
            raise ArgumentError(f"{self.name}: a label is outside 0 to {rows.shape[1] - 1}")
        with np.errstate(all="ignore"):
            self.total -= float(self._log_likelihood(rows, labels).sum())
        self.count += labels.size

    def _log_likelihood(self, rows: Array, labels: Array) -> Array:
        picked = rows[np.arange(len(labels)), labels]
        if not self.from_logits:
            return np.asarray(np.log(picked))
        if not len(rows):
            return picked
        top = rows.max(axis=1)
        return np.asarray(picked - top - np.log(np.exp(rows - top[:, None]).sum(axis=1)))

    def compute(self) -> float:
        """Return the perplexity; infinity where it is too large for a float."""
        try:
            return math.exp(super().compute())
        except OverflowError:
            return math.inf
