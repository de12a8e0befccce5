"""Printed graphs are Python that builds the same graph again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from tests.programs.graphs import programs, registry_graphs
from weft.core.errors import ArgumentError, ArgumentTypeError, GraphError, ShapeError
from weft.core.rng import Generator, manual_seed
from weft.graph.builder import define, float32
from weft.graph.graph import Graph
from weft.graph.identity.canonical import canonical_hash
from weft.graph.node import Node, subgraphs
from weft.graph.special import CONSTANT, Literal
from weft.graph.text.printer import GraphSource, graph_text, rebuild, to_source
from weft.graph.verify import verify

PROGRAMS = dict(programs())
OPERATORS = sorted(registry_graphs())


def assert_rebuilt(graph: Graph) -> GraphSource:
    """Assert that a graph and the one built from its text are the same, node for node."""
    source = to_source(graph)
    again = rebuild(source)
    verify(again)
    assert canonical_hash(again) == canonical_hash(graph)
    assert [described(node) for node in again] == [described(node) for node in graph]
    assert to_source(again).text.count("\n") == source.text.count("\n")
    return source


def described(node: Node) -> tuple:
    types = tuple(value.type for value in node.outputs)
    return node.op.name, node.name, node.scope, node.device, types, len(subgraphs(node))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_operator(name):
    for graph in registry_graphs()[name]:
        assert_rebuilt(graph)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    assert_rebuilt(PROGRAMS[name])


def test_optimised_graph():
    graph = PROGRAMS["control"].optimize()
    assert canonical_hash(rebuild(to_source(graph))) == canonical_hash(graph)


def test_text_of_a_small_graph():
    w = wf.tensor([[1.0, 2.0]])
    with Graph() as graph:
        x = wf.placeholder(("n", 1), wf.float32, name="x")
        with wf.name_scope("layer"):
            y = wf.maximum(x @ w, 0.5)
        y.name = "hidden"
    lines = [line.partition("  #")[0] for line in graph_text(graph).splitlines()]
    assert lines == [
        "from weft.graph.builder import float32",
        "",
        "",
        "def build(F):",
        '    n = F.size("n")',
        '    x = F.placeholder("x", float32[n, 1])',
        '    tensor = F.state("layer/tensor")',
        '    with F.scope("layer"):',
        "        matmul = F.matmul(x, tensor)",
        "        constant = F.constant(0.5, float32[()])",
        "        maximum = F.maximum(matmul, constant)",
        '    F.name(maximum, "hidden")',
        "    return ()",
    ]
    assert "# float32[n, 2]  test_printer.py:" in graph_text(graph)
    assert str(graph) == graph_text(graph)


def test_rebuilt_graph_computes_the_same():
    graph = PROGRAMS["control"]
    feeds = {"x": np.ones((2, 3), np.float32), "n": 3}
    manual_seed(3)
    expected = wf.Session(graph).run("total", feeds)
    manual_seed(3)
    np.testing.assert_array_equal(
        wf.Session(rebuild(to_source(graph))).run("total", feeds), expected
    )


# -- constants -------------------------------------------------------------------------------------


def constant_graph(array: np.ndarray) -> Graph:
    graph = Graph()
    literal = Literal(array)
    graph.append(Node(CONSTANT, (), (literal,), (literal.type,), name="c"))
    return graph


PAYLOAD = np.array([0x7FC00001, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
CONSTANTS = [
    np.array([np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0, 5e-324, 1.7976931348623157e308]),
    np.array([0.1, 1 / 3, 16777217.0, 1e-45, 3.4028235e38], np.float32),
    np.array([0.1, 6e-8, 65504, np.inf], np.float16),
    PAYLOAD,
    np.array([2**64 - 1, 0], np.uint64),
    np.array([-(2**63), 2**63 - 1]),
    np.array([[True], [False]]),
    np.zeros((0, 3), np.float32),
    np.zeros((2, 0, 3), np.int8),
    np.array(-7, np.int16),
    np.arange(17.0),
    np.arange(8.0).reshape(2, 2, 2),
]


@pytest.mark.parametrize("array", CONSTANTS, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_constants_keep_their_bits(array):
    (node,) = rebuild(to_source(constant_graph(array))).nodes
    found = node.attrs[0].array
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=16))
def test_any_bits(words):
    array = np.array(words, np.uint32).view(np.float32)
    (node,) = rebuild(to_source(constant_graph(array))).nodes
    assert node.attrs[0].array.tobytes() == array.tobytes()


def test_bfloat16():
    pytest.importorskip("ml_dtypes")
    array = np.array([0.1, np.inf, -2.0]).astype(wf.bfloat16)
    (node,) = rebuild(to_source(constant_graph(array))).nodes
    assert node.attrs[0].array.tobytes() == array.tobytes()


def test_large_constants_stand_beside_the_text():
    source = to_source(constant_graph(np.arange(100.0)))
    assert list(source.constants) == ["c"]
    assert "99" not in source.text
    with pytest.raises(ArgumentError, match="needs the constant 'c'; pass constants="):
        rebuild(source.text)
    rebuilt = rebuild(source.text, constants={"c": np.zeros(100)})
    assert not rebuilt.nodes[0].attrs[0].array.any()


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["class", "F", "float32", "with space", "0x", "ünïcode", "a/b/c", "__x", "qu\"ote's", "_"],
)
def test_odd_names(name):
    with Graph() as graph:
        a = wf.placeholder((None,), wf.float32, name=name)
        with wf.name_scope("F/build"):
            (a.reshape(1, -1) * a).name = f"{name} squared"
    assert_rebuilt(graph)
    assert rebuild(to_source(graph)).find(f"{name} squared").node.op.name == "mul"


def test_line_breaks_cannot_leave_a_comment():
    graph = Graph()
    literal = Literal(np.array(1.0))
    graph.append(
        Node(CONSTANT, (), (literal,), (literal.type,), name="c", site="x.py:1\n    raise OSError")
    )
    assert_rebuilt(graph)


def test_names_out_of_order():
    with Graph() as graph:
        a = wf.placeholder((), wf.float32, name="mul_1")
        b = a * a * a
        b.name = "mul_7"
    made = Graph()
    kept = [graph.nodes[0], graph.nodes[1].rebuilt(graph.nodes[1].inputs, name="mul_5")]
    for node in kept:
        made.append(node)
    assert_rebuilt(graph)
    assert_rebuilt(made)


def test_order_of_inputs_and_outputs():
    with Graph() as graph:
        a, b = (wf.placeholder((2,), wf.float32, name=n) for n in "ab")
        c = a - b
    graph.inputs.reverse()
    graph.outputs = [c.value, a.value]
    again = rebuild(to_source(graph))
    assert [value.name for value in again.inputs] == ["b", "a"]
    assert [value.name for value in again.outputs] == ["sub", "a"]


# -- states ----------------------------------------------------------------------------------------


def test_states_can_be_exchanged():
    w = wf.tensor([1.0, 2.0])
    with Graph() as graph:
        x = wf.placeholder((2,), wf.float32, name="x")
        w.assign(w * x)
        y = wf.rand(2)
    source = to_source(graph)
    assert source.states.keys() == {"tensor", "rng"}
    v, generator = wf.tensor([5.0, 5.0]), Generator(3)
    again = rebuild(source, states={"tensor": v, "rng": generator})
    wf.Session(again).run(["assign", y.name], {"x": np.array([2, 2], np.float32)})
    assert (v.tolist(), w.tolist()) == ([10.0, 10.0], [1.0, 2.0])
    assert generator.position()[1] == 1


def test_state_that_is_only_written():
    w = wf.tensor([1.0, 2.0])
    with Graph() as graph:
        w.assign(wf.placeholder((2,), wf.float32, name="tensor"))
    source = to_source(graph)
    assert list(source.states) == ["tensor"]
    assert canonical_hash(rebuild(source)) == canonical_hash(graph)


def test_missing_state():
    w = wf.tensor([1.0, 2.0])
    with Graph() as graph:
        w * 2.0
    with pytest.raises(ArgumentError, match="needs the state 'tensor'; pass states="):
        rebuild(graph_text(graph))
    with pytest.raises(ArgumentTypeError, match=r"must be a tensor or a wf\.Generator. Rec.*list"):
        rebuild(graph_text(graph), states={"tensor": [1.0]})


# -- the builder -----------------------------------------------------------------------------------


def test_builder_takes_attributes_as_they_are():
    def build(F):
        x = F.placeholder("x", float32[2, 3])
        return F.sum(x, axis=(1,), dtype=None), F.add(x, x)

    graph = define(build)
    assert [value.shape for value in graph.outputs] == [(2,), (2, 3)]


def test_builder_refuses_nonsense():
    def run(call):
        return define(lambda F: call(F, F.placeholder("x", float32[2, 3])))

    with pytest.raises(GraphError, match="no operator named 'frobnicate'"):
        run(lambda F, x: F.frobnicate(x))
    with pytest.raises(ArgumentTypeError, match=r"its attributes are axis.*Received: axes"):
        run(lambda F, x: F.sum(x, axes=(0,)))
    with pytest.raises(ShapeError):
        run(lambda F, x: F.matmul(x, x))
    with pytest.raises(GraphError, match="types_="):
        run(lambda F, x: F.nonzero(x))
    with pytest.raises(GraphError, match="made of other operators"):
        run(lambda F, x: F.softmin(x))


def test_text_that_is_no_graph():
    with pytest.raises(GraphError, match="does not define a graph"):
        rebuild("x = 1")
    with pytest.raises(GraphError, match="does not define a graph"):
        rebuild("def build(F:")
    with pytest.raises(ArgumentTypeError, match=r"expected a wf\.Graph"):
        to_source(3)
