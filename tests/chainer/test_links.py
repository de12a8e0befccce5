"""Links compute what their functions do, with parameters of Chainer's shapes and names."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft import chainer
from weft.chainer import functions as F
from weft.chainer import links as L

SHAPES: dict[str, tuple[Any, tuple[int, ...], dict[str, tuple[int, ...]], tuple[int, ...]]] = {
    "linear": (lambda: L.Linear(4, 3), (2, 4), {"/W": (3, 4), "/b": (3,)}, (2, 3)),
    "linear of later size": (lambda: L.Linear(3), (2, 2, 2), {"/W": (3, 4), "/b": (3,)}, (2, 3)),
    "convolution": (
        lambda: L.Convolution2D(None, 5, 3, stride=2, pad=1),
        *((2, 3, 8, 8), {"/W": (5, 3, 3, 3), "/b": (5,)}, (2, 5, 4, 4)),
    ),
    "groups": (
        lambda: L.Convolution2D(4, 6, 3, groups=2, nobias=True),
        *((1, 4, 5, 5), {"/W": (6, 2, 3, 3)}, (1, 6, 3, 3)),
    ),
    "1d": (lambda: L.Convolution1D(2, 3, 2), (1, 2, 5), {"/W": (3, 2, 2), "/b": (3,)}, (1, 3, 4)),
    "deconvolution": (
        lambda: L.Deconvolution2D(3, 5, 4, stride=2, pad=1),
        *((2, 3, 4, 4), {"/W": (3, 5, 4, 4), "/b": (5,)}, (2, 5, 8, 8)),
    ),
    "depthwise": (
        lambda: L.DepthwiseConvolution2D(None, 2, 3),
        *((1, 3, 5, 5), {"/W": (2, 3, 3, 3), "/b": (6,)}, (1, 6, 3, 3)),
    ),
    "local": (
        lambda: L.LocalConvolution2D(2, 3, 4, 3),
        *((1, 2, 4, 4), {"/W": (3, 2, 2, 2, 3, 3), "/b": (3, 2, 2)}, (1, 3, 2, 2)),
    ),
    "maxout": (
        lambda: L.Maxout(4, 3, 2),
        *((2, 4), {"/linear/W": (6, 4), "/linear/b": (6,)}, (2, 3)),
    ),
    "highway": (
        lambda: L.Highway(4),
        (2, 4),
        {"/plain/W": (4, 4), "/plain/b": (4,), "/transform/W": (4, 4), "/transform/b": (4,)},
        (2, 4),
    ),
    "layer normalization": (
        L.LayerNormalization,
        *((2, 4), {"/beta": (4,), "/gamma": (4,)}, (2, 4)),
    ),
    "group normalization": (
        lambda: L.GroupNormalization(2),
        *((2, 4, 3), {"/beta": (4,), "/gamma": (4,)}, (2, 4, 3)),
    ),
    "prelu": (lambda: L.PReLU((4,)), (2, 4), {"/W": (4,)}, (2, 4)),
    "scale": (lambda: L.Scale(1, (4,), True), (2, 4), {"/W": (4,), "/bias/b": (4,)}, (2, 4)),
    "mlp convolution": (
        lambda: L.MLPConvolution2D(2, (3, 4), 3),
        (1, 2, 5, 5),
        {"/0/W": (3, 2, 3, 3), "/0/b": (3,), "/1/W": (4, 3, 1, 1), "/1/b": (4,)},
        (1, 4, 3, 3),
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_parameters_and_results(name: str) -> None:
    make, given, parameters, wanted = SHAPES[name]
    link = make()
    y = link(np.sin(np.arange(np.prod(given))).reshape(given).astype("f"))
    assert y.shape == wanted
    assert {path: p.shape for path, p in link.namedparams()} == parameters
    F.sum(y * y).backward()
    assert all(p.grad is not None for p in link.params())


def test_batch_normalization_follows_the_batch_and_then_the_past() -> None:
    bn = L.BatchNormalization(3, decay=0.5)
    x = np.random.default_rng(0).normal(2, 3, (64, 3)).astype("f")
    y = bn(x).array
    np.testing.assert_allclose(y.mean(0), 0, atol=1e-5)
    np.testing.assert_allclose(bn.avg_mean, 0.5 * x.mean(0), rtol=1e-4)
    np.testing.assert_allclose(bn.avg_var, 0.5 + 0.5 * x.var(0, ddof=1), rtol=1e-4)
    with chainer.using_config("train", False):
        wanted = (x - bn.avg_mean) / np.sqrt(bn.avg_var + 2e-5)
        np.testing.assert_allclose(bn(x).array, wanted, rtol=1e-4, atol=1e-5)


def test_a_stateful_lstm_goes_on_where_it_was() -> None:
    lstm = L.LSTM(2, 3)
    xs = np.sin(np.arange(16)).reshape(4, 2, 2).astype("f")
    ys = [lstm(x).array for x in xs]
    stateless = L.StatelessLSTM(2, 3)
    stateless.copyparams(lstm)
    c = h = None
    for x, wanted in zip(xs, ys, strict=True):
        c, h = stateless(c, h, x)
        np.testing.assert_allclose(h.array, wanted, rtol=1e-6)
    assert lstm(xs[0][:1]).shape == (1, 3)
    assert lstm.h.shape == (2, 3)
    lstm.reset_state()
    np.testing.assert_array_equal(lstm(xs[0]).array, ys[0])
    with pytest.raises(ValueError, match="less than the size of the previous state"):
        lstm(np.ones((5, 2), "f"))


@pytest.mark.parametrize("name", ["NStepLSTM", "NStepBiLSTM", "NStepGRU", "NStepBiRNNTanh"])
def test_sequences_in_any_order(name: str) -> None:
    link = getattr(L, name)(2, 3, 4, 0.0)
    xs = [np.sin(np.arange(3 * n)).reshape(n, 3).astype("f") for n in (2, 5, 3)]
    states = (None,) * link.n_cells
    *_, together = link(*states, xs)
    for x, y in zip(xs, together, strict=True):
        *_, (alone,) = link(*states, [x])
        np.testing.assert_allclose(y.array, alone.array, rtol=1e-5, atol=1e-6)


def test_trees() -> None:
    nary, child_sum = L.NaryTreeLSTM(2, 3), L.ChildSumTreeLSTM(2, 3)
    x = np.ones((1, 2), "f")
    for link in (nary, child_sum):
        c, h = link(None, None, None, None, x)
        c, h = link(c, c, h, h, None)
        assert c.shape == h.shape == (1, 3)
    with pytest.raises(ValueError, match="at least one"):
        nary(None, None, None, None, None)


def test_words_and_their_neighbours() -> None:
    np.random.seed(0)  # noqa: NPY002  (what the face draws with)
    loss = L.NegativeSampling(3, [5, 1, 2], 4)
    value = loss(np.ones((2, 3), "f"), np.array([0, 2], "i"))
    np.testing.assert_allclose(value.array, 2 * 5 * np.log(2), rtol=1e-5)
    assert L.EmbedID(4, 2)(np.array([[0, 3]], "i")).shape == (1, 2, 2)


def test_a_classifier_reports() -> None:
    model = L.Classifier(L.Linear(2, 3))
    reporter = chainer.Reporter()
    reporter.add_observer("main", model)
    with reporter:
        loss = model(np.ones((4, 2), "f"), np.zeros(4, "i"))
    assert set(reporter.observation) == {"main/loss", "main/accuracy"}
    assert float(reporter.observation["main/loss"].array) == float(loss.array)
    with pytest.raises(ValueError, match="Label key 'y' is not found"):
        L.Classifier(L.Linear(2, 3), label_key="y")(np.ones((1, 2), "f"))


def test_crf() -> None:
    crf = L.CRF1d(3)
    xs = [np.sin(np.arange(6) + t).reshape(2, 3).astype("f") for t in range(3)]
    score, path = crf.argmax(xs)
    ys = list(path)
    best = float(crf(xs, ys).array)
    other = float(crf(xs, [(y + 1) % 3 for y in ys]).array)
    assert best < other
    assert score.shape == (2,)
