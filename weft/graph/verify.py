"""The verifier: whether a graph is one that can run, and has the types that it claims.

It runs after every pass in the tests, and on every graph that is read from a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.dim import Dim, SizeVar, variables
from ..core.dispatch import group
from ..core.errors import GraphError, WeftError
from ..core.shape import TensorType
from .graph import Graph
from .node import Node, Value, attr_items, is_graph, type_text
from .special import ASSIGN, PLACEHOLDER, STATE
from .verify_control import Unsound, agree, check_control

MAX_DEPTH = 40  # of control flow inside control flow


def verify(graph: Graph) -> None:
    """Raise GraphError, naming the node and the user's line, unless a graph is sound.

    Every input is made before it is used; every node has as many inputs, attributes and outputs as
    its operator declares, and the types that the operator's rule infers; names are unique; states
    are assigned values of their types; some value tells every unknown size that a node needs.
    Subgraphs are checked likewise.
    """
    if not isinstance(graph, Graph):
        raise GraphError(f"verify: expected a wf.Graph. Received: {type(graph).__name__}")
    _Scope(graph, set(), 0).check()


class _Scope:
    """A graph, or a body of control flow with what is known around it."""

    def __init__(self, graph: Graph, told: set[SizeVar], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise GraphError(f"{graph.name}: control flow is nested more than {MAX_DEPTH} deep")
        self.graph = graph
        self.depth = depth
        self.told = told  # the unknown sizes that values up to here tell
        self.made: set[Value] = set()
        self.names: set[str] = set()
        self.states: set[tuple[int, str]] = set()

    def check(self) -> None:
        """Check all nodes in order, then what refers to them."""
        for node in self.graph.nodes:
            try:
                self._check_node(node)
            except Unsound as problem:
                raise GraphError(f"{_described(node)} {problem}") from problem.__cause__
        self._check_ends()

    def _check_node(self, node: Node) -> None:
        if node.name in self.names:
            raise Unsound("has the name of another node")
        self.names.add(node.name)
        for value in node.inputs:
            if value is not None and value not in self.made:
                raise Unsound(f"takes {value.name}, which is not made before it in this graph")
        _check_counts(node)
        self._check_attrs(node)
        if node.op in (STATE, ASSIGN):
            self._check_state(node)
        check_control(node)
        _check_types(node, _inferred(node))
        self.made.update(node.outputs)
        for value in node.outputs:
            for size in value.type.shape:
                if size.__class__ is not int:
                    self._tell(size)

    def _tell(self, size: Any) -> None:
        variable = size.variable() if isinstance(size, Dim) else None
        if variable is not None:
            self.told.add(variable)
        elif not isinstance(size, Dim):
            raise Unsound(f"has a size that is no integer: {size!r:.60}")

    def _check_attrs(self, node: Node) -> None:
        for item in attr_items(node.attrs):
            if item.__class__ is Dim:
                for variable in variables(item):
                    if variable not in self.told:
                        raise Unsound(f"needs the size {variable}, which no value tells before it")
            elif is_graph(item):
                self._check_body(item)

    def _check_body(self, body: Graph) -> None:
        if any(node.op in (STATE, ASSIGN) for node in body.nodes):
            raise Unsound("has a subgraph that refers to a state; it must enter as an input")
        _Scope(body, set(self.told), self.depth + 1).check()

    def _check_state(self, node: Node) -> None:
        (state,) = node.attrs
        if node.op is STATE:
            if state.key in self.states:
                raise Unsound(f"reads the state {state.name} once more; one node must read it")
            self.states.add(state.key)
            return
        (value,) = node.inputs
        assert value is not None  # _check_counts has seen to it
        if not state.writable:
            raise Unsound(f"assigns to {state.name}, which is read-only")
        if not agree(value.type, state.type):
            raise Unsound(
                f"assigns {type_text(value.type)} to {state.name}, which is {type_text(state.type)}"
            )

    def _check_ends(self) -> None:
        graph = self.graph
        placeholders = [n.outputs[0] for n in graph.nodes if n.op is PLACEHOLDER]
        if len(graph.inputs) != len(placeholders) or set(graph.inputs) != set(placeholders):
            raise GraphError(f"{graph.name}: its inputs are not its placeholders")
        for value in graph.outputs:
            if value not in self.made:
                raise GraphError(f"{graph.name}: the output {value.name} is not in the graph")
        for name, value in graph.names.items():
            if value not in self.made:
                raise GraphError(f"{graph.name}: the value named {name!r} is not in the graph")
            if name in self.names and name != value.node.name:
                raise GraphError(f"{graph.name}: the name {name!r} is also that of another node")


def _described(node: Node) -> str:
    where = f", built at {node.where}" if node.where else ""
    return f"node {node.name} ({node.op.name}{where})"


def _check_counts(node: Node) -> None:
    op, given = node.op, len(node.inputs)
    least = len(op.inputs) - op.variadic
    if given < least or (given > least and not op.variadic):
        raise Unsound(f"takes {given} values instead of {least}{' or more' * op.variadic}")
    if len(node.attrs) != len(op.attrs):
        raise Unsound(f"has {len(node.attrs)} attributes instead of {len(op.attrs)}")
    if not all(node.inputs) and None in node.inputs:
        _check_optional(node)
    if op.outputs is not None and len(node.outputs) != op.outputs:
        raise Unsound(f"makes {len(node.outputs)} values instead of {op.outputs}")


def _check_optional(node: Node) -> None:
    op = node.op
    for i, value in enumerate(node.inputs):
        name = op.inputs[min(i, len(op.inputs) - 1)]
        if value is None and name not in op.optional:
            raise Unsound(f"lacks its input {name}")


def _inferred(node: Node) -> Sequence[TensorType]:
    types = [None if value is None else value.type for value in node.inputs]
    try:
        found = node.op.type_rule(group(node.op, types), node.attrs)
    except WeftError as error:
        raise Unsound(f"does not fit its inputs: {error}") from error
    except Exception as error:
        # Rules rely on canonical attributes; with others they may fail in any way.
        raise Unsound(f"has attributes its operator cannot have: {error!r:.80}") from error
    return [found] if isinstance(found, TensorType) else list(found)


def _check_types(node: Node, inferred: Sequence[TensorType]) -> None:
    if len(inferred) != len(node.outputs):
        raise Unsound(f"makes {len(node.outputs)} values where its rule gives {len(inferred)}")
    for value, found in zip(node.outputs, inferred, strict=True):
        if value.type is not found and not agree(found, value.type):
            raise Unsound(f"makes {type_text(value.type)} where its rule gives {type_text(found)}")
