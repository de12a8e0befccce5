"""Losses against loops over examples and classes."""

import math

import numpy as np
import pytest

import weft as wf
from weft.caffe.binary import serialize_message
from weft.caffe.blobs import array_blob
from weft.caffe.errors import CaffeError

from .checking import RNG, apart, check, layer, normal

SCORES = normal(3, 4, 2)
LABELS = RNG.integers(0, 4, (3, 2))
LABELS[0, 0] = 1


def probabilities(x):
    e = np.exp(x)
    return e / e.sum(1, keepdims=True)


def classified(term, scores, labels, mode, ignored):
    """Sum a term over places that count, and divide by what the mode says."""
    p = probabilities(scores)
    total, counted = 0.0, 0
    for n, i in np.ndindex(*labels.shape):
        if labels[n, i] != ignored:
            total += term(p[n, :, i], int(labels[n, i]))
            counted += 1
    by = {"FULL": labels.size, "VALID": counted, "BATCH_SIZE": len(labels), "NONE": 1}[mode]
    return np.asarray(total / by)


@pytest.mark.parametrize("ignored", [None, 1])
@pytest.mark.parametrize("mode", ["FULL", "VALID", "BATCH_SIZE", "NONE"])
def test_softmax_with_loss(mode, ignored):
    def reference(scores, labels):
        return classified(lambda p, t: -math.log(p[t]), scores, labels, mode, ignored)

    more = "" if ignored is None else f"ignore_label: {ignored}"
    text = f'type: "SoftmaxWithLoss" loss_param {{ normalization: {mode} {more} }}'
    check(text, SCORES, LABELS, reference=reference, differentiable=(0,))


@pytest.mark.parametrize(("normalize", "mode"), [("true", "VALID"), ("false", "BATCH_SIZE")])
def test_the_old_option_normalize(normalize, mode):
    def reference(scores, labels):
        return classified(lambda p, t: -math.log(p[t]), scores, labels, mode, None)

    text = f'type: "SoftmaxWithLoss" loss_param {{ normalize: {normalize} }}'
    check(text, SCORES, LABELS, reference=reference, differentiable=(0,))


def test_the_second_top_is_the_probabilities():
    def reference(scores, labels):
        loss = classified(lambda p, t: -math.log(p[t]), scores, labels, "VALID", None)
        return loss, probabilities(scores)

    text = 'type: "SoftmaxWithLoss" top: "l" top: "p"'
    check(text, SCORES, LABELS, reference=reference, differentiable=(0,))


def test_the_loss_stands_where_caffes_does_and_its_gradient_does_not():
    made = layer('type: "SoftmaxWithLoss"', normal(1, 2), normal(1))
    x = wf.tensor([[500.0, 0.0]], requires_grad=True)
    loss = made(x, wf.tensor([1.0]))
    assert loss.item() == pytest.approx(87.33655)
    loss.backward()
    assert x.grad.tolist() == [[1.0, -1.0]]


def infogain(scores, labels, h):
    h = h.reshape(4, 4)
    return classified(lambda p, t: -(h[t] * np.log(p)).sum(), scores, labels, "VALID", None)


def test_infogain_from_a_bottom():
    matrix = np.abs(normal(4, 4))
    check('type: "InfogainLoss"', SCORES, LABELS, matrix, reference=infogain, differentiable=(0,))


def test_infogain_from_a_file(tmp_path):
    matrix = np.abs(normal(4, 4))
    path = tmp_path / "h.binaryproto"
    path.write_bytes(serialize_message(array_blob(matrix)))
    text = f'type: "InfogainLoss" infogain_loss_param {{ source: "{path}" }}'
    check(text, SCORES, LABELS, reference=lambda s, t: infogain(s, t, matrix), differentiable=(0,))


def test_multinomial_logistic_loss():
    p = probabilities(normal(3, 4))

    def reference(p, t):
        rows = np.arange(3), np.rint(t).astype(int)
        return np.asarray(-np.log(p[rows]).sum() / 3)

    text = 'type: "MultinomialLogisticLoss"'
    check(text, p, [0, 3, 1], reference=reference, differentiable=(0,))


@pytest.mark.parametrize(
    ("options", "by", "ignored"),
    [
        ("", 3, None),
        ("normalization: FULL", 12, None),
        ("normalization: VALID ignore_label: 1", 7, 1),
        ("normalize: true", 12, None),
        ("normalization: NONE ignore_label: 0", 1, 0),
    ],
)
def test_sigmoid_cross_entropy_loss(options, by, ignored):
    targets = np.array([0, 1, 1, 0, 0, 0, 1, 1, 0, 1, 0, 0.0]).reshape(3, 4)

    def reference(x, t):
        p = 1 / (1 + np.exp(-x))
        losses = -(t * np.log(p) + (1 - t) * np.log(1 - p))
        return np.asarray(losses[t != ignored].sum() / by)

    text = f'type: "SigmoidCrossEntropyLoss" loss_param {{ {options} }}'
    check(text, normal(3, 4), targets, reference=reference, differentiable=(0,))


def test_euclidean_loss_goes_to_both_bottoms():
    def reference(a, b):
        return np.asarray(((a - b.reshape(a.shape)) ** 2).sum() / 6)

    check('type: "EuclideanLoss"', normal(3, 2, 2), normal(3, 4), reference=reference)


@pytest.mark.parametrize("power", [1, 2])
def test_hinge_loss(power):
    def reference(x, labels):
        total = 0.0
        for n, row in enumerate(x):
            for k, score in enumerate(row):
                sign = -1 if k == int(np.rint(labels[n])) else 1
                total += max(0, 1 + sign * score) ** power
        return np.asarray(total / len(x))

    text = f'type: "HingeLoss" hinge_loss_param {{ norm: L{power} }}'
    check(text, apart(3, 4, gap=0.3), [1, 0, 3], reference=reference, differentiable=(0,))


@pytest.mark.parametrize("legacy", [False, True])
def test_contrastive_loss(legacy):
    def reference(a, b, same):
        total = 0.0
        for x, y, near in zip(a, b, same, strict=True):
            d = np.sqrt(((x - y) ** 2).sum())
            far = max(2 - d * d, 0) if legacy else max(2 - d, 0) ** 2
            total += d * d if near else far
        return np.asarray(total / (2 * len(a)))

    text = (
        f'type: "ContrastiveLoss" contrastive_loss_param {{ margin: 2 legacy_version: {legacy} }}'
    )
    bottoms = normal(4, 3) * 0.6, normal(4, 3) * 0.6, np.array([1, 0, 0, 1.0])
    check(text, *bottoms, reference=reference, differentiable=(0, 1))


@pytest.mark.parametrize(
    ("text", "bottoms", "message"),
    [
        ('type: "SoftmaxWithLoss"', (normal(2, 3), normal(3)), "Number of labels must match"),
        ('type: "EuclideanLoss"', (normal(2, 3), normal(2, 4)), "same dimension"),
        ('type: "EuclideanLoss"', (normal(2, 3), normal(3, 2)), "same first dimension"),
        ('type: "InfogainLoss"', (normal(2, 3), normal(2)), "source must be specified"),
        ('type: "SoftmaxWithLoss"', (normal(2, 3),), r"takes 2 bottom blob\(s\)"),
        ('type: "ContrastiveLoss"', (normal(2, 3), normal(2, 4), normal(2)), "one shape"),
    ],
)
def test_what_is_refused(text, bottoms, message):
    with pytest.raises(CaffeError, match=message):
        layer(f'name: "loss" {text}', *bottoms)
