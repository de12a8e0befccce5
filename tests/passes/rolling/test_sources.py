"""What a recording has once: fillings of known shapes do not depend on what they are like."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.passes.helpers import ops, run
from weft.graph.verify import verify
from weft.passes.rolling.sources import is_fixed, sources_of, with_plain_fills


def build(shape):
    with wf.Graph() as graph:
        x = wf.placeholder(shape, wf.float32)
        y = wf.sin(x)
        a, b, c = wf.zeros_like(y), wf.zeros_like(wf.cos(x)), wf.ones_like(x)
        z = (a + b + c).sum() + y.sum()
    return graph, z.value


def test_fillings_are_made_once_and_of_nothing():
    graph, z = build((2, 3))
    made = with_plain_fills(graph, [z])
    verify(made)
    assert ops(made).count("fill_like") == 2
    assert "cos" not in ops(made)
    assert "sin" in ops(made)
    x = np.ones((2, 3), np.float32)
    assert run(made, x) == np.sin(x).sum() + 6


def test_unknown_shapes_are_taken_from_values():
    graph, z = build((None, 3))
    assert with_plain_fills(graph, [z]) is graph


def test_a_graph_without_fillings_is_left_alone():
    with wf.Graph() as graph:
        wf.sin(wf.placeholder((2,), wf.float32))
    assert with_plain_fills(graph) is graph


def test_fillings_of_constants_compute_nothing():
    graph, z = build((2, 3))
    made = with_plain_fills(graph, [z])
    fills = [node for node in made if node.op.name == "fill_like"]
    assert all(is_fixed(node.outputs[0]) for node in fills)
    assert set(fills) <= sources_of(made)


def test_detached_states_are_sources():
    w = wf.ones(3, requires_grad=True)
    with wf.Graph() as graph, wf.no_grad():
        (w * 2.0 + w).sum()
    found = {node.op.name for node in sources_of(graph)}
    assert found == {"state", "constant", "stop_gradient"}


def test_states_that_are_detached_once_are_not():
    w = wf.ones(3, requires_grad=True)
    with wf.Graph() as graph, wf.no_grad():
        (w * 2.0).sum()
    assert "stop_gradient" not in {node.op.name for node in sources_of(graph)}
