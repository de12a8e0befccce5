"""A graph for the graph tab of TensorBoard: an event file with a GraphDef, by tensorboardX."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any

from ..core.dim import Dim
from ..core.errors import ArgumentTypeError
from ..core.imports import require
from ..core.shape import TensorType
from ..graph.graph import Graph
from ..graph.node import Node, Value, subgraphs
from ..graph.special import ASSIGN, CONSTANT, PLACEHOLDER, STATE
from .drawing.labels import attr_texts, own_name
from .drawing.picture import common_scope, subgraph_names

# What TensorBoard calls our operations where it shows a kind of its own.
_OPS = {PLACEHOLDER: "Placeholder", CONSTANT: "Const", STATE: "Variable", ASSIGN: "Assign"}
_TYPES = {
    "bool": "DT_BOOL",
    "int8": "DT_INT8",
    "int16": "DT_INT16",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "uint8": "DT_UINT8",
    "uint16": "DT_UINT16",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "float16": "DT_HALF",
    "bfloat16": "DT_BFLOAT16",
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "complex64": "DT_COMPLEX64",
    "complex128": "DT_COMPLEX128",
}
PURPOSE = "a graph for TensorBoard"
_UNKNOWN = -1  # how a GraphDef writes a size that is not known


def write_tensorboard_graph(graph: Graph, logdir: str | os.PathLike[str]) -> None:
    """Write a graph into an event file in a directory; `tensorboard --logdir` shows it.

    Name scopes are folded and unfolded there; the subgraphs of a control-flow node are inside it.
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(
            f"write_tensorboard_graph: expected a wf.Graph. Received: {type(graph).__name__}"
        )
    definition = graph_def(graph)
    events = _proto("event")
    writer = require("tensorboardX.writer", "tensorboard", PURPOSE).FileWriter(os.fspath(logdir))
    try:
        writer.add_event(events.Event(graph_def=definition.SerializeToString()))
        writer.flush()
    finally:
        writer.close()


def graph_def(graph: Graph) -> Any:
    """Return a graph as a GraphDef message."""
    made = _proto("graph").GraphDef()
    made.versions.producer = 22  # of the format in which attributes are written here
    made.node.extend(_Namer().definitions(graph))
    return made


class _Namer:
    """Gives every node, those of subgraphs too, a name of its own that TensorBoard accepts."""

    def __init__(self) -> None:
        self.names: dict[Node, str] = {}
        self.taken: set[str] = set()

    def definitions(
        self, graph: Graph, prefix: str = "", base: tuple[str, ...] = ()
    ) -> Iterator[Any]:
        """Yield the nodes of a graph, each followed by those of its subgraphs."""
        for node in graph:
            shared = common_scope([node.scope, base])
            name = self._name(prefix + own_name(node.name, shared))
            self.names[node] = name
            yield self._definition(node, name)
            for part, inner in zip(subgraph_names(node), subgraphs(node), strict=True):
                yield from self.definitions(inner, f"{name}/{part}/", node.scope)

    def _name(self, wanted: str) -> str:
        clean = re.sub(r"[^A-Za-z0-9_.\-/]", "_", wanted)
        name, number = clean, 0
        while name in self.taken:
            number += 1
            name = f"{clean}_{number}"
        self.taken.add(name)
        return name

    def _definition(self, node: Node, name: str) -> Any:
        made = _proto("node_def").NodeDef()
        made.name, made.device = name, f"/device:{node.device.upper()}"
        made.op = _OPS.get(node.op, node.op.name)
        made.input.extend(self._input(value) for value in node.inputs if value is not None)
        made.attr["_output_shapes"].list.shape.extend(_shape(x.type) for x in node.outputs)
        types = _proto("types")
        kind = _TYPES.get(str(node.outputs[0].dtype.name), "DT_INVALID") if node.outputs else None
        if kind is not None:
            made.attr["dtype"].type = getattr(types, kind)
        for key, text in (*attr_texts(node), *_facts(node)):
            made.attr[key].s = text.encode()
        return made

    def _input(self, value: Value) -> str:
        name = self.names[value.node]
        return f"{name}:{value.index}" if value.index else name


def _facts(node: Node) -> Iterator[tuple[str, str]]:
    if node.where:
        yield "built_at", node.where
    if node.op is CONSTANT:
        yield "value", repr(node.attrs[0])


def _shape(type: TensorType) -> Any:
    made = _proto("tensor_shape").TensorShapeProto()
    sizes: tuple[Any, ...] = type.shape
    for size in sizes:
        made.dim.add(size=_UNKNOWN if isinstance(size, Dim) else size)
    return made


def _proto(name: str) -> Any:
    return require(f"tensorboardX.proto.{name}_pb2", "tensorboard", PURPOSE)
