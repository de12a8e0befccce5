"""The canonical form: a graph rebuilt so that equal graphs become the same, node for node.

Nodes stand in the order of the canonical walk, equal ones are one, operands whose order is
immaterial are ordered by their hashes, captured values by the order in which they are made; names,
unknown sizes and states are numbered. Two graphs of one canonical hash print alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from weft.core.dim import Dim, SizeVar, evaluate, unknown_size, variables
from weft.core.shape import TensorType
from weft.graph.graph import Graph
from weft.graph.identity.canonical import Canonical
from weft.graph.identity.points import Point, Ref
from weft.graph.node import Node, Value, attr_items, is_graph, map_attr
from weft.graph.special import ASSIGN, PLACEHOLDER, STATE
from weft.graph.state import State

Env = dict[Ref, Value]


def canonical_form(graph: Graph, outputs: Iterable[Any] | None = None) -> Graph:
    """Return what a graph computes as a new graph that does not depend on how it was built.

    Its `aliases` say what the values of the original became.
    """
    return _Form(Canonical(graph, outputs)).build()


class _Form:
    """Builds the canonical form."""

    def __init__(self, canonical: Canonical) -> None:
        canonical.settle()
        self.canonical = canonical
        self.layout = canonical.layout
        self.points = canonical.points
        self.sizes = _Sizes(canonical.colours)
        self.states = {
            key: state.renamed(f"state_{i}") for i, (key, state) in enumerate(_items(canonical))
        }
        self.rank = {point: i for i, point in enumerate(canonical.order)}
        self.members: dict[int, list[int]] = {}
        for i in canonical.order:
            self.members.setdefault(self.points[i].scope, []).append(i)

    def build(self) -> Graph:
        """Return the new graph."""
        graph, env = Graph(), Env()
        for i in self._placeholders():
            self._placeholder(graph, self.points[i], Ref(i, 0), env)
        self._fill(graph, 0, env)
        if self.canonical.ordered:
            graph.outputs = [env[ref] for ref in self.canonical.ends]
        graph.aliases = {v: env[ref] for v, ref in self.layout.env.items() if ref in env}
        return graph

    # -- inputs ------------------------------------------------------------------------------------

    def _placeholders(self) -> list[int]:
        """Return the placeholders that are used, then those that only tell sizes."""
        found = [i for i in self.members.get(0, ()) if _is_placeholder(self.points[i])]
        needed = {v for i in self.canonical.order for v in _sizes_of(self.points[i])}
        told = {v for i in found for v in _sizes_of(self.points[i])}
        tellers = {
            min(refs, key=lambda ref: (self.points[ref.point].node.name, ref.output)).point  # type: ignore[union-attr]  # a placeholder
            for variable, refs in self.layout.sizes.items()
            if variable in needed - told
        }
        return found + sorted(tellers - set(found), key=lambda i: self._name(self.points[i]))

    def _placeholder(self, graph: Graph, point: Point, ref: Ref, env: Env) -> None:
        kind = self._type(point.types[0])
        name = graph.unique_name(self._name(point))
        env[ref] = graph.append(Node(PLACEHOLDER, (), (kind,), (kind,), name=name)).outputs[0]

    def _name(self, point: Point) -> str:
        return f"arg_{point.position}" if point.node is None else point.node.name

    # -- nodes -------------------------------------------------------------------------------------

    def _fill(self, graph: Graph, scope: int, env: Env) -> None:
        """Append the nodes of a graph or of a body."""
        for i in self.members.get(scope, ()):
            point = self.points[i]
            if Ref(i, 0) not in env:  # arguments and placeholders are there already
                node = self._append(graph, point, env)
                env.update({Ref(i, value.index): value for value in node.outputs})

    def _append(self, graph: Graph, point: Point, env: Env) -> Node:
        node = point.node
        assert node is not None
        inputs: Sequence[Value | None]
        if node.op in (STATE, ASSIGN):
            state = self.states[node.attrs[0].key]
            inputs, attrs = [env[ref] for ref in point.refs if ref is not None], (state,)
            name = state.name if node.op is STATE else node.op.name
        elif point.bodies:
            inputs, attrs = self._control(point, env)
            name = node.op.name
        else:
            inputs, attrs = self._operands(point, env), self._attrs(node.attrs)
            name = node.op.name
        types = [self._type(t) for t in point.types]
        unique = graph.unique_name(name)
        return graph.append(Node(node.op, inputs, attrs, types, name=unique, device=node.device))

    def _operands(self, point: Point, env: Env) -> list[Value | None]:
        refs = point.refs
        if point.commutes:
            hashes = self.canonical.hashes
            refs = sorted(refs, key=lambda r: (hashes[r.point], r.output))  # type: ignore[union-attr]  # none is left out
        return [None if ref is None else env[ref] for ref in refs]

    def _attrs(self, attrs: tuple[Any, ...]) -> tuple[Any, ...]:
        mapped: tuple[Any, ...] = map_attr(
            lambda item: evaluate(item, self.sizes) if item.__class__ is Dim else item, attrs
        )
        return mapped

    def _type(self, type: TensorType) -> TensorType:
        return TensorType(self._attrs(type.shape), type.dtype)

    # -- control flow ------------------------------------------------------------------------------

    def _control(self, point: Point, env: Env) -> tuple[list[Value | None], tuple[Any, ...]]:
        """Return the inputs and attributes of control flow, with the captured values in order."""
        node, threads = point.node, point.threads
        assert node is not None
        results = sum(len(self.layout.results[body]) for body in point.bodies)
        fixed = len(point.refs) - results - len(threads)
        through = point.refs[fixed : fixed + len(threads)]
        taken = {ref for body in point.bodies for ref in self._free(body)}
        taken |= {ref for (i, _), ref in zip(threads, through, strict=True) if i >= fixed and ref}
        order = sorted(taken, key=lambda ref: (self.rank[ref.point], ref.output))
        captured = list(dict.fromkeys(env[ref] for ref in order))
        inputs = [None if ref is None else env[ref] for ref in point.refs[:fixed]]
        moved = tuple(
            (i if i < fixed or ref is None else fixed + captured.index(env[ref]), after)
            for (i, after), ref in zip(threads, through, strict=True)
        )
        bodies = iter([self._body(body, captured, env) for body in point.bodies])
        attrs = tuple(
            next(bodies) if is_graph(attr) else moved if name == "threads" else attr
            for name, attr in zip(node.op.attrs, node.attrs, strict=True)
        )
        return [*inputs, *captured], self._attrs(attrs)

    def _body(self, scope: int, captured: Sequence[Value], outer: Env) -> Graph:
        graph, env = Graph("body"), Env()
        for i in self.layout.arguments[scope]:
            self._placeholder(graph, self.points[i], Ref(i, 0), env)
        entering = {}
        for value in captured:
            node = graph.add(PLACEHOLDER, (), (value.type,), (value.type,), name="captured")
            entering[value] = node.outputs[0]
        env.update({ref: entering[outer[ref]] for ref in self._free(scope)})
        self._fill(graph, scope, env)
        graph.outputs = [env[ref] for ref in self.layout.results[scope]]
        return graph

    def _free(self, scope: int) -> set[Ref]:
        """Return what a body, with the bodies in it, takes from outside."""
        found = set(self.layout.results[scope])
        for i in self.members.get(scope, ()):
            point = self.points[i]
            inside = sum(len(self.layout.results[body]) for body in point.bodies)
            found.update(ref for ref in point.refs[: len(point.refs) - inside] if ref is not None)
            for body in point.bodies:
                found |= self._free(body)
        return {ref for ref in found if self.points[ref.point].scope != scope}


class _Sizes(dict[SizeVar, Any]):
    """New names of unknown sizes, numbered as they are met; those of one colour are the same."""

    def __init__(self, colours: dict[SizeVar, bytes]) -> None:
        super().__init__()
        self._colours = colours
        self._numbers: dict[Any, int] = {}

    def __missing__(self, variable: SizeVar) -> Any:
        colour = self._colours.get(variable, variable)
        number = self._numbers.setdefault(colour, len(self._numbers))
        self[variable] = unknown_size(f"s{number}")
        return self[variable]


def _items(canonical: Canonical) -> Iterable[tuple[tuple[int, str], State]]:
    return canonical.states.items()


def _is_placeholder(point: Point) -> bool:
    return point.node is not None and point.node.op is PLACEHOLDER


def _sizes_of(point: Point) -> set[SizeVar]:
    items = [size for kind in point.types for size in kind.shape]
    if point.node is not None:
        items += attr_items(point.node.attrs)
    return {variable for item in items for variable in variables(item)}
