"""Accuracies and largest values against loops."""

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError

from .checking import RNG, layer, normal


def accuracy(scores, labels, k=1, ignored=None):
    """Count as Caffe does: of equal scores, others come first."""
    rows = np.moveaxis(scores, 1, -1).reshape(-1, scores.shape[1])
    right, counted = np.zeros(scores.shape[1]), np.zeros(scores.shape[1])
    for row, label in zip(rows, labels.ravel(), strict=True):
        if label == ignored:
            continue
        counted[label] += 1
        right[label] += (row >= row[label]).sum() - 1 < k
    with np.errstate(invalid="ignore"):
        return right.sum() / counted.sum(), np.nan_to_num(right / counted)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("ignored", [None, 2])
@pytest.mark.parametrize("inner", [(), (2, 3)])
def test_accuracy(k, ignored, inner):
    scores = np.round(normal(6, 4, *inner), 0)  # many are equal
    labels = RNG.integers(0, 4, (6, *inner))
    more = "" if ignored is None else f"ignore_label: {ignored}"
    text = f'type: "Accuracy" top: "a" top: "c" accuracy_param {{ top_k: {k} {more} }}'
    whole, each = layer(text, scores, labels)(wf.tensor(scores), wf.tensor(labels * 1.0))
    expected = accuracy(scores, labels, k, ignored)
    np.testing.assert_allclose(whole.numpy(), expected[0])
    np.testing.assert_allclose(each.numpy(), expected[1])


def test_labels_must_be_as_many_as_predictions():
    with pytest.raises(CaffeError, match="Number of labels must match number of predictions"):
        layer('type: "Accuracy"', normal(4, 3, 2), normal(4))
    with pytest.raises(
        CaffeError, match="top_k must be less than or equal to the number of classes"
    ):
        layer('type: "Accuracy" accuracy_param { top_k: 5 }', normal(4, 3), normal(4))


def test_largest_values_of_examples():
    x = np.array([[3.0, 1.0, 3.0], [0.0, 5.0, 2.0]])
    text = 'type: "ArgMax" argmax_param { top_k: 2 out_max_val: true }'
    found = layer(text, x)(wf.tensor(x))
    assert found.shape == (2, 2, 2)
    assert found.tolist() == [[[2, 0], [3, 3]], [[1, 2], [5, 2]]]  # of equal ones, the last first
    assert layer('type: "ArgMax"', x)(wf.tensor(x)).shape == (2, 1, 1)
    flat = normal(2, 3, 2, 2)
    assert layer('type: "ArgMax"', flat)(wf.tensor(flat)).shape == (2, 1, 1, 1)


def test_largest_values_along_an_axis():
    x = normal(2, 4, 3)
    text = 'type: "ArgMax" argmax_param { axis: 1 top_k: 2 }'
    order = np.argsort(-x, 1)[:, :2]
    np.testing.assert_array_equal(layer(text, x)(wf.tensor(x)).numpy(), order)
    text = 'type: "ArgMax" argmax_param { axis: 1 top_k: 2 out_max_val: true }'
    values = np.take_along_axis(x, order, 1)
    np.testing.assert_array_equal(layer(text, x)(wf.tensor(x)).numpy(), values)


def test_top_k_is_bounded():
    with pytest.raises(CaffeError, match="top_k must be at most 4"):
        layer('type: "ArgMax" argmax_param { axis: 1 top_k: 5 }', normal(2, 4))
