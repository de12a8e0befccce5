"""Graphs and symbols as NumPy programs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError


def built():
    with wf.Graph("model") as graph:
        x = wf.placeholder((3,), wf.float64, name="x")
        w = wf.placeholder((3,), wf.float64, name="w")
        y = wf.while_loop(lambda s: s.sum() < 10, lambda s: s * s + w, x)
        loss = wf.cond(y.sum() > 12, lambda: wf.sum(y * y), lambda: wf.sum(y * x))
    return graph, x, w, y, loss


def run(text, name, *args):
    scope = {}
    exec(text, scope)
    return scope[name](*args)


def test_symbols_of_a_graph():
    graph, x, w, _, loss = built()
    text = wf.autodiff.source(loss)
    assert "def model(x, w):" in text
    a, b = np.array([0.5, 1.0, 1.5]), np.array([0.1, 0.2, 0.3])
    value, (dx, dw) = run(text, "model", a, b)
    with graph:
        grads = wf.gradients(loss, [x, w])
    expected = wf.Session(graph).run([loss, *grads], {x: a, w: b})
    for found, wanted in zip((value, dx, dw), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_graph_with_several_results_and_examples():
    graph, x, w, y, loss = built()
    a, b = np.array([0.5, 1.0, 1.5]), np.array([0.1, 0.2, 0.3])
    text = wf.autodiff.source([y, loss], a, b, mode="value")
    found = run(text, "model", a, b)
    for got, wanted in zip(found, wf.Session(graph).run([y, loss], {x: a, w: b}), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_parameters_of_a_graph_are_taken_behind_placeholders():
    layer = wf.nn.Linear(3, 2)
    with wf.Graph("net") as graph:
        x = wf.placeholder((4, 3), wf.float32, name="x")
        y = layer(x).sum()
    text = wf.autodiff.source(graph, mode="value")
    data = np.ones((4, 3), np.float32)
    found = run(text, "net", data, layer.weight.numpy(), layer.bias.numpy())
    np.testing.assert_allclose(found, wf.Session(graph).run(y, {x: data}), rtol=1e-5)


def test_mistakes_are_explained():
    with wf.Graph():
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = x.sum()
    with pytest.raises(ArgumentError, match="sizes are not all known"):
        wf.autodiff.source(y)
    with pytest.raises(ArgumentError, match="has the placeholders x"):
        wf.autodiff.source(y, np.ones((2, 3)), np.ones(3))
    with pytest.raises(ArgumentTypeError, match="symbols of one graph"):
        wf.autodiff.source([1, 2])
    with pytest.raises(ArgumentError, match="mode must be one of"):
        wf.autodiff.source(lambda x: x, wf.tensor(1.0), mode="backward")
