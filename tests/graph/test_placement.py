"""Where nodes run: as they were placed, with their operands, or where they are needed."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft.graph.placement import SEVERAL, devices_of, placed_nodes
from weft.graph.run import Program

pytestmark = pytest.mark.usefixtures("opaque")


def places(graph):
    return {node.name: where for node, where in placed_nodes(graph.nodes).items()}


def test_a_node_is_where_its_operands_are():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), name="x")
        with wf.device("opaque:0"):
            y = wf.exp(x)
        z = wf.tanh(y)
        assert (x.device, y.device, z.device) == ("cpu", "opaque:0", "opaque:0")
        with wf.device("cpu"):
            w = wf.sin(z)
        v = wf.cos(w)
    assert (w.device, v.device) == ("cpu", "cpu")
    assert places(graph) == {
        "x": "opaque:0",
        "exp": "opaque:0",
        "tanh": "opaque:0",
        "sin": "cpu",
        "cos": "cpu",
    }
    assert devices_of(graph.nodes) == ["opaque:0", "cpu"]


def test_what_was_placed_nowhere_goes_where_it_is_needed():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), name="x")
        y = wf.exp(x)
        with wf.device("opaque:0"):
            z = wf.tanh(y)
    assert set(places(graph).values()) == {"opaque:0"}
    program = Program(graph, [z.value], [x.value])
    assert program.device == "opaque:0"
    with graph, wf.device("opaque:1"):
        w = wf.sin(y)
    assert places(graph)["exp"] == "cpu"
    assert Program(graph, [z.value, w.value], [x.value]).device == SEVERAL


def test_a_symbol_moves_by_a_node():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), name="x")
        y = x.to("opaque:0")
        z = y.to("cpu")
        assert z.to("cpu") is z
    assert [node.op.name for node in graph.nodes] == ["placeholder", "transfer", "transfer"]
    assert (y.device, z.device) == ("opaque:0", "cpu")
    assert wf.Session(graph).run(z, {x: np.ones(2)}).tolist() == [1, 1]


def test_placement_survives_a_file(tmp_path):
    with wf.Graph() as graph:
        x = wf.placeholder((2,), name="x")
        with wf.device("opaque:0"):
            y = wf.exp(x)
        with wf.device("cpu"):
            z = wf.tanh(y)
    graph.outputs = [z.value]
    graph.save(tmp_path / "graph")
    loaded = wf.Graph.load(tmp_path / "graph")
    before, after = ([(n.device, n.pinned) for n in g.nodes] for g in (graph, loaded))
    assert before == after
