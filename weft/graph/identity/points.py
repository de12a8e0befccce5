"""A graph laid out flat: every node of it and of its subgraphs as one point of a single DAG.

What a body of control flow takes from outside points straight to where it is made, so that the
order in which values were captured leaves no trace. What changes from step to step (carries, rows)
enters a body through a point of its own, an argument, known by the depth and its position.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...core.dim import Dim, SizeVar, is_known, variables
from ...core.errors import GraphError
from ...core.shape import TensorType
from ...ops.elementwise.filling import fill_like
from ..graph import Graph
from ..node import Node, Value, attr_items, is_graph, subgraphs
from ..special import PLACEHOLDER


class Ref(NamedTuple):
    """One result of a point."""

    point: int
    output: int


class Point:
    """One node in one place.

    node      the node; None for an argument of a body
    types     the types of its results
    refs      where its inputs come from; for control flow also what its bodies give
    tellers   points that tell the unknown sizes in its attributes
    scope     the number of the body it stands in; 0 is the graph itself
    depth     how many bodies are around it
    bodies    the numbers of its own bodies, in the order of its subgraphs
    position  of an argument: which
    """

    __slots__ = ("bodies", "depth", "node", "position", "refs", "scope", "tellers", "types")

    def __init__(
        self, node: Node | None, types: Sequence[TensorType], scope: int, depth: int
    ) -> None:
        self.node = node
        self.types = types
        self.scope = scope
        self.depth = depth
        self.refs: list[Ref | None] = []
        self.tellers: list[int] = []
        self.bodies: list[int] = []
        self.position = 0

    @property
    def commutes(self) -> bool:
        """Tell whether the order of its operands is immaterial."""
        return self.node is not None and "commutative" in self.node.op.laws

    @property
    def threads(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of input and output by which states pass through control flow."""
        if self.node is None or "threads" not in self.node.op.attrs:
            return ()
        threads: tuple[tuple[int, int], ...] = self.node.attr("threads")
        return threads


class PointLayout:
    """A graph as points, each after those it refers to.

    env         where each value of the graph itself is made
    outputs     what the graph gives
    results     for each body: where its results come from
    arguments   for each body: its arguments
    parents     for each body: the body around it
    sizes       for each unknown size: the placeholders, and their axes, that tell it
    """

    def __init__(self, graph: Graph, outputs: Iterable[Value], *, as_run: bool = False) -> None:
        """Lay a graph out; `as_run` without what matters only to derivatives of it."""
        self.as_run = as_run
        self.points: list[Point] = []
        self.results: list[list[Ref]] = [[]]
        self.arguments: list[list[int]] = [[]]
        self.parents: list[int] = [0]
        self.sizes: dict[SizeVar, list[Ref]] = {}
        env: dict[Value, Ref] = {}
        self._lay(graph, env, {}, 0, 0)
        self.env = env
        self.outputs = [_found(env, value, graph) for value in outputs]

    def _lay(
        self, graph: Graph, env: dict[Value, Ref], told: dict[SizeVar, int], scope: int, depth: int
    ) -> None:
        for node in graph.nodes:
            if node.op is PLACEHOLDER and node.outputs[0] in env:
                continue
            if self.as_run and node.op.identity:
                env[node.outputs[0]] = _found(env, node.inputs[0], graph)  # type: ignore[arg-type]  # it has one
                continue
            point = Point(node, [value.type for value in node.outputs], scope, depth)
            point.tellers = [told[v] for v in _sizes_of(node) if told.get(v, -1) >= 0]
            if any(is_graph(item) for item in node.attrs):
                self._control(point, env, told)
            elif not (self.as_run and _is_fill(node)):
                point.refs = [None if x is None else _found(env, x, graph) for x in node.inputs]
            number = len(self.points)
            self.points.append(point)
            for value in node.outputs:
                env[value] = Ref(number, value.index)
            self._note_sizes(point, number, told)

    def _note_sizes(self, point: Point, number: int, told: dict[SizeVar, int]) -> None:
        """Note who tells a size first. Placeholders tell it together: their order is immaterial."""
        at_top = point.node is not None and point.node.op is PLACEHOLDER and not point.depth
        for _, axis, variable in bare_sizes(point.types):
            if at_top:
                told[variable] = -1
                self.sizes.setdefault(variable, []).append(Ref(number, axis))
            else:
                told.setdefault(variable, number)

    def _control(self, point: Point, env: dict[Value, Ref], told: dict[SizeVar, int]) -> None:
        node = point.node
        assert node is not None
        inputs = [None if x is None else env[x] for x in node.inputs]
        bodies = subgraphs(node)
        fixed = _positional(node, bodies)
        refs: list[Ref | None] = [*inputs[:fixed], *(inputs[i] for i, _ in point.threads)]
        for body in bodies:
            scope = len(self.results)
            self.results.append([])
            self.arguments.append([])
            self.parents.append(point.scope)
            point.bodies.append(scope)
            inner = self._enter(body, inputs, fixed, env, scope, point.depth + 1)
            self._lay(body, inner, dict(told), scope, point.depth + 1)
            self.results[scope] = [_found(inner, value, body) for value in body.outputs]
            refs += self.results[scope]
        point.refs = refs

    def _enter(
        self,
        body: Graph,
        inputs: Sequence[Ref | None],
        fixed: int,
        env: dict[Value, Ref],
        scope: int,
        depth: int,
    ) -> dict[Value, Ref]:
        """Return where the inputs of a body come from."""
        inner: dict[Value, Ref] = {}
        offset = len(inputs) - len(body.inputs)
        for i, value in enumerate(body.inputs):
            outer = inputs[i + offset] if i + offset >= fixed else None
            if outer is not None:
                inner[value] = outer
                continue
            point = Point(None, [value.type], scope, depth)
            point.position = i
            inner[value] = Ref(len(self.points), 0)
            self.arguments[scope].append(len(self.points))
            self.points.append(point)
        return inner

    # -- reading -----------------------------------------------------------------------------------

    def reachable(self) -> list[int]:
        """Return the points that the outputs need, in order."""
        seen: set[int] = set()
        pending = [ref.point for ref in self.outputs]
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            point = self.points[number]
            pending += [ref.point for ref in point.refs if ref is not None]
            pending += point.tellers
        return sorted(seen)

    def merge(self, same: dict[int, int]) -> None:
        """Let everything refer to other points than before."""

        def moved(ref: Ref | None) -> Any:
            return None if ref is None else Ref(same.get(ref.point, ref.point), ref.output)

        for i in same:
            point = self.points[i]
            point.refs = [moved(ref) for ref in point.refs]
            point.tellers = [same.get(j, j) for j in point.tellers]
        self.results = [[moved(ref) for ref in refs] for refs in self.results]
        self.env = {value: moved(ref) for value, ref in self.env.items()}
        self.outputs = [moved(ref) for ref in self.outputs]


def _is_fill(node: Node) -> bool:
    """Tell whether a node only makes a tensor of a known shape: what it is like is immaterial."""
    return node.op is fill_like and is_known(node.outputs[0].shape)


def _positional(node: Node, bodies: Sequence[Graph]) -> int:
    """Return how many inputs of control flow are known by their position.

    A loop's carries and xs are; what is captured is not, nor are the operands of branches, which
    enter both at the same places.
    """
    if "carries" in node.op.attrs:
        rows = node.attr("xs") if "xs" in node.op.attrs else 0
        return int(node.attr("carries") + rows)
    return max(0, *(len(node.inputs) - len(body.inputs) for body in bodies))


def bare_sizes(types: Sequence[TensorType]) -> list[tuple[int, int, SizeVar]]:
    """Return where types hold an unknown size itself: which type, which axis, and the size."""
    found = []
    for index, kind in enumerate(types):
        for axis, size in enumerate(kind.shape):
            variable = _variable(size)
            if variable is not None:
                found.append((index, axis, variable))
    return found


def _variable(size: Any) -> SizeVar | None:
    return size.variable() if isinstance(size, Dim) else None


def _sizes_of(node: Node) -> list[SizeVar]:
    return [
        variable
        for item in attr_items(node.attrs)
        if item.__class__ is Dim
        for variable in variables(item)
    ]


def _found(env: dict[Value, Ref], value: Value, graph: Graph) -> Ref:
    ref = env.get(value)
    if ref is None:
        raise GraphError(f"{value.name} is not a value of the graph {graph.name}")
    return ref
