"""Measures of how good predictions are; no gradients go through them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ._common import function


@function
def accuracy(y: Tensor, t: Tensor, ignore_label: int | None = None) -> Tensor:
    """Return the share of examples whose largest score is that of their label."""
    found = F.cast(F.argmax(y.detach(), 1), t.dtype)
    hits = F.cast(F.reshape(found, t.shape) == t, y.dtype)
    if ignore_label is None:
        return F.mean(hits)
    known = F.cast(F.not_equal(t, ignore_label), y.dtype)
    return F.sum(hits * known) / F.maximum(F.sum(known), 1.0)


@function
def binary_accuracy(y: Tensor, t: Tensor) -> Tensor:
    """Return the share of scores whose sign is that of their label; labels -1 do not count."""
    known = F.cast(F.not_equal(t, -1), y.dtype)
    hits = F.cast((y.detach() >= 0) == F.equal(t, 1), y.dtype)
    return F.sum(hits * known) / F.maximum(F.sum(known), 1.0)


@function
def r2_score(
    pred: Tensor, true: Tensor, sample_weight: Any = None, multioutput: Any = "uniform_average"
) -> Tensor:
    """Return the share of the variance that predictions explain."""
    pred, true = pred.detach(), true.detach()
    left = F.sum(F.square(pred - true), 0)
    whole = F.sum(F.square(true - F.mean(true, 0)), 0)
    scores = F.where(
        F.not_equal(whole, 0), 1 - left / F.where(F.not_equal(whole, 0), whole, 1.0), 0.0
    )
    return scores if multioutput == "raw_values" else F.mean(scores)


@function
def classification_summary(
    y: Tensor, t: Tensor, label_num: int | None = None, beta: float = 1.0, ignore_label: int = -1
) -> tuple[Tensor, ...]:
    """Return precision, recall, F score and number of examples of each class."""
    count = int(t.numpy().max(initial=-1)) + 1 if label_num is None else label_num
    known = F.not_equal(t, ignore_label)
    found, true = F.argmax(y.detach(), 1), F.where(known, t, F.zeros_like(t))
    weight = F.expand_dims(F.cast(known, y.dtype), -1)
    told = F.cast(F.one_hot(F.reshape(found, t.shape), y.shape[1]), y.dtype) * weight
    told = (
        told[..., :count]
        if count <= y.shape[1]
        else F.pad(told, (*[(0, 0)] * (told.ndim - 1), (0, count - y.shape[1])))
    )
    wanted = F.cast(F.one_hot(true, count), y.dtype) * weight
    axes = tuple(range(told.ndim - 1))
    right, all_told, support = F.sum(told * wanted, axes), F.sum(told, axes), F.sum(wanted, axes)
    precision, recall = _share(right, all_told), _share(right, support)
    both = precision * beta**2 + recall
    score = _share((1 + beta**2) * precision * recall, both)
    return precision, recall, score, F.cast(support, np.int32)


def _share(part: Tensor, whole: Tensor) -> Tensor:
    return F.where(F.not_equal(whole, 0), part / F.where(F.not_equal(whole, 0), whole, 1.0), 0.0)


def precision(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return precision and support of each class."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[0], found[3]


def recall(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return recall and support of each class."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[1], found[3]


def f1_score(y: Any, t: Any, label_num: int | None = None, ignore_label: int = -1) -> Any:
    """Return the F1 score and support of each class."""
    found = classification_summary(y, t, label_num, 1.0, ignore_label)
    return found[2], found[3]
