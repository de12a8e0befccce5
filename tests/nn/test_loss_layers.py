"""Losses as layers against NumPy formulas, for every reduction."""

import numpy as np
import pytest
from scipy import special

import weft as wf
from weft import nn

rng = np.random.default_rng(0)
X, Y = rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
P, Q = rng.uniform(0.1, 0.9, (4, 3)), rng.uniform(0.1, 0.9, (4, 3))
SIGNS = np.where(Y > 0, 1.0, -1.0)
CLASSES = np.array([0, 2, 1, 2])
WEIGHT = np.array([0.5, 1.0, 2.0])


def huber(d, delta):
    return np.where(np.abs(d) < delta, 0.5 * d**2, delta * (np.abs(d) - delta / 2))


def cross(x, q):
    return -(q * np.log(x) + (1 - q) * np.log1p(-x))


def distance(a, b):
    return np.linalg.norm(a - b + 1e-6, axis=-1)


def margins(x):
    own = x[np.arange(4), CLASSES][:, None]
    terms = np.maximum(0, 1 - own + x)
    return (terms.sum(1) - 1) / 3


COSINE = (X * Y).sum(1) / (np.linalg.norm(X, axis=1) * np.linalg.norm(Y, axis=1))
ROW_SIGNS = SIGNS[:, 0]
SCORES = special.log_softmax(X, 1)
PICKED = -SCORES[np.arange(4), CLASSES]

LOSSES = [
    (nn.L1Loss, {}, (X, Y), np.abs(X - Y)),
    (nn.MSELoss, {}, (X, Y), (X - Y) ** 2),
    (nn.SmoothL1Loss, {"beta": 0.5}, (X, Y), huber(X - Y, 0.5) / 0.5),
    (nn.HuberLoss, {"delta": 0.5}, (X, Y), huber(X - Y, 0.5)),
    (nn.PoissonNLLLoss, {}, (X, P), np.exp(X) - P * X),
    (nn.GaussianNLLLoss, {}, (X, Y, P), 0.5 * (np.log(P) + (X - Y) ** 2 / P)),
    (nn.KLDivLoss, {}, (X, P), P * (np.log(P) - X)),
    (nn.CrossEntropyLoss, {}, (X, CLASSES), PICKED),
    (nn.CrossEntropyLoss, {}, (X, P), -(P * SCORES).sum(1)),
    (nn.NLLLoss, {}, (SCORES, CLASSES), PICKED),
    (nn.BCELoss, {}, (P, Q), cross(P, Q)),
    (nn.BCELoss, {"weight": WEIGHT}, (P, Q), cross(P, Q) * WEIGHT),
    (nn.BCEWithLogitsLoss, {}, (X, Q), cross(special.expit(X), Q)),
    (nn.SoftMarginLoss, {}, (X, SIGNS), np.log1p(np.exp(-SIGNS * X))),
    (nn.MultiLabelSoftMarginLoss, {}, (X, Q), cross(special.expit(X), Q).mean(1)),
    (nn.MultiMarginLoss, {}, (X, CLASSES), margins(X)),
    (nn.HingeLoss, {}, (X, SIGNS), np.maximum(0, 1 - SIGNS * X)),
    (nn.HingeEmbeddingLoss, {}, (X, SIGNS), np.where(SIGNS > 0, X, np.maximum(0, 1 - X))),
    (nn.MarginRankingLoss, {"margin": 0.2}, (X, Y, SIGNS), np.maximum(0, 0.2 - SIGNS * (X - Y))),
    (
        nn.CosineEmbeddingLoss,
        {},
        (X, Y, ROW_SIGNS),
        np.where(ROW_SIGNS > 0, 1 - COSINE, np.maximum(0, COSINE)),
    ),
    (nn.TripletMarginLoss, {}, (X, Y, P), np.maximum(0, 1 + distance(X, Y) - distance(X, P))),
    (
        nn.TripletMarginWithDistanceLoss,
        {"distance_function": lambda a, b: (a - b).abs().sum(axis=-1), "swap": True},
        (X, Y, P),
        np.maximum(
            0,
            1 + np.abs(X - Y).sum(1) - np.minimum(np.abs(X - P).sum(1), np.abs(Y - P).sum(1)),
        ),
    ),
]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(("loss", "options", "inputs", "expected"), LOSSES)
def test_losses(loss, options, inputs, expected, reduction):
    options = {k: wf.tensor(v) if k == "weight" else v for k, v in options.items()}
    layer = loss(**options, reduction=reduction)
    reduce = {"mean": np.mean, "sum": np.sum, "none": np.asarray}[reduction]
    tensors = [wf.tensor(x) for x in inputs]
    np.testing.assert_allclose(layer(*tensors).numpy(), reduce(expected), rtol=1e-9)
    tensors[0].requires_grad_()
    layer(*tensors).sum().backward()
    assert np.isfinite(tensors[0].grad.numpy()).all()


def test_class_weights_ignore_index_and_smoothing():
    x, y = wf.tensor(X), wf.tensor(CLASSES)
    w = WEIGHT[CLASSES]
    weighted = nn.CrossEntropyLoss(wf.tensor(WEIGHT))(x, y).item()
    assert weighted == pytest.approx((PICKED * w).sum() / w.sum())
    ignored = nn.NLLLoss(ignore_index=2)(wf.tensor(SCORES), y).item()
    assert ignored == pytest.approx(PICKED[CLASSES != 2].mean())
    smooth = nn.CrossEntropyLoss(label_smoothing=0.3)(x, y).item()
    assert smooth == pytest.approx((0.7 * PICKED - 0.3 * SCORES.mean(1)).mean())


def test_weights_are_part_of_the_state():
    loss = nn.CrossEntropyLoss(WEIGHT)
    assert list(loss.state_dict()) == ["weight"]
    assert loss.to(wf.float32).weight.dtype == wf.float32
    both = nn.BCEWithLogitsLoss(WEIGHT, pos_weight=[1.0, 2.0, 3.0])
    assert list(both.state_dict()) == ["weight", "pos_weight"]
    assert list(nn.BCELoss().state_dict()) == []


def test_batchmean_is_the_divergence():
    found = nn.KLDivLoss(reduction="batchmean")(wf.tensor(np.log(P)), wf.tensor(Q)).item()
    assert found == pytest.approx((Q * (np.log(Q) - np.log(P))).sum() / 4)


def test_focal_loss_without_focus_is_cross_entropy():
    plain = nn.BCEWithLogitsLoss()(wf.tensor(X), wf.tensor(Q)).item()
    focal = nn.SigmoidFocalLoss(alpha=-1, gamma=0.0)(wf.tensor(X), wf.tensor(Q)).item()
    assert focal == pytest.approx(plain)


def test_ctc_of_one_alignment():
    log_probs = special.log_softmax(rng.standard_normal((2, 1, 3)), -1)
    loss = nn.CTCLoss(reduction="sum")
    found = loss(wf.tensor(log_probs), wf.tensor([[1, 2]]), wf.tensor([2]), wf.tensor([2])).item()
    assert found == pytest.approx(-(log_probs[0, 0, 1] + log_probs[1, 0, 2]))


def test_a_loss_never_broadcasts():
    with pytest.raises(ValueError, match=r"same shape. Received: \(4, 1\) and \(4,\)"):
        nn.MSELoss()(wf.zeros(4, 1), wf.zeros(4))
