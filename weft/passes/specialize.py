"""Put numbers in for the unknown sizes of a program, or sizes that every run is told.

What is left unknown in the graph that is made are sizes that depend on values: how many elements a
mask selects, how many steps a loop takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.dim import Dim, SizeVar, evaluate, is_told, raise_if_told
from ..core.dispatch import ERRORS, group
from ..core.errors import GraphError, UnknownSizeError
from ..core.shape import Shape, TensorType
from ..graph.control.ops import COND, SCAN, WHILE, check_lengths
from ..graph.custom import CustomGradient
from ..graph.edit_sizes import KnownSizes, checked_attrs, is_told_all
from ..graph.graph import Graph
from ..graph.layout import has_unknown_sizes
from ..graph.node import Node, Value, is_graph, resolve_attrs, size_variables
from ..graph.run import Program, Sizes, bind_sizes, located_error
from ..graph.special import ASSIGN, PLACEHOLDER
from .sized_control import with_sizes


class NotStaticError(GraphError):
    """Some shape in a body depends on values, so that it cannot be laid out before it runs."""


def specialize(program: Program, shapes: Mapping[Value, Shape]) -> Graph:
    """Return what a program runs as a graph of its own, for feeds of given shapes.

    Its inputs are the feeds in their order, its outputs the fetches, then what is committed.
    """
    made = _Specialization(program.graph.name, {}, strict=False)
    made.graph.counts_every_draw = program.graph.counts_every_draw
    for value in program.feeds:
        bind_sizes(value, shapes[value], made.sizes)
        made.feed(value, shapes[value])
    made.values = _Resolved(program, made.values)
    made.copy(program.order)
    commits = [value for _, value in program.commits]
    made.graph.outputs = [made.values[v] for v in (*program.fetches, *commits)]
    made.graph.is_function = True
    return made.graph


def specialize_body(body: Graph, types: Sequence[TensorType], sizes: Sizes) -> Graph:
    """Return a body of control flow with known shapes, for operands of given types."""
    made = _Specialization(body.name, dict(sizes), strict=True)
    for value, kind in zip(body.inputs, types, strict=True):
        bind_sizes(value, kind.shape, made.sizes)
        made.feed(value, kind.shape)
    made.copy(body.nodes)
    made.graph.outputs = [made.values[v] for v in body.outputs]
    return made.graph


class _Resolved(dict[Value, Value]):
    """Values by those that a program lets stand for them."""

    def __init__(self, program: Program, values: Mapping[Value, Value]) -> None:
        super().__init__(values)
        self.program = program

    def __missing__(self, value: Value) -> Value:
        stands = self.program.resolved(value)
        if stands is value:
            raise KeyError(value)
        return self[stands]


class _Specialization:
    """A graph that grows, node by node, with what is known of sizes."""

    def __init__(self, name: str, sizes: Sizes, *, strict: bool) -> None:
        self.graph = Graph(name)
        self.sizes = KnownSizes(sizes)
        self.strict = strict  # whether every size must be known
        self.values: dict[Value, Value] = {}

    def feed(self, value: Value, shape: Shape) -> None:
        """Add an input for a value."""
        kind = TensorType(tuple(shape), value.dtype)
        node = self.graph.add(PLACEHOLDER, (), (kind,), (kind,), name=value.name.replace(":", "_"))
        self.values[value] = node.outputs[0]

    def copy(self, nodes: Sequence[Node]) -> None:
        """Add nodes, except those whose results are there."""
        for node in nodes:
            if node.op is not ASSIGN and not all(y in self.values for y in node.outputs):
                self._copy(node)

    def _copy(self, node: Node) -> None:
        inputs = [None if x is None else self.values[x] for x in node.inputs]
        if isinstance(node.op, CustomGradient):  # nobody will ask for its gradient any more
            self._stand_for(node, node.op.passed_on(inputs, node.attrs))
            return
        attrs = resolve_attrs(node.attrs, self.sizes)
        op = node.op
        if op in _OPERANDS:
            op, attrs = self._control(node, inputs, attrs)
        elif op.kind != "control" and has_unknown_sizes(op, node.inputs) and is_told_all(inputs):
            attrs = checked_attrs(op, inputs, attrs)
        types = self._types(node, inputs, attrs)
        copy = self.graph.append(node.rebuilt(inputs, op=op, attrs=attrs, types=types))
        self._stand_for(node, copy.outputs)

    def _stand_for(self, node: Node, values: Sequence[Value]) -> None:
        for old, new in zip(node.outputs, values, strict=True):
            self.values.setdefault(old, new)  # what is fed stays what it is fed with
            bind_sizes(old, new.shape, self.sizes)

    def _control(self, node: Node, inputs: Any, attrs: tuple[Any, ...]) -> tuple[Any, Any]:
        """Return control flow with its bodies specialised; if they cannot be, with the sizes."""
        given = [x.type for x in inputs]
        try:
            types = _OPERANDS[node.op](given, attrs)
        except ERRORS as error:
            raise located_error(node, error, given, attrs) from None
        try:
            made = tuple(
                specialize_body(item, types, self.sizes) if is_graph(item) else item
                for item in attrs
            )
        except (NotStaticError, UnknownSizeError) as error:
            raise_if_told(error)
            needed = {v: self.sizes[v] for v in size_variables(node) if _is_told(v, self.sizes)}
            return with_sizes(node.op, needed), attrs
        return node.op, made

    def _types(self, node: Node, inputs: Any, attrs: tuple[Any, ...]) -> list[TensorType]:
        known = [v.type for v in (*node.inputs, *node.outputs) if v is not None]
        if not any(isinstance(size, Dim) for t in known for size in t.shape):
            return [y.type for y in node.outputs]
        types = [None if x is None else x.type for x in inputs]
        try:
            found = node.op.type_rule(group(node.op, types), attrs)
        except UnknownSizeError:
            found = [y.type for y in node.outputs]
        except ERRORS as error:
            raise located_error(node, error, types, attrs) from None
        result = [found] if isinstance(found, TensorType) else list(found)
        return [self._told(node, a, b.type) for a, b in zip(result, node.outputs, strict=True)]

    def _told(self, node: Node, found: TensorType, known: TensorType) -> TensorType:
        """Return the type of a result, with sizes named as before where they stay unknown."""
        if all(isinstance(size, int) for size in found.shape):
            return found
        pairs = zip(found.shape, known.shape, strict=True)
        sizes = (a if isinstance(a, int) else evaluate(b, self.sizes) for a, b in pairs)
        kind = TensorType(tuple(sizes), found.dtype)
        if self.strict and not is_told(kind.shape):
            raise NotStaticError(f"the shape of {node.name} depends on values")
        return kind


def _is_told(variable: SizeVar, sizes: Mapping[SizeVar, Any]) -> bool:
    return isinstance(sizes.get(variable), int)


# -- what the bodies of control flow take, by the types of the node's operands ---------------------


def _of_cond(types: list[TensorType], attrs: tuple[Any, ...]) -> list[TensorType]:
    return types[1:]


def _of_while(types: list[TensorType], attrs: tuple[Any, ...]) -> list[TensorType]:
    return types


def _of_scan(types: list[TensorType], attrs: tuple[Any, ...]) -> list[TensorType]:
    _, carries, xs, length, *_ = attrs
    columns = types[carries : carries + xs]
    check_lengths([t.shape for t in columns], length)
    rows = [TensorType(t.shape[1:], t.dtype) for t in columns]
    return [*types[:carries], *rows, *types[carries + xs :]]


_OPERANDS = {COND: _of_cond, WHILE: _of_while, SCAN: _of_scan}
