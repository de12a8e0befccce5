"""Tell where a kernel may write its result over what it reads."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.scalar.builder import Expr, postorder
from ..lower.kernels import GemmKernel, Kernel, RowKernel
from ..lower.storage import Buffer, View


def writes_in_place(kernel: Kernel, result: View, read: Buffer) -> bool:
    """Tell whether a result may replace a buffer that the kernel reads.

    Each element must be computed from the element that it replaces and from no other of that
    buffer; what a kernel reads of other buffers does not matter.
    """
    if isinstance(kernel, RowKernel):
        exprs = postorder([output.value for output in kernel.outputs])
        moved = [kernel.operands[e.data[0]].view for e in exprs if e.kind == "load_at"]
        if _combines(kernel, exprs) or any(view.buffer is read for view in moved):
            return False
        return _at_one_place([operand.view for operand in kernel.operands], result.buffer, read)
    if isinstance(kernel, GemmKernel):
        used = (*kernel.matrices, *kernel.computed_from, *kernel.row_sums)
        apart = all(view.buffer not in (result.buffer, read) for view in used)
        return apart and _at_one_place(kernel.extras, result.buffer, read)
    return False


def _combines(kernel: RowKernel, exprs: Sequence[Expr]) -> bool:
    """Tell whether a kernel makes one element of several."""
    combined = any(output.way is not None for output in kernel.outputs)
    return combined or any(expr.kind == "reduce" for expr in exprs)


def _at_one_place(views: Sequence[View], *buffers: Buffer) -> bool:
    """Tell whether all views of some buffers go through their elements in the same way."""
    ways = {(v.shape, v.strides, v.offset) for v in views if v.buffer in buffers}
    return len(ways) == 1
