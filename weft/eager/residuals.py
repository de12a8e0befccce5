"""What the forward program of a composite leaves for its backward program.

Both are parts of one graph: nodes that depend on the gradients of the results are the backward
program's, and what these take of the others can be saved or computed again. Products, loops and
whatever else is no mere pass over memory are saved, and so is what is much smaller than what it was
computed from, such as the mean of a row. The rest, elementwise functions of those and of the
operands and rows that are looked up, costs less to compute again than to write and to read back.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.op import elementwise
from ..core.scalar.builder import postorder
from ..core.scalar.functions import FUNCTIONS, POLYNOMIAL
from ..core.shape import size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import SOURCES
from ..lower.kinds import scalar_code
from ..ops.index.embedding import embedding

PASSES = ("elementwise", "movement", "reduction")  # kinds of operators that only go over memory
MUCH_SMALLER = 8  # times


def find_residuals(
    graph: Graph,
    operands: Sequence[Value],
    results: Sequence[Value],
    seeds: Sequence[Value],
    gradients: Sequence[Value],
    *,
    keeps_functions: bool = False,
) -> list[Value]:
    """Return the values to save, between the operands and the gradients of the operands.

    Results, which are there anyway, are among them where they serve.

    keeps_functions   whether values of functions such as exp are saved too: where arrays are so
                      small that they stay in caches, they are read sooner than computed
    """
    needed = graph.ancestors(gradients, operands)
    later = _behind(needed, set(seeds))
    pending = [x for node in needed if node in later for x in node.inputs if x is not None]
    pending += gradients  # some may not depend on the seeds
    given, met = {*operands, *seeds}, dict[Value, bool]()
    while pending:
        value = pending.pop()
        if value in met or value in given or value.node in later or value.node.op in SOURCES:
            continue
        met[value] = value in results or _is_worth_saving(value, keeps_functions)
        if not met[value]:
            pending += [x for x in value.node.inputs if x is not None]
    return [value for value, saved in met.items() if saved]


def _behind(nodes: Sequence[Node], seeds: set[Value]) -> set[Node]:
    """Return the nodes that depend on seeds."""
    reached, found = set(seeds), set[Node]()
    for node in nodes:
        if not reached.isdisjoint(node.inputs):
            found.add(node)
            reached.update(node.outputs)
    return found


def _is_worth_saving(value: Value, keeps_functions: bool) -> bool:
    node = value.node
    if keeps_functions and node.op.kind == elementwise:
        return _takes_functions(node)
    if getattr(node.op, "kind", None) not in PASSES and node.op is not embedding:
        return True
    largest = max((size_of(x.shape) for x in node.inputs if x is not None), default=0)
    return size_of(value.shape) * MUCH_SMALLER <= largest


def _takes_functions(node: Node) -> bool:
    """Tell whether elements are computed by functions that take many operations, such as exp."""
    if getattr(node.op, "lower_rule", None) is None or node.outputs[0].dtype.kind != "f":
        return False
    code = scalar_code(node)
    functions = [] if code is None else [FUNCTIONS.get(expr.kind) for expr in postorder([code])]
    return any(function is not None and function.cost >= POLYNOMIAL for function in functions)
