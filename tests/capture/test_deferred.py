"""Gradients that wait until loops are rolled."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.capture.deferred import deferred_gradients, with_gradients
from weft.graph.control.ops import SCAN
from weft.graph.run import Program
from weft.graph.verify import verify

RNG = np.random.default_rng(0)
T = 12


def recorded(forward, wanted):
    """Return a graph with gradients put off, its results, and its inputs."""
    with wf.Graph() as graph:
        x = wf.placeholder((T, 2, 3), wf.float64)
        w = wf.placeholder((3, 3), wf.float64)
        loss, *others = forward(x, w)
        places = [v.value for v in wanted(x, w, *others)]
        found = deferred_gradients(graph.tracer, [loss.value], [None], places)
    results = [loss.value, *(found[place].value for place in places)]
    return graph, results, [x.value, w.value]


def loss_of(x, w):
    h, total, states = x[0], 0.0, []
    for t in range(T):
        h = wf.tanh(x[t] @ w + h * 0.5)
        states.append(h)
        total = total + (h * h).sum()
    return total, states[5]


def run(graph, results, feeds):
    arrays = [RNG.normal(size=value.shape) for value in feeds]
    found = Program(graph, [graph.check_member(y, "run") for y in results], feeds).run(arrays)
    return arrays, found.fetched


def eager(arrays):
    x, w = (wf.tensor(a, requires_grad=True) for a in arrays)
    loss, middle = loss_of(x, w)
    middle.retain_grad()
    loss.backward()
    return [y.numpy() for y in (loss, x.grad, w.grad, middle.grad)]


def test_a_loss_that_is_added_up_in_a_loop():
    graph, results, feeds = recorded(loss_of, lambda x, w, middle: [x, w])
    made = with_gradients(graph, results)
    verify(made)
    assert {node.attrs[3] for node in made if node.op is SCAN} == {T}
    assert "matmul" not in {node.op.name for node in made}  # no trip stands outside
    arrays, found = run(made, results, feeds)
    for a, b in zip(found, eager(arrays)[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_gradients_of_values_inside_of_a_loop():
    graph, results, feeds = recorded(loss_of, lambda x, w, middle: [w, middle])
    made = with_gradients(graph, results)
    verify(made)
    arrays, found = run(made, results, feeds)
    loss, _, w, middle = eager(arrays)
    for a, b in zip(found, [loss, w, middle], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
