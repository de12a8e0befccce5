"""Count what a kernel does: bytes that it must move, and operations on its elements.

A multiplication and an addition count one each, as does every other function of an element and, in
a reduction, every element it takes. Loads, constants, conversions and movement count nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core import facts
from ..core.shape import size_of
from .kernels import (
    CallKernel,
    ColumnKernel,
    GemmKernel,
    Kernel,
    Operand,
    RowKernel,
    ScanKernel,
    ScatterKernel,
)
from .scalar import Expr, postorder
from .storage import View

FREE = frozenset(("carry", "cast", "const", "index", "load", "step"))


def bytes_moved(views: Iterable[View]) -> int:
    """Return the bytes of all elements that views reach, each counted once for each view."""
    return sum(_reached(view) * view.dtype.itemsize for view in views)


def _reached(view: View) -> int:
    if 0 in view.shape:
        return 0
    axes = zip(view.shape, view.strides, strict=True)
    return size_of(size for size, stride in axes if stride)


def operations(kernel: Kernel) -> int:
    """Return how many operations a kernel does, without those of kernels inside it."""
    if isinstance(kernel, RowKernel):
        roots = [output.value for output in kernel.outputs]
        return _expression_operations(roots, kernel.operands, kernel.rows, kernel.columns)
    if isinstance(kernel, ColumnKernel):
        size = size_of(kernel.loops)
        return size + _expression_operations([kernel.output.value], kernel.operands, 1, size)
    if isinstance(kernel, ScatterKernel):
        return size_of(kernel.loops) * (1 + _each([kernel.value]))
    if isinstance(kernel, ScanKernel):
        return size_of(kernel.loops) * _each(
            [kernel.value, *(after for _, after in kernel.carried)]
        )
    if isinstance(kernel, GemmKernel):
        return _product_operations(kernel)
    return _call_operations(kernel) if isinstance(kernel, CallKernel) else 0


def _product_operations(kernel: GemmKernel) -> int:
    """Count those of a product, of its epilogue, and of its operands, each once an element."""
    batch, m, n, k = size_of(kernel.batch), kernel.m, kernel.n, kernel.k
    combined = sum(output.way is not None for output in kernel.outputs)
    stored = _each([output.value for output in kernel.outputs]) + combined
    x, y = (0 if p is None else _each([p.value]) for p in (kernel.x_from, kernel.y_from))
    each = 2 * k + (kernel.bias is not None) + stored
    return batch * (m * n * each + m * k * x + k * n * y)


def _each(roots: list[Expr]) -> int:
    return sum(expr.kind not in FREE for expr in postorder(roots))


def _expression_operations(
    roots: list[Expr], operands: Sequence[Operand], rows: int, columns: int
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


def _call_operations(kernel: CallKernel) -> int:
    if kernel.is_dynamic:
        return 0
    shapes = [None if view is None else view.shape for view in kernel.inputs]
    return facts.operations(kernel.op, shapes, kernel.attrs, kernel.outputs[0].shape)
