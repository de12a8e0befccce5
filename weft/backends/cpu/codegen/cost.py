"""Estimate how long kernels run, to decide what is worth several threads.

Costs are nanoseconds on one core of a usual machine. They decide how work is divided, never what
is computed, so that they need only be right within a factor of two.
"""

from __future__ import annotations

from ....core.scalar.builder import Expr, postorder
from ....core.scalar.functions import FUNCTIONS, POLYNOMIAL, SIMPLE
from ....core.shape import size_of
from ....lower.kernels import ColumnKernel, GemmKernel, RowKernel, ScanKernel, ScatterKernel
from .strided import by_vectors
from .target import Target

PER_VECTOR = 0.3  # a simple operation on a whole vector
PER_BYTE = 0.03  # read or written, from the caches or not
PER_STRIDED = 0.2  # an element that does not lie beside the one before, in the caches
PER_ROW = 4.0
PER_PRODUCT = 0.03  # of two numbers of a matrix product, in whole vectors
PER_PLACE = 4.0  # a value that goes to a place of its own
PER_SCATTERED = 0.4  # one of a row that goes to one place
PER_STEP = 1.5  # of a recurrence that waits for itself
UNUSUAL = {"checked": 4.0, "load_at": 8.0, "random": 40.0}


def row_cost(kernel: RowKernel, target: Target) -> float:
    """Return the cost of a row kernel."""
    values = [output.value for output in kernel.outputs]
    operations = expression_cost(values, target, by_vectors=by_vectors(kernel))
    moved = sum(o.view.dtype.itemsize for o in kernel.operands if o.strides[-1]) * PER_BYTE
    strided = sum(abs(operand.strides[-1]) > 1 for operand in kernel.operands) * PER_STRIDED
    rows = 0 if len(kernel.loops) == 1 else kernel.rows
    each = operations + moved + strided
    return float(rows * PER_ROW + size_of(kernel.loops) * each)


def column_cost(kernel: ColumnKernel, target: Target) -> float:
    """Return the cost of a column kernel."""
    moved = sum(o.view.dtype.itemsize for o in kernel.operands if any(o.strides)) * PER_BYTE
    each = expression_cost([kernel.output.value], target) + moved
    return size_of(kernel.loops) * each


def scatter_cost(kernel: ScatterKernel) -> float:
    """Return the cost of a scatter kernel."""
    return size_of(kernel.loops) * (PER_PLACE if kernel.columns == 1 else PER_SCATTERED)


def scan_cost(kernel: ScanKernel) -> float:
    """Return the cost of a scan kernel."""
    return size_of(kernel.loops) * (PER_STEP if kernel.loops[-1] == 1 else PER_SCATTERED)


def gemm_cost(kernel: GemmKernel) -> float:
    """Return the cost of a matrix product."""
    return float(size_of(kernel.shape) * PER_PRODUCT)


def expression_cost(values: list[Expr], target: Target, *, by_vectors: bool = True) -> float:
    """Return the cost of expressions for one element, all that they need being there."""
    lanes = target.vector_bytes // 4 if by_vectors else 1
    return sum(weight_of(expr) for expr in postorder(values)) * PER_VECTOR / lanes


def weight_of(expr: Expr) -> float:
    """Return how many simple operations take the time of an expression's last one."""
    if expr.kind in ("const", "load", "index"):
        return 0.0
    if expr.kind in UNUSUAL:
        return UNUSUAL[expr.kind]
    wide = expr.dtype.itemsize / 4 if expr.dtype.kind != "b" else 1.0
    return _cost_on(expr) * max(1.0, wide)


def is_function(expr: Expr) -> bool:
    """Tell whether an expression is a mathematical function, computed by a polynomial."""
    return _cost_on(expr) >= POLYNOMIAL


def _cost_on(expr: Expr) -> float:
    record = FUNCTIONS.get(expr.kind)
    return SIMPLE if record is None or expr.dtype.kind != "f" else record.cost
