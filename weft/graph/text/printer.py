"""Graphs as Python: readable text that builds the same graph again.

    from weft.graph.builder import float32

    def build(F):
        n = F.size("n")
        x = F.placeholder("x", float32[n, 784])  # train.py:12
        weight = F.state("weight")  # float32[784, 10]  train.py:13
        matmul = F.matmul(x, weight)  # float32[n, 10]  train.py:13
        return ()

Every node is a line; bodies of control flow are functions in front of it. Constants of more than
16 elements, and all states, are named and passed beside the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ...core.dim import SizeVar, variables
from ...core.dispatch import group
from ...core.errors import ArgumentTypeError, GraphError
from ...core.op import REQUIRED
from ...core.shape import TensorType
from .. import builder
from ..builder import define
from ..graph import Graph
from ..identity.content import same_content
from ..node import Node, Value, attr_items, is_graph, subgraphs, type_text
from ..special import ASSIGN, CONSTANT, PLACEHOLDER, STATE
from ..state import State
from .expressions import INLINE, Array, Expressions, Names, quoted
from .source_lines import SourceLines

_RESERVED = {"F", "build", "inf", "nan", *builder.ELEMENT_NAMES.values()}


class GraphSource(NamedTuple):
    """A graph as text, and what the text refers to by name."""

    text: str
    constants: dict[str, Array]
    states: dict[str, State]


def to_source(graph: Graph) -> GraphSource:
    """Return a graph as Python text with the constants and states that it names.

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None, 3), wf.float32, name="x")
    ...     y = x + 1.0
    >>> source = to_source(graph)
    >>> rebuild(source).hash() == graph.hash()
    True
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"to_source: expected a wf.Graph. Received: {type(graph).__name__}")
    return _Printer(graph).source()


def graph_text(graph: Graph) -> str:
    """Return a graph as Python text."""
    return to_source(graph).text


def rebuild(
    source: GraphSource | str,
    *,
    states: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Graph:
    """Run the text of a graph and return the graph that it builds.

    The text is Python and can do anything: run only what you trust. Saved graphs are data; see
    load_graph.

    states      tensors and generators by name, in place of the source's own
    constants   arrays by name, likewise
    """
    text = source.text if isinstance(source, GraphSource) else source
    known = (source.states, source.constants) if isinstance(source, GraphSource) else ({}, {})
    namespace: dict[str, Any] = {}
    try:
        code = compile(text, "<graph>", "exec", dont_inherit=True)  # annotations are types here
        exec(code, namespace)  # what this function is for
        build = namespace["build"]
    except (SyntaxError, KeyError) as error:
        raise GraphError(f"rebuild: the text does not define a graph: {error!r}") from error
    return define(
        build, states={**known[0], **(states or {})}, constants={**known[1], **(constants or {})}
    )


def state_names(graph: Graph) -> dict[tuple[int, str], str]:
    """Return a name for each state of a graph: that of the node that reads it, if one does."""
    read = {n.attrs[0].key: n.name for n in graph.nodes if n.op is STATE}
    taken = set(read.values())
    for node in graph.nodes:
        if node.op is ASSIGN and node.attrs[0].key not in read:
            name, count = node.attrs[0].name, 0
            while name in taken:
                count += 1
                name = f"{node.attrs[0].name}_{count}"
            taken.add(name)
            read[node.attrs[0].key] = name
    return read


class _Printer:
    """Writes one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Array] = {}
        self.states = state_names(graph)
        self.places = SourceLines()
        names = Names(_RESERVED)
        self.sizes = {size: names.give(size.name) for size in sizes_in(graph)}
        self.reserved = names.taken
        self.expressions = Expressions(self.sizes)

    def source(self) -> GraphSource:
        """Return the text and what it refers to."""
        lines = ["def build(F):"]
        if self.graph.name != "graph":
            lines.append(f"    F.graph.name = {quoted(self.graph.name)}")
        lines += [f"    {name} = F.size({quoted(size.name)})" for size, name in self.sizes.items()]
        lines += _Block(self, self.graph, "    ").lines()
        imports = sorted(self.expressions.imports)
        head = [f"from weft.graph.builder import {', '.join(imports)}", "", ""] if imports else []
        states = {self.states[state.key]: state for state in self.graph.states()}
        return GraphSource("\n".join([*head, *lines, ""]), self.constants, states)

    def keep(self, node: Node) -> str:
        """Keep a constant beside the text; return its name there."""
        name, count = node.name, 0
        while name in self.constants:  # bodies have names of their own
            count += 1
            name = f"{node.name}.{count}"
        self.constants[name] = node.attrs[0].array
        return name


class _Block:
    """Writes the nodes of a graph, or of the body of control flow."""

    def __init__(self, printer: _Printer, graph: Graph, indent: str) -> None:
        self.printer = printer
        self.write = printer.expressions
        self.graph = graph
        self.indent = indent
        self.names = Names(printer.reserved)
        self.variables: dict[Value, str] = {}
        self.shadow = Graph()  # gives out the names that the builder would
        self.is_body = graph is not printer.graph

    def parameters(self) -> str:
        """Return the inputs of a body as annotated parameters."""
        for value in self.graph.inputs:
            self.variables[value] = self.names.give(value.node.name)
            self.shadow.unique_name(self.variables[value])
        return "".join(
            f", {self.variables[value]}: {self.write.type(value.type)}"
            for value in self.graph.inputs
        )

    def lines(self) -> Iterator[str]:
        """Yield the lines of the nodes, those of a scope indented together, and of the end."""
        scope: tuple[str, ...] = ()
        for node in self.graph.nodes:
            if self.is_body and node.op is PLACEHOLDER:
                continue
            if node.scope != scope:
                scope = node.scope
                if scope:
                    yield f"{self.indent}with F.scope({quoted('/'.join(scope))}):"
            indent = self.indent + "    " * bool(scope)
            yield from self._bodies(node, indent)
            yield f"{indent}{self._statement(node)}{self._comment(node)}"
        yield from self._end()

    def _end(self) -> Iterator[str]:
        graph, known = self.graph, self.variables
        placeholders = [n.outputs[0] for n in graph.nodes if n.op is PLACEHOLDER]
        if not self.is_body and graph.inputs != placeholders:
            yield f"{self.indent}F.inputs({', '.join(known[value] for value in graph.inputs)})"
        for name, value in graph.names.items():
            yield f"{self.indent}F.name({known[value]}, {quoted(name)})"
        yield f"{self.indent}return {_listed([known[value] for value in graph.outputs]) or '()'}"

    # -- a node ------------------------------------------------------------------------------------

    def _bodies(self, node: Node, indent: str) -> Iterator[str]:
        bodies = subgraphs(node)
        if bodies:
            yield ""
        for body in bodies:
            name = self.names.give(body.name)
            self.write.bodies[id(body)] = name
            block = _Block(self.printer, body, indent + "    ")
            yield f"{indent}@F.body"
            yield f"{indent}def {name}(F{block.parameters()}):"
            yield from block.lines()
            yield ""

    def _statement(self, node: Node) -> str:
        call = self._call(node)
        targets = self._targets(node)
        if node.op.outputs == 1:
            return f"{targets[0]} = {call}"
        return f"{_listed(targets)} = {call}" if targets else call

    def _targets(self, node: Node) -> list[str]:
        several = len(node.outputs) > 1
        for value in node.outputs:
            wanted = f"{node.name}_{value.index}" if several else node.name
            self.variables[value] = self.names.give(wanted)
        return [self.variables[value] for value in node.outputs]

    def _call(self, node: Node) -> str:
        special = _SPECIAL.get(node.op)
        arguments = special(self, node) if special is not None else self._arguments(node)
        if node.op is not PLACEHOLDER:
            arguments += self._details(node)
        return f"F.{node.op.name}({', '.join(arguments)})"

    def _arguments(self, node: Node) -> list[str]:
        attrs = [
            f"{name}={self.write.attr(attr)}"
            for (name, default), attr in zip(node.op.attrs.items(), node.attrs, strict=True)
            if not _is_default(attr, default)
        ]
        return [*self._inputs(node), *attrs, *self._types(node)]

    def _inputs(self, node: Node) -> list[str]:
        return ["None" if x is None else self.variables[x] for x in node.inputs]

    def _types(self, node: Node) -> list[str]:
        """Return the types of the results if the operator's rule does not give just these."""
        own = [value.type for value in node.outputs]
        if own == _inferred(node):
            return []
        return [f"types_=[{', '.join(map(self.write.type, own))}]"]

    def _details(self, node: Node) -> list[str]:
        """Return the name of a node if it is not what the builder would choose, and its device."""
        details = [] if node.device == "cpu" else [f"device_={quoted(node.device)}"]
        base = node.name if node.op is STATE else "/".join((*node.scope, node.op.name))
        if not self._would_be_named(node, base):
            self.shadow.unique_name(node.name)
            details.append(f"name_={quoted(node.name)}")
        return details

    def _would_be_named(self, node: Node, base: str) -> bool:
        taken = self.shadow._taken
        before = taken.get(base)
        name = self.shadow.unique_name(base)
        if name == node.name:
            return True
        del taken[name]
        if before is not None:
            taken[base] = before
        return False

    def _comment(self, node: Node) -> str:
        shown = [] if self._shows_type(node) else [type_text(v.type) for v in node.outputs]
        place = self.printer.places.of(node)
        where = [] if place is None else [place]
        parts = [", ".join(shown), *where] if shown else where
        return f"  # {'  '.join(parts)}".replace("\n", " ") if parts else ""

    def _shows_type(self, node: Node) -> bool:
        small = node.op is CONSTANT and node.attrs[0].array.size <= INLINE
        return small or node.op is PLACEHOLDER

    # -- sources and states -----------------------------------------------------------------------

    def _placeholder(self, node: Node) -> list[str]:
        self.shadow.unique_name(node.name)
        return [quoted(node.name), self.write.type(node.outputs[0].type)]

    def _constant(self, node: Node) -> list[str]:
        content = self.write.array(node.attrs[0].array)
        return [quoted(self.printer.keep(node)) if content is None else content]

    def _state(self, node: Node) -> list[str]:
        return [quoted(self.printer.states[node.attrs[0].key])]

    def _assign(self, node: Node) -> list[str]:
        return [*self._state(node), *self._inputs(node)]


_SPECIAL = {
    PLACEHOLDER: _Block._placeholder,
    CONSTANT: _Block._constant,
    STATE: _Block._state,
    ASSIGN: _Block._assign,
}


def sizes_in(graph: Graph) -> list[SizeVar]:
    """Return the unknown sizes in a graph and its subgraphs, in order of appearance."""
    found: dict[SizeVar, None] = {}
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            for size in _sizes_of(node):
                found.update(dict.fromkeys(variables(size)))
            pending += subgraphs(node)
    return list(found)


def _sizes_of(node: Node) -> Iterator[Any]:
    for value in node.outputs:
        yield from value.shape
    yield from (item for item in attr_items(node.attrs) if not is_graph(item))


def _inferred(node: Node) -> list[TensorType]:
    types = [None if value is None else value.type for value in node.inputs]
    found = node.op.type_rule(group(node.op, types), node.attrs)
    found = [found] if isinstance(found, TensorType) else list(found)
    return [] if any(size is None for t in found for size in t.shape) else found


def _is_default(attr: Any, default: Any) -> bool:
    return default is not REQUIRED and same_content(attr, default)


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)
