"""What while_loop and scan have in common for differentiation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core.dim import SizeVar, variables
from ...core.op import F
from ...core.shape import TensorType
from ..graph import Graph
from ..inline import function_graph
from ..node import Node, Value, size_variables
from ..paths import lead, reach
from ..special import CONSTANT, PLACEHOLDER, Literal
from ..tracer import Tracer


class LoopView:
    """A loop node, read the same way whether it is a while_loop or a scan.

    carries   how many values pass from step to step
    xs        how many values are taken apart along their first axis
    flags     1 if the first output of the body says whether to stop
    results   the outputs of the body without that flag
    test      of a while_loop: whether to take another step
    reverse   whether the loop starts at the end of its xs
    length    the number of steps if it is fixed, else None
    """

    test: Graph | None = None
    reverse = False
    length: Any = None

    def __init__(self, node: Node, body: Graph, carries: int, xs: int, flags: int) -> None:
        self.node = node
        self.body = body
        self.carries = carries
        self.xs = xs
        self.flags = flags
        self.results = body.outputs[flags:]

    def with_body(
        self, body: Graph, test: Graph | None = None, *, carries: int = 0, xs: int = 0
    ) -> tuple[Any, ...]:
        """Return the node's attributes with another body (and test), and more carries and xs."""
        raise NotImplementedError

    def steps(self) -> Any:
        """Return the number of steps taken, if some value of the node tells it."""
        if self.length is not None:
            return self.length
        rows = self.node.outputs[self.carries :]
        return rows[0].shape[0] if rows else None

    def scan_back(
        self,
        tracer: Tracer,
        body: Graph,
        carries: Sequence[Value],
        xs: Sequence[Value],
        captured: Sequence[Value],
        steps: Any,
        threads: tuple[tuple[int, int], ...] = (),
    ) -> Node:
        """Add the scan that runs an adjoint body over the steps in the opposite direction."""
        from .ops import SCAN  # noqa: PLC0415  (the operator names its own rule)

        attrs = (body, len(carries), len(xs), steps, not self.reverse, False, threads)
        types = [value.type for value in carries]
        types += [TensorType((steps, *y.shape), y.dtype) for y in body.outputs[len(carries) :]]
        return tracer.add(SCAN, [*carries, *xs, *captured], attrs, types)

    def filled_up(self, g: Any, x: Any) -> Any:
        """Return the gradient of an x, with zeros for the rows that no step has seen."""
        return g


class WhileLoop(LoopView):
    """A while_loop node."""

    def __init__(self, node: Node) -> None:
        self.test, body, carries, _ = node.attrs
        super().__init__(node, body, carries, 0, 0)

    def with_body(
        self, body: Graph, test: Graph | None = None, *, carries: int = 0, xs: int = 0
    ) -> tuple[Any, ...]:
        """Return the node's attributes with another body (and test), and more carries."""
        return test or self.test, body, self.carries + carries, self.node.attrs[-1]


class ScanLoop(LoopView):
    """A scan node."""

    def __init__(self, node: Node) -> None:
        body, carries, xs, length, self.reverse, until, _ = node.attrs
        super().__init__(node, body, carries, xs, int(until))
        self.length = None if until else length

    def with_body(
        self, body: Graph, test: Graph | None = None, *, carries: int = 0, xs: int = 0
    ) -> tuple[Any, ...]:
        """Return the node's attributes with another body, and more carries and xs."""
        return (body, self.carries + carries, self.xs + xs, *self.node.attrs[3:])

    def filled_up(self, g: Any, x: Any) -> Any:
        """Return the gradient of an x, with zeros for the rows that no step has seen."""
        if not self.flags:
            return g
        missing = x.shape[0] - g.shape[0]
        zeros = F.broadcast_to(F.zeros_like(F.sum(g)), (missing, *x.shape[1:]))
        return F.concat([zeros, g] if self.reverse else [g, zeros], axis=0)


def loop_of(node: Node) -> LoopView:
    """Return a loop node in the common form."""
    return ScanLoop(node) if "xs" in node.op.attrs else WhileLoop(node)


def extended_loop(
    tracer: Tracer, loop: LoopView, wanted: Sequence[Value]
) -> tuple[list[Value], Any]:
    """Return values of the body stacked over all steps, and the number of steps.

    Those that the loop stacks already are taken from it; for others the loop is run with a body
    that gives them too.
    """
    known = dict(zip(loop.results[loop.carries :], loop.node.outputs[loop.carries :], strict=True))
    if loop.length is not None:  # every row of the xs is seen
        rows = slice(loop.carries, loop.carries + loop.xs)
        known.update(zip(loop.body.inputs[rows], loop.node.inputs[rows], strict=True))  # type: ignore[arg-type]  # never left out
    missing = [value for value in dict.fromkeys(wanted) if value not in known]
    steps = loop.steps()
    if missing or steps is None:
        steps = _extend(tracer, loop, missing, steps, known)
    return [known[value] for value in wanted], steps


def _extend(
    tracer: Tracer, loop: LoopView, missing: list[Value], steps: Any, known: dict[Value, Value]
) -> Any:
    body = loop.body
    nodes, extra = list(body.nodes), list(missing)
    if steps is None:
        steps = tracer.fresh_size(loop.node.op.name)
        if not extra:  # something must tell the number of steps
            literal = Literal(np.zeros((), np.bool_))
            tick = Node(CONSTANT, (), (literal,), (literal.type,), name="tick")
            nodes.append(tick)
            extra = [tick.outputs[0]]
    longer = function_graph(body.name, nodes, body.inputs, [*body.outputs, *extra])
    longer.tracer.watches.update(body.tracer.watches)
    types = [value.type for value in loop.node.outputs]
    types += [TensorType((steps, *value.shape), value.dtype) for value in extra]
    node = tracer.add(loop.node.op, loop.node.inputs, loop.with_body(longer), types)
    tracer.graph.extended.setdefault(loop.node, node)
    known.update(zip(extra, node.outputs[len(loop.node.outputs) :], strict=True))
    return steps


def born_sizes(node: Node) -> set[SizeVar]:
    """Return the unknown sizes that nothing before a node knows, such as a number of trips."""
    made = {v for y in node.outputs for size in y.shape for v in variables(size)}
    if not made or node.op is PLACEHOLDER:
        return set()
    given = {v for x in node.inputs if x is not None for size in x.shape for v in variables(size)}
    return made - given - size_variables(node)


def sizes_outside(graph: Graph, value: Value) -> tuple[Any, ...]:
    """Return the sizes of a value of a body as seen from outside: None if they are born inside."""
    unknown = [set(variables(size)) for size in value.shape]
    if not any(unknown):
        return value.shape
    born = {v for node in graph.nodes for v in born_sizes(node)}
    pairs = zip(value.shape, unknown, strict=True)
    return tuple(size if born.isdisjoint(names) else None for size, names in pairs)


def moved_inputs(loop: LoopView, positions: Iterable[int]) -> set[int]:
    """Return the inputs that depend on given ones: a carry does as soon as it does in some step."""
    moved = set(positions)
    while True:
        reached = reach(loop.body.nodes, [loop.body.inputs[i] for i in moved])
        grown = moved | {i for i in range(loop.carries) if loop.results[i] in reached}
        if grown == moved:
            return moved
        moved = grown


def leading_inputs(loop: LoopView, outputs: Iterable[int]) -> set[int]:
    """Return the inputs on which given results of a loop depend, after any number of steps."""
    wanted = set(outputs)
    places = loop.body.inputs
    while True:
        leading = lead(loop.body.nodes, [loop.results[j] for j in wanted])
        found = {i for i, x in enumerate(places) if x in leading}
        found |= {j for j in wanted if j < loop.carries}  # what enters leaves if there is no step
        grown = wanted | {i for i in found if i < loop.carries}
        if grown == wanted:
            return found
        wanted = grown


def loop_outputs_reached(node: Node, positions: set[int]) -> set[int]:
    """Return the results of a loop that depend on inputs at given positions."""
    loop = loop_of(node)
    moved = moved_inputs(loop, positions)
    reached = reach(loop.body.nodes, [loop.body.inputs[i] for i in moved])
    found = {j for j, y in enumerate(loop.results) if y in reached}
    return found | {i for i in moved if i < loop.carries}


def loop_inputs_leading(node: Node, positions: set[int]) -> set[int]:
    """Return the inputs of a loop on which results at given positions depend."""
    return leading_inputs(loop_of(node), positions)


def cond_outputs_reached(node: Node, positions: set[int]) -> set[int]:
    """Return the results of a cond that depend on inputs at given positions, in some branch."""
    found: set[int] = set()
    for graph in node.attrs[:2]:
        reached = reach(graph.nodes, [graph.inputs[i - 1] for i in positions if i])
        found |= {j for j, y in enumerate(graph.outputs) if y in reached}
    return found


def cond_inputs_leading(node: Node, positions: set[int]) -> set[int]:
    """Return the inputs of a cond on which results at given positions depend, in some branch."""
    found: set[int] = set()
    for graph in node.attrs[:2]:
        leading = lead(graph.nodes, [graph.outputs[j] for j in positions])
        found |= {i + 1 for i, x in enumerate(graph.inputs) if x in leading}
    return found
