"""Reverse mode through control flow.

The adjoint of a loop is a scan in the opposite direction. What the adjoint of one step needs of
the step itself is stacked by the forward loop, with an extended copy of its body; what does not
change from step to step enters once; what a parameter from outside receives is summed in a carry.
All of these are ordinary nodes, so that they can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...core.dim import SizeVar, variables
from ...core.dtype import is_float
from ...core.modes import interpret_with
from ...core.op import F
from ...core.shape import TensorType
from ..graph import Graph
from ..inline import copy_nodes, inline
from ..node import Node, Value, size_variables
from ..paths import inputs_leading, reach
from ..special import CONSTANT, SOURCES
from ..symbol import make_symbol
from ..tracer import Tracer
from .body import labels_of, open_function_of, symbol_or_none, symbol_or_zeros
from .shapes import LoopView, born_sizes, extended_loop, leading_inputs, loop_of, moved_inputs

PullBack = Callable[..., dict[Value, Any]]


def pull_back_cond(
    tracer: Tracer, node: Node, gs: Sequence[Any], needs: Sequence[bool], pull_back: PullBack
) -> list[Any]:
    """Return the gradients of a cond's operands: another cond, of the branches' adjoints."""
    from .ops import COND  # noqa: PLC0415  (the operator names its own rule)

    pred, *operands = node.inputs
    given = [i for i, g in enumerate(gs) if g is not None]
    leading = inputs_leading(node, set(given))
    wanted = [i - 1 for i in _needed(node, needs) if i in leading]
    if not wanted:
        return [None] * len(needs)
    seeds = [tracer.value_of(gs[i]) for i in given]
    branches = [
        _branch_adjoint(tracer, graph, given, wanted, pull_back) for graph in node.attrs[:2]
    ]
    shared = _Shared(tracer, branches)
    types = [operands[i].type for i in wanted]  # type: ignore[union-attr]  # never left out
    given_inputs = [*operands, *seeds]
    graphs = [branch.graph for branch in branches]
    used = _used_inputs(graphs, len(given_inputs))
    for graph in graphs:
        own = [graph.inputs[i] for i in used]
        graph.keep_only([*own, *graph.inputs[len(given_inputs) :]], graph.outputs)
    inputs = [pred, *(given_inputs[i] for i in used), *shared.captured]
    threads = shared.threads(1 + len(used), len(wanted))
    made = tracer.add(COND, inputs, (*graphs, threads), [*types, *shared.types])
    shared.write(made.outputs[len(wanted) :])
    found = dict(zip(wanted, made.outputs, strict=False))
    return [None, *(symbol_or_none(tracer, found.get(i)) for i in range(len(operands)))]


def _used_inputs(branches: Sequence[Graph], count: int) -> list[int]:
    """Return which of the first inputs some branch needs: loops would keep others for nothing."""
    needed = {node for branch in branches for node in branch.ancestors(branch.outputs)}
    pairs = enumerate(zip(*(branch.inputs[:count] for branch in branches), strict=True))
    return [i for i, inputs in pairs if any(x.node in needed for x in inputs)]


def _branch_adjoint(
    tracer: Tracer, graph: Graph, given: list[int], wanted: list[int], pull_back: PullBack
) -> Tracer:
    types = [x.type for x in (*graph.inputs, *(graph.outputs[i] for i in given))]
    count = len(graph.inputs)

    def adjoint(inner: Tracer, symbols: list[Any]) -> list[Any]:
        inputs = [x.value for x in symbols[:count]]
        values = inline(inner.graph, graph, inputs)
        places = [inputs[i] for i in wanted]
        roots = [values[graph.outputs[i]] for i in given]
        found = pull_back(inner, roots, symbols[count:], places)
        return [symbol_or_zeros(inner, found.get(x), x) for x in places]

    labels = [*labels_of(graph.inputs), *("g" for _ in given)]
    return open_function_of(tracer, f"{graph.name}_adjoint", types, adjoint, labels=labels)


class _Shared:
    """What hooks on gradients took from outside of adjoint bodies, and the states they moved on.

    captured   values of the graph around, which the bodies take as their last inputs
    states     those whose new values are the last results
    """

    def __init__(self, tracer: Tracer, bodies: Sequence[Tracer]) -> None:
        self.tracer = tracer
        self.states = list({s.key: s for b in bodies for s, _ in b.written.values()}.values())
        finals = [[body.read_state(state) for state in self.states] for body in bodies]
        self.captured = list(dict.fromkeys(x for body in bodies for x in body.captured))
        for body, final in zip(bodies, finals, strict=True):
            graph = body.graph
            own = [x for x in graph.inputs if x not in set(body.captured.values())]
            graph.inputs = [*own, *map(body.capture, self.captured)]
            graph.outputs = [*graph.outputs, *final]

    @property
    def types(self) -> list[TensorType]:
        """Return the types of the states."""
        return [state.type for state in self.states]

    def threads(self, first: int, results: int) -> tuple[tuple[int, int], ...]:
        """Return by which inputs and results the states pass through the node."""
        starts = [self.tracer.read_state(state) for state in self.states]
        return tuple((first + self.captured.index(x), results + i) for i, x in enumerate(starts))

    def write(self, values: Sequence[Value]) -> None:
        """Let the states have what the node makes of them."""
        for state, value in zip(self.states, values, strict=True):
            self.tracer.write_state(state, value)


def pull_back_loop(
    tracer: Tracer, node: Node, gs: Sequence[Any], needs: Sequence[bool], pull_back: PullBack
) -> list[Any]:
    """Return the gradients of a loop's operands."""
    loop = loop_of(node)
    given = [j for j, g in enumerate(gs) if g is not None]
    useful = moved_inputs(loop, _needed(node, needs)) & leading_inputs(loop, given)
    if not useful:
        return [None] * len(needs)
    return _LoopAdjoint(tracer, loop, gs, sorted(useful), pull_back).gradients()


def _needed(node: Node, needs: Sequence[bool]) -> list[int]:
    inputs = zip(node.inputs, needs, strict=True)
    return [i for i, (x, need) in enumerate(inputs) if need and x is not None and is_float(x.dtype)]


class _LoopAdjoint:
    """Builds the adjoint of one loop."""

    def __init__(
        self,
        tracer: Tracer,
        loop: LoopView,
        gs: Sequence[Any],
        useful: Sequence[int],
        pull_back: PullBack,
    ) -> None:
        self.tracer = tracer
        self.loop = loop
        self.gs = gs
        self.useful = useful
        reached = reach(loop.body.nodes, [loop.body.inputs[i] for i in self.useful])
        self.carries = [i for i in self.useful if i < loop.carries]
        self.xs = [i for i in self.useful if loop.carries <= i < loop.carries + loop.xs]
        self.captured = [i for i in self.useful if i >= loop.carries + loop.xs]
        rows = range(loop.carries, len(loop.results))
        self.rows = [i for i in rows if gs[i] is not None and loop.results[i] in reached]
        self.step = _StepAdjoint(tracer, self, pull_back)

    def gradients(self) -> list[Any]:
        """Return the gradients of all operands, None where there is none."""
        loop, tracer, step = self.loop, self.tracer, self.step
        stacks, steps = step.stacked_residuals()
        ends = loop.node.outputs
        starts = [symbol_or_zeros(tracer, self.gs[i], ends[i]) for i in self.carries]
        starts += [F.zeros_like(self._operand(i)) for i in self.captured]
        columns = [*stacks, *(self.gs[i] for i in self.rows)]
        sums, states = len(starts), step.states
        links = [tracer.read_state(state) for state in states]
        made = loop.scan_back(
            tracer,
            step.closed(),
            [*(tracer.value_of(x) for x in starts), *links],
            [tracer.value_of(x) for x in columns],
            step.invariants(),
            steps,
            tuple((sums + i, sums + i) for i in range(len(states))),
        )
        after = made.outputs[sums : sums + len(states)]
        for state, value in zip(states, after, strict=True):
            tracer.write_state(state, value)
        outputs = [*made.outputs[:sums], *made.outputs[sums + len(states) :]]
        symbols = [make_symbol(tracer.graph, value) for value in outputs]
        order = [*self.carries, *self.captured, *self.xs]
        found = dict(zip(order, symbols, strict=True))
        for i in self.xs:
            found[i] = loop.filled_up(found[i], self._operand(i))
        return [found.get(i) for i in range(len(loop.node.inputs))]

    def _operand(self, i: int) -> Any:
        return symbol_or_none(self.tracer, self.loop.node.inputs[i])


class _StepAdjoint:
    """The adjoint of one step, split into what the forward step leaves and what uses it."""

    def __init__(self, tracer: Tracer, owner: _LoopAdjoint, pull_back: PullBack) -> None:
        self.outer = tracer
        self.owner = owner
        self.loop = loop = owner.loop
        self.tracer = Tracer(Graph("adjoint"), parent=tracer)
        graph = self.tracer.graph
        self.inputs = [self.tracer.parameter(x.type, x.node.name) for x in loop.body.inputs]
        with interpret_with(self.tracer):
            self.values = inline(graph, loop.body, self.inputs)
            self.forward = set(graph.nodes)
            ends = [loop.results[i] for i in owner.rows]
            roots = [*(loop.results[i] for i in owner.carries), *ends]
            starts = [self._derivative(loop.body.inputs[i]) for i in owner.carries]
            self.seeds = [*starts, *(self.tracer.parameter(y.type, "g") for y in ends)]
            self.sums = [self._derivative(self._around(i)) for i in owner.captured]
            self.outputs = self._adjoint(roots, pull_back)
        # What hooks on gradients have moved on (effects), and took from outside.
        self.states = [state for state, _ in self.tracer.written.values()]
        outer = [tracer.read_state(state) for state in self.states]
        self.links = [self.tracer.captured[x] for x in outer]
        self.captured = {v: x for x, v in self.tracer.captured.items() if v not in self.links}
        self.origin = {copy: value for value, copy in self.values.items()}
        self.invariant = self._invariant_values()
        self.born = {v for node in graph.nodes if node in self.forward for v in born_sizes(node)}
        self._classify()

    def _derivative(self, value: Value) -> Value:
        """Return a parameter for the gradient of a value, named after it."""
        return self.tracer.parameter(value.type, *labels_of([value], "d_"))

    def _around(self, position: int) -> Value:
        """Return what enters the loop at a position."""
        value = self.loop.node.inputs[position]
        assert value is not None  # only optional operands of operators are left out
        return value

    def _adjoint(self, roots: list[Value], pull_back: PullBack) -> list[Value]:
        """Return the outputs of the adjoint step: carries, sums and rows."""
        tracer, owner = self.tracer, self.owner
        places = [self.inputs[i] for i in owner.useful]
        symbols = [make_symbol(tracer.graph, g) for g in self.seeds]
        found = pull_back(tracer, [self.values[y] for y in roots], symbols, places)
        gs = {i: found.get(self.inputs[i]) for i in owner.useful}
        outputs = [symbol_or_zeros(tracer, gs[i], self.inputs[i]) for i in owner.carries]
        for i, total in zip(owner.captured, self.sums, strict=True):
            known = make_symbol(tracer.graph, total)
            outputs.append(known if gs[i] is None else known + gs[i])
        rows = [symbol_or_zeros(tracer, gs[i], self.inputs[i]) for i in owner.xs]
        moved = [value for _, value in tracer.written.values()]
        return [*map(tracer.value_of, outputs), *moved, *map(tracer.value_of, rows)]

    def _invariant_values(self) -> set[Value]:
        """Return the forward values that are the same in every step."""
        first = self.loop.carries + self.loop.xs
        invariant = set(self.inputs[first:])
        varying: set[SizeVar] = set()  # sizes that steps may tell differently
        for node in self.tracer.graph.nodes:
            if node in self.forward and node.op not in SOURCES:
                known = all(
                    x is None or x in invariant or x.node.op is CONSTANT for x in node.inputs
                )
                if known and varying.isdisjoint(size_variables(node)):
                    invariant.update(node.outputs)
                else:
                    varying |= born_sizes(node)
        return invariant

    def _classify(self) -> None:
        """Sort what the adjoint takes from the forward step.

        What has a size that is born in the step (the number of trips of a loop inside it) may
        differ from step to step and cannot be stacked: it is computed again.
        """
        graph = self.tracer.graph
        own = [n for n in graph.nodes if n not in self.forward]
        sources = graph.size_sources() if self.born else {}
        again: set[Node] = set()
        used: dict[Value, None] = {}
        pending = [
            *reversed(self.outputs),
            *(x for n in reversed(own) for x in self._taken(n, sources)),
        ]
        while pending:
            value = pending.pop()
            if value.node not in self.forward or value in used:
                continue
            used[value] = None
            if self._is_ragged(value) and value.node not in again:
                again.add(value.node)
                pending += self._taken(value.node, sources)
        kept = [x for x in used if x.node not in again]
        self.constants = [x for x in kept if x.node.op is CONSTANT]
        self.invariants_used = [x for x in kept if x in self.invariant]
        self.residuals = [x for x in kept if x not in self.invariant and x.node.op is not CONSTANT]
        self.adjoint_nodes = [n for n in graph.nodes if n not in self.forward or n in again]

    def _taken(self, node: Node, sources: Mapping[SizeVar, Value]) -> list[Value]:
        """Return what a node takes: its inputs, and what tells sizes that are born in the step."""
        told = [sources[v] for v in size_variables(node) & self.born if v in sources]
        return [*(x for x in node.inputs if x is not None), *told]

    def _is_ragged(self, value: Value) -> bool:
        if value in self.invariant or value.node.op in SOURCES:
            return False
        return any(v in self.born for size in value.shape for v in variables(size))

    # -- for the loop that runs back ---------------------------------------------------------------

    def stacked_residuals(self) -> tuple[list[Any], Any]:
        """Return the residuals of all steps, stacked, and the number of steps."""
        loop = self.loop
        wanted = [self.origin[x] for x in self.residuals]
        stacks, steps = extended_loop(self.outer, loop, wanted)
        return [make_symbol(self.outer.graph, value) for value in stacks], steps

    def closed(self) -> Graph:
        """Return the adjoint step as a function: gradients, sums, residuals, then invariants."""
        carries = len(self.owner.carries)
        graph = Graph("adjoint")
        mapping: dict[Value, Value] = {}
        order = [
            *self.seeds[:carries],
            *self.sums,
            *self.links,
            *self.residuals,
            *self.seeds[carries:],
            *self.invariants_used,
            *self.captured,
        ]
        inner = Tracer(graph, parent=self.outer)
        for value in order:
            mapping[value] = inner.parameter(value.type, *labels_of([value]))
        copy_nodes(graph, [x.node for x in self.constants], mapping)
        copy_nodes(graph, self.adjoint_nodes, mapping)
        graph.outputs = [mapping[y] for y in self.outputs]
        return graph

    def invariants(self) -> list[Value]:
        """Return the invariants in the graph around the loop, computing them there once."""
        loop = self.loop
        first = loop.carries + loop.xs
        mapping = {
            place: value
            for place, value in zip(self.inputs[first:], loop.node.inputs[first:], strict=True)
            if value is not None
        }
        needed = _makers(self.invariants_used, set(mapping))
        nodes = [n for n in self.tracer.graph.nodes if n in needed]
        copy_nodes(self.outer.graph, nodes, mapping)
        return [*(mapping[x] for x in self.invariants_used), *self.captured.values()]


def _makers(values: Sequence[Value], known: set[Value]) -> set[Node]:
    needed: set[Node] = set()
    pending = [x for x in values if x not in known]
    while pending:
        node = pending.pop().node
        if node not in needed:
            needed.add(node)
            pending += [x for x in node.inputs if x is not None and x not in known]
    return needed
