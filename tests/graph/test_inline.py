"""Nodes of one graph, copied into another."""

import numpy as np

import weft as wf
from weft.graph.inline import copy_nodes, function_graph, inline
from weft.graph.symbol import make_symbol


def square_plus_one():
    with wf.Graph("body") as body:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.mul(x, x) + 1.0
    return function_graph("body", body.nodes, [x.value], [y.value])


def test_a_function_is_inlined_on_other_values():
    body = square_plus_one()
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        wf.exp(x).name = "mul"
        once = inline(graph, body, [x.value])[body.outputs[0]]
        twice = inline(graph, body, [once])[body.outputs[0]]
    given = np.array([0.0, 1.0, 2.0], np.float32)
    fetches = [make_symbol(graph, value) for value in (once, twice)]
    found = wf.Session(graph).run(fetches, {x: given})
    np.testing.assert_array_equal(found, [given**2 + 1, (given**2 + 1) ** 2 + 1])
    names = [node.name for node in graph.nodes]
    assert len(set(names)) == len(names)


def test_placeholders_are_not_copied():
    body = square_plus_one()
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
    mapping = copy_nodes(graph, body.nodes, {body.inputs[0]: x.value})
    assert len(graph.nodes) == len(body.nodes)
    assert set(mapping) == {value for node in body.nodes for value in node.outputs}
    assert all(value in graph for value in mapping.values())
