"""Count what a kernel does: bytes that it must move, and operations on its elements.

A multiplication and an addition count one each, as does every other function of an element and, in
a reduction, every element it takes. Loads, constants, conversions and movement count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core import facts
from ..core.shape import size_of
from ..graph.node import Node
from .dynamic import is_dynamic
from .kernels import ColumnKernel, GemmKernel, Kernel, LibraryKernel, Operand, RowKernel
from .scalar import Expr, postorder
from .storage import View

FREE = frozenset(("cast", "const", "index", "load"))


def bytes_moved(views: Iterable[View]) -> int:
    """Return the bytes of all elements that views reach, each counted once for each view."""
    return sum(_reached(view) * view.dtype.itemsize for view in views)


def _reached(view: View) -> int:
    if 0 in view.shape:
        return 0
    axes = zip(view.shape, view.strides, strict=True)
    return size_of(size for size, stride in axes if stride)


def operations(kernel: Kernel) -> int:
    """Return how many operations a kernel does."""
    if isinstance(kernel, RowKernel):
        roots = [output.value for output in kernel.outputs]
        return _expression_operations(roots, kernel.operands, kernel.rows, kernel.columns)
    if isinstance(kernel, ColumnKernel):
        size = size_of(kernel.loops)
        return size + _expression_operations([kernel.output.value], kernel.operands, 1, size)
    nodes = [kernel.node] if isinstance(kernel, LibraryKernel) else kernel.nodes
    if isinstance(kernel, GemmKernel) and kernel.windows is not None:
        # Of one convolution there may be several products.
        others = [node for node in nodes if node.op.multiplications_rule is None]
        sizes = (*kernel.batch, kernel.m, kernel.n, kernel.k)
        return 2 * size_of(sizes) + sum(map(_node_operations, others))
    return sum(_node_operations(node) for node in nodes if not is_dynamic(node))


def _expression_operations(
    roots: list[Expr], operands: list[Operand], rows: int, columns: int
) -> int:
    """Count operations per element, or per row where nothing they take varies along it."""
    total = 0
    varies: dict[int, bool] = {}
    for expr in postorder(roots):
        along = any(varies[id(arg)] for arg in expr.args)
        if expr.kind == "load":
            along = operands[expr.data].strides[-1] != 0
        varies[id(expr)] = (along or expr.kind == "index") and expr.kind != "reduce"
        if expr.kind == "reduce":
            total += rows * columns
        elif expr.kind not in FREE:
            total += rows * (columns if along else 1)
    return total


def _node_operations(node: Node) -> int:
    shapes = [None if x is None else x.shape for x in node.inputs]
    return facts.operations(node.op, shapes, node.attrs, node.outputs[0].shape)
