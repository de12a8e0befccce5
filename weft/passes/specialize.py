"""Put numbers in for the unknown sizes of a program: a graph in which every shape is known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.dim import Dim
from ..core.dispatch import ERRORS, canonical, group
from ..core.errors import GraphError
from ..core.shape import Shape, TensorType
from ..graph.graph import Graph
from ..graph.node import Node, Value, resolve_attrs
from ..graph.run import Program, Sizes, bind_sizes, has_unknown_sizes, located_error
from ..graph.special import ASSIGN, PLACEHOLDER


class NotStaticError(GraphError):
    """Some shape depends on values, so that the program cannot be laid out before it runs."""


def specialize(program: Program, shapes: Mapping[Value, Shape]) -> Graph:
    """Return what a program runs as a graph of its own, for feeds of given shapes.

    Its inputs are the feeds in their order, its outputs the fetches, then what is committed.
    """
    return _Specialization(program, shapes).graph


class _Specialization:
    def __init__(self, program: Program, shapes: Mapping[Value, Shape]) -> None:
        self.program = program
        self.graph = Graph(program.graph.name)
        self.sizes: Sizes = {}
        self.values: dict[Value, Value] = {}
        for value in program.feeds:
            bind_sizes(value, shapes[value], self.sizes)
            self._feed(value, shapes[value])
        for node in program.order:
            if not all(y in self.values for y in node.outputs):
                self._copy(node)
        commits = [value for _, value in program.commits]
        self.graph.outputs = [self._value(v) for v in (*program.fetches, *commits)]

    def _feed(self, value: Value, shape: Shape) -> None:
        kind = TensorType(tuple(shape), value.dtype)
        node = self.graph.add(PLACEHOLDER, (), (kind,), (kind,), name=value.name.replace(":", "_"))
        self.values[value] = node.outputs[0]

    def _value(self, value: Value) -> Value:
        return self.values[self.program.resolved(value)]

    def _copy(self, node: Node) -> None:
        if node.op is ASSIGN:
            return
        inputs = [None if x is None else self._value(x) for x in node.inputs]
        attrs = resolve_attrs(node.attrs, self.sizes)
        if node.op.kind != "control" and has_unknown_sizes(node):
            attrs = canonical(node.op, tuple(map(_stand_in, inputs)), attrs)
        types = self._types(node, inputs, attrs)
        copy = self.graph.append(node.rebuilt(inputs, attrs=attrs, types=types))
        for old, new in zip(node.outputs, copy.outputs, strict=True):
            self.values.setdefault(old, new)  # what is fed stays what it is fed with
            bind_sizes(old, new.shape, self.sizes)

    def _types(self, node: Node, inputs: Any, attrs: tuple[Any, ...]) -> list[TensorType]:
        known = [v.type for v in (*node.inputs, *node.outputs) if v is not None]
        if not any(isinstance(size, Dim) for t in known for size in t.shape):
            return [y.type for y in node.outputs]
        types = [None if x is None else x.type for x in inputs]
        try:
            found = node.op.type_rule(group(node.op, types), attrs)
        except ERRORS as error:
            raise located_error(node, error, types, attrs) from None
        result = [found] if isinstance(found, TensorType) else list(found)
        if any(not isinstance(size, int) for t in result for size in t.shape):
            raise NotStaticError(f"the shape of {node.name} depends on values")
        return result


def _stand_in(value: Value | None) -> Any:
    """Return an array of a value's shape and dtype, for the checks of an operator, at no cost."""
    if value is None:
        return None
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)
