"""Graphs for TensorBoard: event files, read back record by record."""

import struct
from importlib import import_module

import pytest

import weft as wf
from weft.core import imports
from weft.core.errors import ArgumentTypeError, MissingDependencyError
from weft.viz.tensorboard import graph_def, write_tensorboard_graph

pytest.importorskip("tensorboardX")


def written(directory):
    """Return the GraphDefs in the event files of a directory."""
    event_type = import_module("tensorboardX.proto.event_pb2").Event
    graph_type = import_module("tensorboardX.proto.graph_pb2").GraphDef
    found = []
    for path in directory.glob("events.out.tfevents.*"):
        data, at = path.read_bytes(), 0
        while at < len(data):  # length, its checksum, the record, its checksum
            (length,) = struct.unpack_from("<Q", data, at)
            event = event_type.FromString(data[at + 12 : at + 12 + length])
            at += length + 16
            if event.graph_def:
                found.append(graph_type.FromString(event.graph_def))
    return found


def nodes_of(graph):
    return {node.name: node for node in graph_def(graph).node}


def sizes(node, output=0):
    return [dim.size for dim in node.attr["_output_shapes"].list.shape[output].dim]


def test_nodes_edges_shapes_and_scopes_are_in_the_event_file(tmp_path):
    layer = wf.nn.Linear(3, 2)
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        with wf.name_scope("block"):
            layer(x).relu() * 2.0
    write_tensorboard_graph(graph, tmp_path)
    (found,) = written(tmp_path)
    nodes = {node.name: node for node in found.node}
    assert len(nodes) == len(graph)
    assert list(nodes) == [node.name for node in graph]
    assert nodes["x"].op == "Placeholder"
    assert sizes(nodes["x"]) == [-1, 3]
    assert nodes["x"].attr["dtype"].type == import_module("tensorboardX.proto.types_pb2").DT_FLOAT
    linear = nodes["block/linear/linear"]
    assert list(linear.input) == ["x", "block/linear/weight", "block/linear/bias"]
    assert nodes["block/linear/weight"].op == "Variable"
    assert sizes(nodes["block/linear/weight"]) == [2, 3]
    assert list(nodes["block/relu"].input) == ["block/linear/linear"]
    assert nodes["block/constant"].attr["value"].s == b"2."
    assert nodes["block/mul"].device == "/device:CPU"
    assert b"test_tensorboard.py:" in nodes["block/mul"].attr["built_at"].s


def test_the_method_of_graphs_writes_too(tmp_path):
    with wf.Graph() as graph:
        wf.placeholder((2,), wf.float32, name="x")
    graph.write_tensorboard(tmp_path / "new" / "folder")
    assert len(written(tmp_path / "new" / "folder")) == 1


def test_attributes_and_several_outputs():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 6), wf.int64, name="x")
        first, second = wf.split(x, 3, axis=1)
        (second - first).sum(axis=0)
    nodes = nodes_of(graph)
    (split,) = [node for node in nodes.values() if len(node.attr["_output_shapes"].list.shape) == 2]
    assert sizes(split, 1) == [4, 3]
    assert list(nodes["sub"].input) == [f"{split.name}:1", split.name]
    assert nodes["sum"].attr["axis"].s == b"(0,)"


def test_subgraphs_are_inside_their_node():
    with wf.Graph() as graph:
        a = wf.placeholder((), wf.float32, name="a")
        with wf.name_scope("loop"):
            wf.while_loop(lambda x: x < a, lambda x: x * 2.0, wf.tensor(1.0))
    nodes = nodes_of(graph)
    assert nodes["loop/while_loop"].op == "while_loop"
    inner = [name for name in nodes if name.startswith("loop/while_loop/body/")]
    assert "loop/while_loop/body/mul" in inner
    taken = {name.partition(":")[0] for node in nodes.values() for name in node.input}
    assert taken <= nodes.keys()


def test_names_become_what_tensorboard_accepts():
    with wf.Graph() as graph:
        first = wf.placeholder((), wf.float32, name="a b")
        second = wf.placeholder((), wf.float32, name="a+b")
        first + second
    nodes = nodes_of(graph)
    assert list(nodes) == ["a_b", "a_b_1", "add"]
    assert list(nodes["add"].input) == ["a_b", "a_b_1"]


def test_without_tensorboardx_the_error_says_what_to_install(monkeypatch, tmp_path):
    def missing(name):
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(imports, "import_module", missing)
    with wf.Graph() as graph:
        wf.placeholder((2,), wf.float32, name="x")
    with pytest.raises(MissingDependencyError, match=r"weft\[tensorboard\]"):
        write_tensorboard_graph(graph, tmp_path)


def test_other_objects_are_refused(tmp_path):
    with pytest.raises(ArgumentTypeError, match=r"Graph.*str"):
        write_tensorboard_graph("graph", tmp_path)
