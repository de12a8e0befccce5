"""The verifier accepts what programs build, and names the node of everything else."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import weft as wf
from tests.programs.graphs import programs, registry_graphs
from tests.programs.strategies import random_graphs
from weft.core.dim import unknown_size
from weft.core.errors import GraphError
from weft.core.op import find_op
from weft.core.shape import TensorType
from weft.graph.control.ops import COND, SCAN, WHILE
from weft.graph.graph import Graph
from weft.graph.node import Node
from weft.graph.special import ASSIGN, PLACEHOLDER, STATE
from weft.graph.state import Alone, State, tensor_state
from weft.graph.verify import verify

FLAT = TensorType((3,), wf.float32)
WIDE = TensorType((4, 3), wf.float32)
SCALAR = TensorType((), wf.float32)
PROGRAMS = dict(programs())
TRUTH = TensorType((), np.dtype(bool))


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_sound(name):
    verify(PROGRAMS[name])


def test_every_operator_is_sound():
    for graphs in registry_graphs().values():
        for graph in graphs:
            verify(graph)


@given(random_graphs())
def test_random_graphs_are_sound(program):
    verify(program.graph)


# -- unsound graphs --------------------------------------------------------------------------------


class Bad(Graph):
    """A graph that is put together by hand."""

    def input(self, kind=FLAT, name="x"):
        node = Node(PLACEHOLDER, (), (kind,), (kind,), name=name, site="user.py:7")
        return self.append(node).outputs[0]

    def node(self, op, inputs, attrs=(), types=(FLAT,), name="bad"):
        op = find_op(op) if isinstance(op, str) else op
        node = Node(op, inputs, attrs, types, name=name, site="user.py:12")
        return self.append(node).outputs


def body(inputs, *outputs, op=None):
    """Return a subgraph; outputs are positions of inputs."""
    graph = Bad("body")
    values = [graph.input(kind, f"arg_{i}") for i, kind in enumerate(inputs)]
    if op is not None:
        values += graph.node(op, [values[0]], types=(inputs[0],))
    graph.outputs = [values[i] for i in outputs]
    return graph


def unmade(g):
    other = Bad()
    g.node("exp", [other.input()])


def cyclic(g):
    late = Node(find_op("exp"), [g.input()], (), [FLAT], name="late")
    g.node("exp", late.outputs)
    g.append(late)


def same_names(g):
    x = g.input()
    g.node("exp", [x], name="x")


def untold_size(g):
    n = unknown_size("n")
    g.node("iota", [], (n,), [TensorType((n,), wf.int64)])


def untold_size_in_attribute(g):
    n = unknown_size("n")
    g.node("broadcast_to", [g.input()], ((n, 3),), [TensorType((4, 3), wf.float32)])


def size_told_too_late(g):
    n = unknown_size("n")
    g.node("broadcast_to", [g.input()], ((n, 3),), [TensorType((n, 3), wf.float32)])
    g.input(TensorType((n,), wf.float32), "late")


def state_twice(g):
    state = tensor_state(wf.ones(3), "w")
    for name in ("one", "bad"):
        g.node(STATE, [], (state,), name=name)


def assigned_type(g):
    g.node(ASSIGN, [g.input()], (tensor_state(wf.ones(4), "w"),), [TensorType((4,), wf.float32)])


def assigned_dtype(g):
    x = g.input(TensorType((3,), wf.float64))
    g.node(ASSIGN, [x], (tensor_state(wf.ones(3), "w"),))


def assigned_to_read_only(g):
    w = wf.ones(3)
    g.node(ASSIGN, [g.input()], (State(w, FLAT, Alone(w.numpy), name="w", writable=False),))


def state_in_body(g):
    inner = body([FLAT], 0)
    inner.node(STATE, [], (tensor_state(wf.ones(3), "w"),))
    g.node(SCAN, [g.input()], (inner, 1, 0, 3, False, False, ()))


def node(op, count, attrs, types=(FLAT,), inputs=(FLAT, FLAT, FLAT)):
    """Return a builder of one node on so many inputs."""

    def build(g):
        values = [g.input(kind, f"x{i}") for i, kind in enumerate(inputs[:count])]
        g.node(op, values, attrs, types)

    return build


def loop(
    graph, *, carries=1, xs=0, length=3, reverse=False, until=False, threads=(), types=(FLAT,)
):
    return node(SCAN, 2, (graph, carries, xs, length, reverse, until, threads), types, (FLAT, WIDE))


ONE = body([FLAT], 0)
TWO = body([FLAT, WIDE], 0)
TEST = body([FLAT, TRUTH], 1)
UNSOUND = {
    "input of another graph": (unmade, "takes x, which is not made before"),
    "input made later": (cyclic, "takes late, which is not made before"),
    "name taken twice": (same_names, "name of another node"),
    "too few inputs": (node("add", 1, ()), "takes 1 values instead of 2"),
    "too many inputs": (node("exp", 2, ()), "takes 2 values instead of 1"),
    "missing attribute": (node("sum", 1, ()), "attributes instead of"),
    "extra attribute": (node("exp", 1, (1,)), "has 1 attributes instead of 0"),
    "too many outputs": (node("exp", 1, (), [FLAT, FLAT]), "makes 2 values instead of 1"),
    "too few outputs": (node("nonzero", 1, (), []), "makes 0 values"),
    "wrong shape": (node("exp", 1, (), [WIDE]), r"float32\[4, 3\] where its rule gives float32\[3"),
    "wrong dtype": (node("exp", 1, (), [TensorType((3,), wf.float64)]), "float64.*rule gives flo"),
    "shapes that do not fit": (
        node("add", 2, (), inputs=[FLAT, TensorType((4,), wf.float32)]),
        "do not broadcast",
    ),
    "attribute of a wrong type": (node("sum", 1, ("x", 1, 2)), "attributes its operator cannot"),
    "size that is no integer": (node("exp", 1, (), [TensorType((3.0,), wf.float32)]), "no integer"),
    "size nobody tells": (untold_size, "needs the size n, which no value tells"),
    "size in an attribute": (untold_size_in_attribute, "needs the size n"),
    "size told too late": (size_told_too_late, "needs the size n"),
    "state read twice": (state_twice, "reads the state w once more"),
    "assigned shape": (assigned_type, r"assigns float32\[3\] to w, which is float32\[4\]"),
    "assigned dtype": (assigned_dtype, r"assigns float64\[3\] to w"),
    "assigned to read-only": (assigned_to_read_only, "w, which is read-only"),
    "state in a body": (state_in_body, "subgraph that refers to a state"),
    "unsound body": (loop(body([FLAT, WIDE], 0, op="add")), "takes 1 values instead of 2"),
    "body of fewer inputs": (loop(ONE), "body of 1 inputs and gives it 2"),
    "body of other types": (loop(body([FLAT, FLAT], 0)), "takes float32.3. and gives it float32.4"),
    "carry changes": (loop(body([FLAT, WIDE], 1)), r"carries on float32\[4, 3\]"),
    "carry is lost": (loop(body([FLAT, WIDE])), "0 results that must give 1"),
    "too many carries": (loop(TWO, carries=3), "cannot have 3 carries"),
    "negative carries": (loop(TWO, carries=-1), "cannot have -1 carries"),
    "carries no number": (loop(TWO, carries=True), "cannot have True carries"),
    "too many xs": (loop(TWO, xs=5), "cannot have 5 xs"),
    "xs of another length": (loop(body([FLAT, FLAT], 0), xs=1), "takes 3 steps"),
    "negative length": (loop(TWO, length=-1), "length that is no size"),
    "flag no bool": (loop(TWO, reverse=1), "flag that is no bool"),
    "until no bool": (loop(body([FLAT, WIDE], 0, 0), until=True), "gives as its condition"),
    "no body": (loop(3), "lacks a body"),
    "thread nowhere": (loop(TWO, threads=((0, 9),)), "threads a state from input 0 to output 9"),
    "thread no pair": (loop(TWO, threads=(1,)), "no pairs"),
    "predicate no bool": (node(COND, 1, (ONE, ONE, ())), "no truth value"),
    "branches differ": (
        node(COND, 2, (ONE, body([FLAT], 0, 0), ()), inputs=(TRUTH, FLAT)),
        "different numbers of results",
    ),
    "branches differ in type": (
        node(
            COND, 3, (body([FLAT, WIDE], 0), body([FLAT, WIDE], 1), ()), inputs=(TRUTH, FLAT, WIDE)
        ),
        "gives in one branch",
    ),
    "condition no bool": (node(WHILE, 1, (ONE, ONE, 1, ())), "gives as its condition float32"),
    "condition of two": (
        node(WHILE, 2, (body([FLAT, TRUTH], 1, 0), TEST, 1, ()), inputs=(FLAT, TRUTH)),
        "condition of several",
    ),
}


@pytest.mark.parametrize("name", UNSOUND)
def test_unsound_node_is_named(name):
    build, message = UNSOUND[name]
    graph = Bad()
    build(graph)
    with pytest.raises(GraphError, match=f"node (bad|x).*{message}") as caught:
        verify(graph)
    assert "built at user.py:12" in str(caught.value)


def test_outputs_and_names_belong_to_the_graph():
    graph, other = Bad(), Bad()
    graph.input()
    foreign = other.input()
    graph.outputs = [foreign]
    with pytest.raises(GraphError, match="the output x is not in the graph"):
        verify(graph)
    graph.outputs = []
    graph.names["y"] = foreign
    with pytest.raises(GraphError, match="the value named 'y' is not in the graph"):
        verify(graph)
    graph.names.clear()
    graph.inputs.append(foreign)
    with pytest.raises(GraphError, match="its inputs are not its placeholders"):
        verify(graph)


def test_name_of_a_value_and_of_another_node():
    graph = Bad()
    x = graph.input()
    (y,) = graph.node("exp", [x])
    graph.names["bad"] = x
    with pytest.raises(GraphError, match="'bad' is also that of another node"):
        verify(graph)
    graph.names["bad"] = y
    verify(graph)


def test_deep_nesting_is_refused():
    inner = ONE
    for _ in range(60):
        outer = Bad("body")
        x = outer.input()
        outer.outputs = list(outer.node(SCAN, [x], (inner, 1, 0, 1, False, False, ())))
        inner = outer
    with pytest.raises(GraphError, match="nested more than"):
        verify(inner)


def test_known_sizes_may_stand_for_unknown_ones():
    graph = Bad()
    n = unknown_size("n")
    x = graph.input(TensorType((n, 3), wf.float32))
    graph.node("exp", [x], types=[WIDE], name="refined")
    graph.node("nonzero", [x], types=[TensorType((5,), wf.int64)] * 2, name="told")
    verify(graph)


def test_bad_argument():
    with pytest.raises(GraphError, match=r"expected a wf\.Graph"):
        verify(None)
