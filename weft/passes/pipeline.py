"""The optimiser: all passes, in their order.

canonicalise   fold, share and simplify until nothing changes; every bit of every result stays
stabilise      functions in their stable forms, then canonicalise what that made

Rules of the user's (user_rules.py) apply behind Weft's own, at the stage that they name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tree import tree_leaves
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.symbol import Symbol
from ..graph.update import Update
from .cse import share_common
from .dce import remove_dead
from .fold import fold_constants
from .rewrite import Pass, same_nodes
from .simplify import simplify, simplify_finally
from .stabilize import stabilize
from .user_rules import CANONICALIZE, STABILIZE, apply_user_rules

MAX_ROUNDS = 4  # of canonicalising; one is nearly always enough, since rules apply in one sweep

PASSES: dict[str, Pass] = {
    "fold": fold_constants,
    "cse": share_common,
    "simplify": simplify,
    "stabilize": stabilize,
    "dce": remove_dead,
}


def optimize(graph: Graph, outputs: Any = None, *, passes: Sequence[str] | None = None) -> Graph:
    """Return a graph that computes the same faster; symbols of the old one can be fetched from it.

    outputs   what must survive: symbols, updates, names, or nests of them; by default every result
              that nothing takes, what has a name, and what gradients were taken of
    passes    names from weft.passes.PASSES to run instead, in that order

    The result is finished: take gradients before.

    >>> import weft as wf
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None,), wf.float32, name="x")
    ...     y = wf.log(1 + x) * 1.0
    >>> [node.op.name for node in optimize(graph, [y])]
    ['placeholder', 'log1p']
    """
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"optimize: expected a wf.Graph. Received: {type(graph).__name__}")
    kept = _values(graph, outputs)
    if passes is not None:
        return _run_named(graph, kept, passes)
    made = canonicalize(remove_dead(graph, kept), simplify_finally)
    return canonicalize(in_stable_forms(made), simplify_finally)


def canonicalize(graph: Graph, rules: Pass = simplify) -> Graph:
    """Return the graph folded, shared and simplified until nothing changes."""
    for _ in range(MAX_ROUNDS):
        before = graph
        simpler = rules(share_common(fold_constants(graph)), None)
        graph = remove_dead(apply_user_rules(simpler, CANONICALIZE))
        if same_nodes(before, graph):
            break
    return graph


def in_stable_forms(graph: Graph) -> Graph:
    """Return the graph with functions computed in their stable forms, and as the user says."""
    return apply_user_rules(stabilize(graph, None), STABILIZE)


def _run_named(graph: Graph, outputs: list[Value], names: Sequence[str]) -> Graph:
    for name in names:
        if name not in PASSES:
            raise ArgumentError(
                f"optimize: no pass is named {name!r:.60}; there are {', '.join(PASSES)}"
            )
    made = remove_dead(graph, outputs) if not names else PASSES[names[0]](graph, outputs)
    for name in names[1:]:
        made = PASSES[name](made, None)
    return made


def _values(graph: Graph, outputs: Any) -> list[Value]:
    if outputs is None:
        return list(dict.fromkeys([*graph.results(), *graph.names.values()]))
    leaves = [
        part
        for leaf in tree_leaves(outputs)
        for part in (leaf.symbols if isinstance(leaf, Update) else [leaf])
    ]
    return list(dict.fromkeys(_value(graph, leaf) for leaf in leaves))


def _value(graph: Graph, output: Any) -> Value:
    if isinstance(output, str):
        return graph.find(output)
    value = output.value if isinstance(output, Symbol) else output
    if not isinstance(value, Value):
        raise ArgumentTypeError(
            "optimize: an output must be a symbol, a value or a name. "
            f"Received: {type(output).__name__} {output!r:.60}"
        )
    return graph.check_member(value, "optimize")
