"""Metrics equal scikit-learn's, whatever the batches."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.train.metrics import (
    AUC,
    F1,
    MAE,
    METRICS,
    MSE,
    R2,
    RMSE,
    Accuracy,
    ConfusionMatrix,
    FunctionMetric,
    Mean,
    Metric,
    Perplexity,
    Precision,
    Recall,
    TopKAccuracy,
    get_metric,
    named_metrics,
)

reference = pytest.importorskip("sklearn.metrics")
RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=(60, 4)).astype("float32")
LABELS = np.where(RNG.random(60) < 0.6, SCORES.argmax(1), RNG.integers(0, 3, 60))
GUESSES = SCORES.argmax(1)
BINARY = (RNG.random(60) < 0.4).astype(np.int64)
CHANCES = np.clip(BINARY * 0.3 + RNG.random(60).round(1) * 0.7, 0, 1)  # with ties
PREDICTED = RNG.normal(size=(60, 2))
TRUE = PREDICTED * 0.7 + RNG.normal(size=(60, 2)) + 1e3


def streamed(metric: Metric, output: Any, target: Any, sizes: tuple[int, ...] = (7, 0, 33)) -> Any:
    """Return the value after batches of odd sizes, with a state saved and loaded in between."""
    start = 0
    for size in (*sizes, len(target)):
        stop = min(start + size, len(target))
        metric.update(wf.tensor(output[start:stop]), wf.tensor(target[start:stop]))
        start = stop
        state = metric.state_dict()
        other = copy.deepcopy(metric)
        other.reset()
        other.load_state_dict(state)
        metric = other
    return metric.compute()


CASES: dict[str, tuple[Metric, Any, Any, Any]] = {
    "accuracy": (Accuracy(), SCORES, LABELS, reference.accuracy_score(LABELS, GUESSES)),
    "top-2": (
        TopKAccuracy(2),
        SCORES,
        LABELS,
        reference.top_k_accuracy_score(LABELS, SCORES, k=2, labels=range(4)),
    ),
    "confusion": (
        ConfusionMatrix(),
        SCORES,
        LABELS,
        reference.confusion_matrix(LABELS, GUESSES, labels=range(4)),
    ),
    "auc": (AUC(), CHANCES, BINARY, reference.roc_auc_score(BINARY, CHANCES)),
    "auc-many": (
        AUC(),
        SCORES[:, :3],
        LABELS % 3,
        np.mean([reference.roc_auc_score(c == LABELS % 3, SCORES[:, c]) for c in range(3)]),
    ),
    "mse": (MSE(), PREDICTED, TRUE, reference.mean_squared_error(TRUE, PREDICTED)),
    "rmse": (RMSE(), PREDICTED, TRUE, reference.mean_squared_error(TRUE, PREDICTED) ** 0.5),
    "mae": (MAE(), PREDICTED, TRUE, reference.mean_absolute_error(TRUE, PREDICTED)),
    "r2": (R2(), PREDICTED, TRUE, reference.r2_score(TRUE, PREDICTED)),
    "r2-one": (R2(), PREDICTED[:, 0], TRUE[:, 0], reference.r2_score(TRUE[:, 0], PREDICTED[:, 0])),
}
for _metric, _score in [
    (Precision, reference.precision_score),
    (Recall, reference.recall_score),
    (F1, reference.f1_score),
]:
    for _average in ("macro", "micro", "weighted", None):
        CASES[f"{_metric.name}-{_average}"] = (
            _metric(average=_average),
            SCORES,
            LABELS,
            _score(LABELS, GUESSES, average=_average, zero_division=0),
        )
    CASES[f"{_metric.name}-binary"] = (
        _metric(average="binary"),
        CHANCES,
        BINARY,
        _score(BINARY, CHANCES > 0.5),
    )


@pytest.mark.parametrize("case", CASES)
def test_equals_scikit_learn(case: str) -> None:
    metric, output, target, expected = CASES[case]
    np.testing.assert_allclose(streamed(metric, output, target), expected, rtol=1e-6)


@pytest.mark.parametrize("normalize", ["true", "pred", "all"])
def test_normalized_confusion(normalize: str) -> None:
    found = ConfusionMatrix(normalize=normalize)(GUESSES, LABELS)
    expected = reference.confusion_matrix(LABELS, GUESSES, labels=range(4), normalize=normalize)
    np.testing.assert_allclose(found, expected)


def test_perplexity() -> None:
    logs = SCORES - np.log(np.exp(SCORES.astype(float)).sum(1, keepdims=True))
    expected = math.exp(-logs[np.arange(60), LABELS].mean())
    assert streamed(Perplexity(), SCORES, LABELS) == pytest.approx(expected, rel=1e-6)
    probabilities = np.exp(logs)
    assert Perplexity(from_logits=False)(probabilities, LABELS) == pytest.approx(expected)
    tokens = SCORES.reshape(6, 10, 4)
    assert Perplexity(axis=-1)(tokens, LABELS.reshape(6, 10)) == pytest.approx(expected, rel=1e-6)
    ignored = np.where(np.arange(60) < 30, LABELS, -100)
    half = math.exp(-logs[np.arange(30), LABELS[:30]].mean())
    assert Perplexity()(SCORES, ignored) == pytest.approx(half, rel=1e-6)
    assert Perplexity()([[0.0, 1e6]], [0]) == math.inf
    assert Perplexity()([[1e30, -1e30]], [0]) == 1.0


def test_auc_in_bins_is_close_and_exact_for_few_levels() -> None:
    levels = (CHANCES * 10).round() / 10
    expected = reference.roc_auc_score(BINARY, levels)
    assert streamed(AUC(bins=1000), levels, BINARY) == pytest.approx(expected, abs=1e-9)
    pair = np.stack([1 - CHANCES, CHANCES], 1)
    assert AUC()(pair, BINARY) == pytest.approx(reference.roc_auc_score(BINARY, CHANCES))


@pytest.mark.parametrize(
    ("output", "target"),
    [
        ([[0.1, 0.9], [0.8, 0.2]], [1, 0]),
        ([[0.1, 0.9], [0.8, 0.2]], [[0.0, 1.0], [1.0, 0.0]]),  # one-hot
        ([[0.9], [0.2]], [1, 0]),  # one score of shape (n, 1)
        ([0.9, 0.2], [1.0, 0.0]),  # targets of BCE are floats
        ([[0.9], [0.2]], [[1], [0]]),
        ([1, 0], [1, 0]),  # labels
        ([True, False], [1, 0]),
        (np.moveaxis(np.eye(2)[[[1, 0]]], -1, 1), [[1, 0]]),  # pixels: (1, 2, 2) beside (1, 2)
    ],
)
def test_shapes_that_are_understood(output: Any, target: Any) -> None:
    assert Accuracy()(output, target) == 1.0
    assert F1()(output, target) == 1.0


def test_thresholds_and_ignored_targets() -> None:
    assert Accuracy(threshold=0.0)([-0.1, 0.2], [0, 1]) == 1.0
    assert Accuracy(ignore_index=-1)([0, 1, 1], [0, 1, -1]) == 1.0
    assert TopKAccuracy(1, ignore_index=9)([[1.0, 0.0], [1.0, 0.0]], [0, 9]) == 1.0
    assert TopKAccuracy(10)([[1.0, 0.0]], [1]) == 1.0
    assert ConfusionMatrix(num_classes=3)([0], [0]).shape == (3, 3)


@pytest.mark.parametrize("name", METRICS)
def test_nothing_gives_nan(name: str) -> None:
    value = get_metric(name).compute()
    assert np.size(value) == 0 or math.isnan(value)


def test_nan_and_infinity_go_through() -> None:
    assert math.isnan(MSE()([float("nan")], [1.0]))
    assert MAE()([float("inf")], [1.0]) == math.inf
    assert math.isnan(AUC()([0.1, 0.2], [1, 1]))
    assert R2()([1.0, 1.0], [2.0, 2.0]) == 0.0
    assert R2()([2.0, 2.0], [2.0, 2.0]) == 1.0


def test_half_precision_is_summed_in_double() -> None:
    x = np.full(5000, 300, "float16")
    assert MSE()(x, np.zeros_like(x)) == 90000.0
    assert Mean()(x, None) == 300.0


def test_call_leaves_what_was_gathered() -> None:
    metric = Accuracy()
    metric.update([1], [1])
    assert metric([0], [1]) == 0.0
    assert metric.compute() == 1.0


def test_function_metric_weights_by_samples() -> None:
    metric = FunctionMetric(lambda output, target: float(np.mean(output)), "mean")
    metric.update(np.array([1.0]), np.zeros(1))
    metric.update(np.array([4.0, 4.0, 4.0]), np.zeros(3))
    assert metric.compute() == 3.25
    rows = FunctionMetric(lambda output, target: abs(output - target))
    assert rows(wf.tensor([1.0, 4.0]), wf.tensor([0.0, 0.0])) == 2.5


def test_names() -> None:
    found = named_metrics(["acc", Accuracy(), "accuracy", TopKAccuracy(3), MSE])
    assert list(found) == ["acc", "accuracy", "accuracy_1", "top_3_accuracy", "mse"]
    assert list(named_metrics({"mine": "mse"})) == ["mine"]
    assert named_metrics(None) == {}
    assert list(named_metrics("mae")) == ["mae"]


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: get_metric("acuracy"), "no metric 'acuracy'; did you mean 'accuracy'?"),
        (lambda: get_metric("zzz"), "there are: accuracy"),
        (lambda: get_metric(3), "Received: 3"),
        (lambda: Accuracy()(np.zeros((3, 4)), np.zeros((5,), int)), r"\(3, 4\) and \(5,\)"),
        (lambda: Accuracy()([0.5], [0.5]), "targets must be labels"),
        (lambda: Accuracy()([0.5], [float("nan")]), "targets must be labels"),
        (lambda: Accuracy()(["a"], [1]), "takes real numbers"),
        (lambda: MSE()(np.zeros((3, 1)), np.zeros(3)), r"Received: \(3, 1\) and \(3,\)"),
        (lambda: TopKAccuracy(0), "k must be an integer from 1 on"),
        (lambda: TopKAccuracy(2)([0, 1], [0, 1]), r"expected scores \(N, C, ...\)"),
        (lambda: ConfusionMatrix(num_classes=2)([2], [0]), "less than 2. Received: 2"),
        (lambda: ConfusionMatrix()([-1], [0]), "Received: -1"),
        (lambda: ConfusionMatrix(normalize="rows"), "normalize must be None"),
        (lambda: Precision(average="mean"), "average must be one of"),
        (lambda: F1(average="binary")([0, 1, 2], [0, 1, 2]), "3 classes; choose 'macro'"),
        (lambda: AUC()([float("nan"), 1.0], [0, 1]), "a score is NaN"),
        (lambda: AUC(bins=1), "bins must be an integer from 2 on"),
        (lambda: AUC(bins=10)([2.0, 1.0], [0, 1]), "from 0 to 1; apply sigmoid"),
        (lambda: AUC()(np.zeros((2, 3, 1)), [0, 1]), "expected scores"),
        (lambda: Perplexity()([0.0], [0]), "need a class axis"),
        (lambda: Perplexity()([[0.0, 1.0]], [2]), "outside 0 to 1"),
        (lambda: Perplexity()(np.zeros((2, 3, 4)), np.zeros((2, 3), int)), "do not fit"),
        (lambda: FunctionMetric(3), "must be callable"),
    ],
)
def test_bad_arguments(act: Any, message: str) -> None:
    with pytest.raises(WeftError, match=message):
        act()
