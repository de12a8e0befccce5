"""Constant folding: what depends on constants only is computed now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core.dim import Dim, is_known
from ..core.dispatch import ERRORS, group
from ..core.dtype import Array
from ..core.op import Op, random
from ..core.shape import size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value, attr_items, is_graph
from ..graph.special import CONSTANT, Literal
from .rewrite import Rebuild, pass_over

LARGEST = 1 << 20  # bytes: above, the graph would grow more than a run would save
SMALL = 1 << 10  # bytes up to which a result may be larger than what it is made from
GROWTH = 4  # times its inputs a larger result may be: a broadcast scalar is better left lazy


def fold_constants(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with nodes of constant inputs replaced by their results.

    A node whose kernel raises stays: the error belongs to the run.
    """

    def visit(rebuild: Rebuild, node: Node) -> Sequence[Value] | None:
        made = _evaluate(node) if _is_foldable(node) else None
        return None if made is None else _as_constants(rebuild, node, made)

    return pass_over(graph, outputs, visit, fold_constants)


def _is_foldable(node: Node) -> bool:
    op = node.op
    if not isinstance(op, Op) or op.kind == random or op.kernel is None:
        return False
    if any(x is not None and x.node.op is not CONSTANT for x in node.inputs):
        return False
    if any(isinstance(item, Dim) or is_graph(item) for item in attr_items(node.attrs)):
        return False
    return _is_small_enough(node)


def _is_small_enough(node: Node) -> bool:
    """Tell whether the results are known to be small; sizes that only a run tells are not."""
    if not all(is_known(value.shape) for value in node.outputs):
        return False
    taken = sum(_bytes(x) for x in node.inputs if x is not None)
    made = sum(_bytes(value) for value in node.outputs)
    return made <= min(LARGEST, max(SMALL, GROWTH * taken))


def _bytes(value: Value) -> int:
    return size_of(value.shape) * int(value.dtype.itemsize)


def _evaluate(node: Node) -> list[Array] | None:
    operands = [None if x is None else x.node.attrs[0].array for x in node.inputs]
    try:
        with np.errstate(all="ignore"):
            made = node.op.kernel(*group(node.op, operands), *node.attrs)
    except ERRORS:
        return None
    arrays = [np.asarray(a) for a in ((made,) if node.op.outputs == 1 else made)]
    fits = all(
        a.shape == v.shape and a.dtype == v.dtype for a, v in zip(arrays, node.outputs, strict=True)
    )
    return arrays if fits else None


def _as_constants(
    rebuild: Rebuild,
    node: Node,
    arrays: list[Array],
) -> list[Value]:
    return [rebuild.graph.append(_constant(rebuild, node, a)).outputs[0] for a in arrays]


def _constant(rebuild: Rebuild, node: Node, array: Array) -> Node:
    array.flags.writeable = False  # so that the literal keeps it, in the layout the kernel gave it
    literal = Literal(array)
    made = rebuild.fresh(node, CONSTANT, (), (literal,), (literal.type,))
    return made if len(node.outputs) > 1 else made.rebuilt((), name=node.name)
