"""Control-flow nodes of one example, rebuilt for a batch.

Which values differ between examples is found first, by following them through the subgraphs: a
carry that differs in some trip differs in all. A predicate that differs makes a cond run both
branches and select, and a while loop go on until no example wants to.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....core.errors import ArgumentError
from ....core.modes import interpret_with
from ....core.op import F, random
from ....core.shape import TensorType
from ....graph.control.body import function_of, labels_of, symbols_for
from ....graph.control.ops import COND, WHILE, ControlOp
from ....graph.control.shapes import LoopView, loop_of
from ....graph.graph import Graph
from ....graph.node import Node, Value, subgraphs
from ....graph.tracer import Tracer
from ...layered import Running
from ..batched import Batched

Pairs = Sequence[tuple[Any, bool]]  # a tensor, and whether it has a batch axis in front


# -- what differs between examples -----------------------------------------------------------------


def draws_inside(node: Node) -> bool:
    """Tell whether a node draws random numbers, in its subgraphs too."""
    return node.op.kind == random or any(
        draws_inside(inner) for graph in subgraphs(node) for inner in graph.nodes
    )


def differing(graph: Graph, flags: Sequence[bool], apart: bool) -> list[bool]:
    """Return which outputs of a graph differ if inputs do; `apart`: all draws do."""
    found: set[Value] = {x for x, flag in zip(graph.inputs, flags, strict=True) if flag}
    for node in graph.nodes:
        if any(x in found for x in node.inputs) or (apart and draws_inside(node)):
            shared = _state_outputs(node)
            found.update(y for i, y in enumerate(node.outputs) if i not in shared)
    return [y in found for y in graph.outputs]


def _state_outputs(node: Node) -> set[int]:
    """Return the outputs that are states of generators or effects, which all examples share."""
    if node.op.effect:
        return {0}
    return {j for _, j in node.op.threads(node)} if isinstance(node.op, ControlOp) else set()


def _settled(
    loop: LoopView, carries: list[bool], others: Sequence[bool], apart: bool
) -> list[bool]:
    """Return which carries of a loop differ in some trip."""
    while True:
        after = differing(loop.body, [*carries, *others], apart)[loop.flags :]
        joined = [a or b for a, b in zip(carries, after, strict=False)]
        if joined == carries:
            return carries
        carries = joined


# -- subgraphs of a batch --------------------------------------------------------------------------


class Rebuilder:
    """Builds subgraphs of a batch from those of one example."""

    def __init__(self, replay: Any, node: Node, inputs: Sequence[Any]) -> None:
        self.replay, self.node = replay, node
        self.tracer: Tracer = replay.tracer
        self.size = replay.size
        self.apart = replay.interpreter.randomness == "different"
        self.pairs = [(x.value, True) if isinstance(x, Batched) else (x, False) for x in inputs]

    def type_of(self, kind: TensorType, flag: bool) -> TensorType:
        """Return the type of a value of one example in the batch."""
        return TensorType((self.size, *kind.shape), kind.dtype) if flag else kind

    def whole(self, pair: tuple[Any, bool], wanted: bool) -> Any:
        """Return a value with a batch axis where one is wanted."""
        x, flag = pair
        return F.broadcast_to(x, (self.size, *x.shape)) if wanted and not flag else x

    def values(self, pairs: Pairs, wanted: Sequence[bool]) -> list[Value]:
        """Return operands of a node, with a batch axis where one is wanted."""
        given = zip(pairs, wanted, strict=True)
        return [self.tracer.value_of(self.whole(pair, flag)) for pair, flag in given]

    def run(self, graph: Graph, inputs: Sequence[Any], flags: Sequence[bool]) -> Pairs:
        """Run a subgraph of one example on batches, in the tracer that is current."""
        found: Pairs = self.replay.here().inlined(graph, inputs, flags)
        return found

    def rebuilt(self, graph: Graph, flags: Sequence[bool], wanted: Sequence[bool]) -> Graph:
        """Return a subgraph for a batch: which inputs differ, and which outputs have a batch."""
        types = [self.type_of(x.type, flag) for x, flag in zip(graph.inputs, flags, strict=True)]

        def fn(_: Tracer, symbols: list[Any]) -> list[Any]:
            found = zip(self.run(graph, symbols, flags), wanted, strict=True)
            return [self.whole(pair, flag) for pair, flag in found]

        return function_of(self.tracer, graph.name, types, fn, labels=labels_of(graph.inputs))

    def add(
        self, op: Any, values: Sequence[Value], attrs: tuple[Any, ...], types: Sequence[TensorType]
    ) -> list[Any]:
        """Add a node; return symbols for its results."""
        made = self.tracer.add(op, values, attrs, types)
        return list(symbols_for(self.tracer, made.outputs))

    def wrapped(self, results: Sequence[Any], flags: Sequence[bool]) -> list[Any]:
        """Return results as examples where they have a batch axis."""
        pairs = zip(results, flags, strict=True)
        return [self.replay.interpreter.wrapped(y) if flag else y for y, flag in pairs]


# -- cond ------------------------------------------------------------------------------------------


def replay_cond(replay: Any, node: Node, inputs: tuple[Any, ...]) -> list[Any]:
    """Return the results of a cond for all examples."""
    build = Rebuilder(replay, node, inputs)
    if build.pairs[0][1]:
        return _both_branches(build, inputs)
    yes, no, threads = node.attrs
    flags = [flag for _, flag in build.pairs[1:]]
    pairs = (differing(graph, flags, build.apart) for graph in (yes, no))
    wanted = [a or b for a, b in zip(*pairs, strict=True)]
    graphs = [build.rebuilt(graph, flags, wanted) for graph in (yes, no)]
    types = [build.type_of(y.type, f) for y, f in zip(node.outputs, wanted, strict=True)]
    values = build.values(build.pairs, [flag for _, flag in build.pairs])
    return build.wrapped(build.add(COND, values, (*graphs, threads), types), wanted)


def _both_branches(build: Rebuilder, inputs: tuple[Any, ...]) -> list[Any]:
    """Run both branches, each on values of examples that take it, and select."""
    yes, no, threads = build.node.attrs
    interpreter = build.replay.interpreter
    pred, operands = inputs[0], list(inputs[1:])
    with Running(interpreter):
        lefts = _inlined(build, yes, _borrowed(operands, pred))
    for place, result in threads:  # what one branch draws, the other does not draw again
        operands[place - 1] = lefts[result]
    with Running(interpreter):
        rights = _inlined(build, no, _borrowed(operands, ~pred))
        states = {result for _, result in threads}
        sides = enumerate(zip(lefts, rights, strict=True))
        return [b if i in states else F.where(pred, a, b) for i, (a, b) in sides]


def _borrowed(operands: Sequence[Any], active: Any) -> list[Any]:
    return [F.borrow_example(x, active) if isinstance(x, Batched) else x for x in operands]


def _inlined(build: Rebuilder, graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """Run a branch in the open graph."""
    pairs = [(x.value, True) if isinstance(x, Batched) else (x, False) for x in inputs]
    with interpret_with(build.tracer):
        found = build.run(graph, [x for x, _ in pairs], [flag for _, flag in pairs])
    return build.wrapped([y for y, _ in found], [flag for _, flag in found])


# -- loops -----------------------------------------------------------------------------------------


def replay_loop(replay: Any, node: Node, inputs: tuple[Any, ...]) -> list[Any]:
    """Return the results of a while loop or a scan for all examples."""
    build, loop = Rebuilder(replay, node, inputs), loop_of(node)
    count, first = loop.carries, loop.flags + loop.carries
    given = [flag for _, flag in build.pairs]
    carries = _settled(loop, given[:count], given[count:], build.apart)
    flags = [*carries, *given[count:]]
    if loop.test is not None and differing(loop.test, flags, build.apart)[0]:
        return _masked_loop(build, given[count:])
    wanted = differing(loop.body, flags, build.apart)
    if loop.flags and wanted[0]:
        raise ArgumentError(
            "vmap: a scan with `until` cannot stop after different numbers of steps in different "
            "examples; use wf.while_loop, or leave `until` out and use wf.where"
        )
    wanted[loop.flags : first] = carries
    rows = wanted[first:]
    columns = range(count, count + loop.xs)
    pairs = [
        (F.moveaxis(x, 0, 1) if flag and i in columns else x, flag)
        for i, (x, flag) in enumerate(build.pairs)
    ]
    values = build.values(pairs, flags)
    test = None if loop.test is None else build.rebuilt(loop.test, flags, [False])
    attrs = loop.with_body(build.rebuilt(loop.body, flags, wanted), test)
    types = [*(x.type for x in values[:count]), *_row_types(build, count, rows)]
    found = build.add(node.op, values, attrs, types)
    return build.wrapped(_rows_behind(found, count, rows), [*carries, *rows])


def _row_types(build: Rebuilder, count: int, flags: Sequence[bool]) -> list[TensorType]:
    """Return the types of stacked rows: the trips, then the batch, then an example."""
    kinds = []
    for y, flag in zip(build.node.outputs[count:], flags, strict=True):
        lead = (y.shape[0], build.size) if flag else y.shape[:1]
        kinds.append(TensorType((*lead, *y.shape[1:]), y.dtype))
    return kinds


def _rows_behind(found: list[Any], count: int, rows: Sequence[bool]) -> list[Any]:
    """Return results with the batch axis of stacked rows before that of the trips."""
    pairs = zip(found[count:], rows, strict=True)
    return [*found[:count], *(F.moveaxis(y, 1, 0) if flag else y for y, flag in pairs)]


def _masked_loop(build: Rebuilder, captured: Sequence[bool]) -> list[Any]:
    """Loop while some example wants to; examples that are done keep their values."""
    test, body, count, threads = build.node.attrs
    if len(body.outputs) > count:
        raise ArgumentError(
            "vmap: in a graph, a gradient taken inside vmap cannot pass a while_loop whose "
            "examples take different numbers of trips; use wf.scan, or take the gradient outside"
        )
    states = {place for place, _ in threads}
    flags = [*(i not in states for i in range(count)), *captured]

    def holds(xs: list[Any]) -> Any:
        return build.whole(build.run(test, xs, flags)[0], True)

    def step(_: Tracer, xs: list[Any]) -> list[Any]:
        active, now, rest = xs[0], xs[1 : count + 1], xs[count + 1 :]
        lent = _lent(build, now, active, flags)
        found = build.run(body, [*lent, *rest], flags)
        after = [
            new if not flag else _chosen(build, active, build.whole((new, f), True), old)
            for (new, f), old, flag in zip(found, now, flags, strict=False)
        ]
        return [F.logical_and(active, holds([*after, *rest])), *after]

    start = [build.whole(pair, flag) for pair, flag in zip(build.pairs, flags, strict=True)]
    first = holds(start)
    values = [build.tracer.value_of(x) for x in (first, *start)]
    types = [x.type for x in values]
    labels = ["active", *labels_of(body.inputs)]
    graphs = (
        function_of(build.tracer, test.name, types, lambda _, xs: [F.any(xs[0])], labels=labels),
        function_of(build.tracer, body.name, types, step, labels=labels),
    )
    moved = tuple((i + 1, j + 1) for i, j in threads)
    found = build.add(WHILE, values, (*graphs, count + 1, moved), types[: count + 1])
    return build.wrapped(found[1:], flags[:count])


def _lent(build: Rebuilder, xs: Sequence[Any], active: Any, flags: Sequence[bool]) -> list[Any]:
    """Return carries in which examples that are done have the values of one that is not."""
    lenders = F.where(active, F.iota(build.size), F.argmax(active, 0))
    return [F.take(x, lenders, 0) if flag else x for x, flag in zip(xs, flags, strict=False)]


def _chosen(build: Rebuilder, active: Any, new: Any, old: Any) -> Any:
    mask = F.reshape(active, (build.size, *(1,) * (new.ndim - 1)))
    return F.where(mask, new, old)
