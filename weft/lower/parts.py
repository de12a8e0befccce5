"""Results that are made in parts: concatenation and stacking.

A tensor that is only joined to others is computed into its part of the result, so that joining
costs nothing; one that lies elsewhere is copied by a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.graph import Graph
from ..graph.node import Node, Value
from .kernels import Operand, Output, RowKernel
from .loops import collapse
from .scalar import ScalarBuilder
from .storage import View, contiguous_strides

JOINS = ("concat", "stack")


def part_views(whole: View, node: Node) -> list[View]:
    """Return where each operand of a join lies in the result."""
    axis = node.attr("axis")
    values = [x for x in node.inputs if x is not None]
    if axis is None:
        return _flat_parts(whole, values)
    parts, start = [], 0
    step = whole.strides[axis]
    for x in values:
        offset = whole.offset + start * step
        if node.op.name == "stack":
            strides = (*whole.strides[:axis], *whole.strides[axis + 1 :])
            start += 1
        else:
            strides = whole.strides
            start += x.shape[axis]
        parts.append(View(whole.buffer, x.shape, strides, offset))
    return parts


def _flat_parts(whole: View, values: Iterable[Value]) -> list[View]:
    parts, start = [], 0
    for x in values:
        size = 1
        for n in x.shape:
            size *= n
        parts.append(View(whole.buffer, x.shape, contiguous_strides(x.shape), whole.offset + start))
        start += size
    return parts


def find_homes(graph: Graph) -> dict[Value, Node]:
    """Return the joins into whose results values may be written by the kernels that make them.

    A value has one home, and only if it is joined once; results of the graph have their own memory.
    """
    homes: dict[Value, Node] = {}
    outputs = set(graph.outputs)
    for node in graph.nodes:
        if node.op.name not in JOINS:
            continue
        values = [x for x in node.inputs if x is not None]
        for x in values:
            if x not in homes and x not in outputs and values.count(x) == 1:
                homes[x] = node
    return homes


def copy_kernel(name: str, source: View, target: View) -> RowKernel:
    """Return the kernel that copies one view to another of its shape."""
    loops, strides = collapse(source.shape, [source.strides, target.strides], None)
    value = ScalarBuilder().load(0, source.dtype)
    operands = [Operand(v, s) for v, s in zip((source, target), strides, strict=True)]
    return RowKernel(name, loops, operands, [Output(1, value)])
