"""Choose how the result of a product lies in memory: as those who want it will read it.

A product can write its result in any order of axes. Where all that follows takes the same
permutation of it (heads of attention that are joined again, a transposed weight gradient), the
permuted tensor is the one that lies in C order: reading it needs no strides, reshaping it no copy.
"""

from __future__ import annotations

from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..ops.movement.axes import permute
from .products import is_product
from .storage import Buffer, View, contiguous

Axes = tuple[int, ...]


def wanted_layouts(graph: Graph) -> dict[Value, Axes]:
    """Return the products that only permutations follow, and the order of axes these have."""
    orders: dict[Value, set[Axes | None]] = {value: {None} for value in graph.outputs}
    for node in graph.nodes:
        order = node.attr("axes") if node.op is permute else None
        for value in node.inputs:
            if value is not None and is_product(value.node):
                orders.setdefault(value, set()).add(order)
    return {
        value: order
        for value, (order, *others) in orders.items()
        if order is not None and not others and _may_lie_so(value.node, order)
    }


def _may_lie_so(node: Node, order: Axes) -> bool:
    """Tell whether the innermost axis stays one of the matrix, and each matrix its own.

    Batches that share a matrix are multiplied as one, which other orders of their axes prevent.
    """
    ranks = [len(x.shape) for x in node.inputs[:2] if x is not None]
    rank = len(order)
    return rank >= 2 and order[-1] >= rank - 2 and all(r == rank for r in ranks)


def laid_out(value: Value, order: Axes) -> View:
    """Return new memory for a value whose permuted form lies in C order."""
    shape = tuple(value.shape[a] for a in order)
    buffer = Buffer("arena", shape, value.dtype, value.name)
    return contiguous(buffer, shape).permuted(tuple(order.index(a) for a in range(len(order))))
