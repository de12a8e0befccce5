"""Stretches that paths have alone, as the bodies of a `cond`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest

import numpy as np

from ..core.shape import TensorType
from ..graph.control.ops import COND
from ..graph.graph import Graph
from ..graph.inline import copy_nodes
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, Literal
from ..ops.movement.broadcast import broadcast_to
from ..passes.rewrite import add_like

YES, NO = 0, 1
Choice = tuple[Value | None, Value | None]  # what a cond gives on either path; None: anything


class Gap:
    """Where paths are apart.

    nodes     of either path
    choices   what is needed afterwards in one place, of one path or the other
    alone     what one path needs afterwards
    """

    def __init__(self, yes: list[Node], no: list[Node]) -> None:
        self.nodes = (yes, no)
        self.choices: dict[Choice, None] = {}
        self.alone: tuple[dict[Value, None], dict[Value, None]] = ({}, {})

    def results(self) -> list[Choice]:
        """Return what the cond gives: choices, and what only one path needs, two in one place."""
        yes, no = (self._alone_by_type(side) for side in (YES, NO))
        shared = [zip_longest(yes.get(k, ()), no.get(k, ())) for k in dict.fromkeys([*yes, *no])]
        return [*self.choices, *(choice for some in shared for choice in some)]

    def _alone_by_type(self, side: int) -> dict[TensorType, list[Value]]:
        taken = {choice[side] for choice in self.choices}
        found: dict[TensorType, list[Value]] = {}
        for value in self.alone[side]:
            if value not in taken:
                found.setdefault(value.type, []).append(value)
        return found


class Arm:
    """One side of a gap.

    results   what the cond is to give on this side
    outer     what it takes from outside, and what that is in the new graph
    """

    def __init__(
        self, nodes: Sequence[Node], results: Sequence[Value | None], outer: Mapping[Value, Value]
    ) -> None:
        self.nodes, self.results, self.outer = nodes, results, outer
        self.captured = [x for x in outer.values() if x.node.op is not CONSTANT]

    def closed(self, name: str, captured: Sequence[Value], types: Sequence[TensorType]) -> Graph:
        """Return it as a function of what is captured."""
        graph = Graph(name)
        graph.is_function = True
        given = {x: graph.tracer.parameter(x.type, "captured") for x in captured}
        inside = {x: given[now] for x, now in self.outer.items() if now in given}
        for value, now in self.outer.items():
            if now.node.op is CONSTANT:
                inside[value] = copy_nodes(graph, [now.node], {})[now]
        copy_nodes(graph, self.nodes, inside)
        graph.outputs = [
            _anything(graph, kind) if value is None else inside[value]
            for value, kind in zip(self.results, types, strict=True)
        ]
        return graph


def add_cond(graph: Graph, decides: Value, yes: Arm, no: Arm) -> Node:
    """Append the cond of two arms."""
    captured = list(dict.fromkeys([*yes.captured, *no.captured]))
    pairs = zip(yes.results, no.results, strict=True)
    types = [value.type for pair in pairs for value in _known(pair)[:1]]
    bodies = yes.closed("true_fn", captured, types), no.closed("false_fn", captured, types)
    like = next(iter([*yes.nodes, *no.nodes]), decides.node)
    place = {"scope": like.scope, "site": like.site, "device": like.device}
    return graph.add(COND, [decides, *captured], (*bodies, ()), types, **place)  # type: ignore[arg-type]  # of Any


def _known(choice: Choice) -> list[Value]:
    return [value for value in choice if value is not None]


def _anything(graph: Graph, kind: TensorType) -> Value:
    """Return a value of a type: zeros, where nobody looks at it."""
    literal = Literal(np.zeros((), kind.dtype))
    node = graph.add(CONSTANT, (), (literal,), (literal.type,))
    if not kind.shape:
        return node.outputs[0]
    return add_like(graph, node, broadcast_to, node.outputs, (kind.shape,))
