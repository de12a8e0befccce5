"""The optimiser as users call it, and that passes do work in proportion to the graph."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.core.errors import ArgumentError, ArgumentTypeError, GraphError
from weft.graph.verify import verify
from weft.passes import PASSES, optimize
from weft.passes.match import Match, Rule

from .helpers import ops


def classic():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = wf.log(wf.softmax(x * 1.0)) + (x - x)
    return graph, x, y


def test_old_symbols_are_fetched_from_the_new_graph():
    graph, x, y = classic()
    made = optimize(graph)
    verify(made)
    a = np.ones((2, 3), np.float32)
    found = wf.Session(made).run(y, {x: a})
    np.testing.assert_allclose(found, wf.Session(graph).run(y, {x: a}), rtol=1e-6)


@pytest.mark.parametrize("kind", ["symbol", "value", "name", "one"])
def test_outputs_in_every_form(kind):
    graph, _, y = classic()
    graph.name_value(y.value, "loss")
    given = {"symbol": [y], "value": [y.value], "name": ["loss"], "one": y}[kind]
    made = optimize(graph, given)
    assert made.names["loss"] is made.outputs[0]


def test_named_values_survive():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        inner = x * 2
        graph.name_value(inner.value, "inner")
        y = wf.tanh(inner + 1)
    made = optimize(graph)
    found = wf.Session(made).run(["inner", y], {x: np.ones(3, np.float32)})
    assert found[0].tolist() == [2.0] * 3


def test_passes_by_name():
    graph, _, y = classic()
    assert "div" in ops(optimize(graph, [y], passes=("fold", "cse", "simplify", "dce")))
    assert "div" not in ops(optimize(graph, [y], passes=("dce", "stabilize", "dce")))
    assert ops(optimize(graph, [y], passes=())) == ops(graph)


def test_bad_arguments():
    graph, _, y = classic()
    with pytest.raises(ArgumentError, match=r"no pass is named 'fast'.*fold, cse"):
        optimize(graph, [y], passes=("fast",))
    with pytest.raises(ArgumentTypeError, match=r"expected a wf\.Graph\. Received: int"):
        optimize(3)
    with pytest.raises(ArgumentTypeError, match=r"an output must be.*Received: float 1.5"):
        optimize(graph, [1.5])
    with pytest.raises(GraphError, match="does not belong to this graph"):
        optimize(graph, [classic()[2]])


def test_an_empty_graph():
    assert len(optimize(wf.Graph())) == 0


def test_a_training_step_learns_the_same():
    def build():
        wf.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3))
        with wf.Graph() as graph:
            x = wf.placeholder((None, 4), wf.float32, name="x")
            t = wf.placeholder((None,), wf.int64, name="t")
            logits = model(x)
            picked = wf.log(wf.softmax(logits)) * nn.functional.one_hot(t, 3)
            loss = -wf.sum(picked) / x.shape[0]
            params = list(model.parameters())
            grads = wf.gradients(loss, params)
            updates = [p.assign(p - g * 0.1) for p, g in zip(params, grads, strict=True)]
        return model, graph, x, t, loss, updates

    rng = np.random.default_rng(0)
    data, labels = rng.standard_normal((16, 4)).astype(np.float32), rng.integers(0, 3, 16)
    results = []
    for optimized in (False, True):
        model, graph, x, t, loss, updates = build()
        if optimized:
            before, graph = ops(graph), optimize(graph, [loss, *updates])
            verify(graph)
            assert "stop_gradient" in before
            assert "stop_gradient" not in ops(graph)
        session = wf.Session(graph)
        for _ in range(20):
            session.run([loss, *updates], {x: data, t: labels})
        results.append([p.numpy() for p in model.parameters()])
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


# -- scale -----------------------------------------------------------------------------------------


def tower(count):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = x
        while len(graph) < count:
            y = wf.log(1 + wf.exp(y * 1.0)) + wf.relu(y)
            y = y.reshape(-1, 3).permute(1, 0).permute(1, 0)
    return graph, y


@pytest.mark.parametrize("name", PASSES)
def test_work_grows_linearly(name, monkeypatch):
    """Count patterns that are tried and nodes that are made, not time."""
    counts = []
    for size in (500, 2000):
        work = 0

        def count(original):
            def counted(*args, **kwargs):
                nonlocal work
                work += 1
                return original(*args, **kwargs)

            return counted

        graph, y = tower(size)
        with monkeypatch.context() as patch:
            patch.setattr(Match, "fits", count(Match.fits))
            patch.setattr(Rule, "may_fit", count(Rule.may_fit))
            patch.setattr(wf.Graph, "append", count(wf.Graph.append))
            PASSES[name](graph, [y.value])
        counts.append(work / len(graph))
    assert counts[1] < counts[0] * 1.2


def test_depth_needs_no_recursion():
    graph, y = tower(6000)
    made = optimize(graph, [y])
    assert len(made) < 0.34 * len(graph)
