"""What the kinds of kernels compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.scalar.builder import postorder
from ...lower.kernels import (
    BranchKernel,
    CallKernel,
    ColumnKernel,
    GemmKernel,
    Kernel,
    LoopKernel,
    Operand,
    Output,
    Prologue,
    RowKernel,
    ScanKernel,
    ScatterKernel,
    TogetherKernel,
)
from ...lower.storage import View
from ..host import call_operator, repeat
from .elements import COMBINE, Elements, reduced
from .memory import Array, Memory


def run_kernels(kernels: Sequence[Kernel], memory: Memory) -> None:
    """Run kernels in order."""
    for kernel in kernels:
        RUN[type(kernel)](kernel, memory)


# -- loops over elements ---------------------------------------------------------------------------


def run_rows(kernel: RowKernel, memory: Memory) -> None:
    """Compute every output, then store them: an output may lie where an operand does."""
    elements = Elements(memory, kernel.loops, kernel.operands, kernel.iotas)
    values = elements.values([output.value for output in kernel.outputs])
    for output, value in zip(kernel.outputs, values, strict=True):
        operand = kernel.operands[output.operand]
        if output.way is not None:
            rows = np.broadcast_to(value, kernel.loops).reshape(kernel.rows, kernel.columns)
            shape = (kernel.units, kernel.columns)
            _store_blocks(memory, operand.view, shape, output, rows, kernel.block)
        elif operand.strides[-1]:
            memory.operand(operand, kernel.loops)[...] = value
        else:  # a value for each row, also where rows are empty
            memory.operand(operand, (*kernel.loops[:-1], 1))[...] = value


def _store_blocks(
    memory: Memory, view: View, shape: tuple[int, int], output: Output, rows: Array, block: int
) -> None:
    """Combine the rows of each block, element by element; there is a row of results for each."""
    assert output.way is not None
    target = memory.strided(view, shape, (shape[1], 1))
    for i in range(shape[0]):
        target[i] = reduced(output.way, rows[i * block : (i + 1) * block], (0,))


def run_columns(kernel: ColumnKernel, memory: Memory) -> None:
    """Combine elements over the reduced loops, and finish each result."""
    (value,) = Elements(memory, kernel.loops, kernel.operands).spread(kernel.output.value)
    gone = tuple(axis for axis, reduces in enumerate(kernel.reduced) if reduces)
    total = reduced(kernel.way, value, gone)
    if kernel.finish is not None:
        known = {id(e): total for e in postorder([kernel.finish]) if e.kind == "reduce"}
        (total,) = Elements(memory, total.shape, (), known=known).spread(kernel.finish)
    target = kernel.operands[kernel.output.operand]
    strides = [s for axis, s in enumerate(target.strides) if axis not in gone]
    memory.strided(target.view, total.shape, strides)[...] = total


def run_scatter(kernel: ScatterKernel, memory: Memory) -> None:
    """Bring each value to its place, in the order of the loops."""
    elements = Elements(memory, kernel.loops, kernel.operands, kernel.iotas)
    value, offset = elements.spread(kernel.value, kernel.offset)
    result = kernel.operands[-1]
    offsets = elements.counted(result.strides) + offset
    flat, places = memory.places(result.view, offsets.reshape(-1))
    if kernel.way == "set":
        flat[places] = value.reshape(-1)  # of values for one place the last one stays
    else:
        COMBINE[kernel.way].at(flat, places, value.reshape(-1))


def run_scan(kernel: ScanKernel, memory: Memory) -> None:
    """Take the steps of the first loop one after another, for all turns of the others."""
    steps, *loops = kernel.loops
    carried = [first.dtype.type(first.data) for first, _ in kernel.carried]
    exprs = [kernel.value, *(after for _, after in kernel.carried)]
    leaves = [e for e in postorder(exprs) if e.kind in ("carry", "step")]
    for step in range(steps):
        operands = [_at_step(operand, step) for operand in kernel.operands]
        known = {id(e): np.int64(step) if e.kind == "step" else carried[e.data] for e in leaves}
        value, *carried = Elements(memory, loops, operands, known=known).values(exprs)
        memory.operand(operands[-1], loops)[...] = value


def _at_step(operand: Operand, step: int) -> Operand:
    view, (stride, *strides) = operand.view, operand.strides
    moved = View(view.buffer, view.shape, view.strides, view.offset + step * stride)
    return Operand(moved, tuple(strides))


# -- products --------------------------------------------------------------------------------------


def run_gemm(kernel: GemmKernel, memory: Memory) -> None:
    """Multiply matrices, add the bias, and compute the epilogue of each element."""
    x = _matrix(memory, kernel.x, kernel.x_from)
    y = _windows(kernel, memory) if kernel.windows else _matrix(memory, kernel.y, kernel.y_from)
    out = memory.view(kernel.out)
    out[...] = x @ y
    if kernel.bias is not None:
        out += memory.view(kernel.bias)
    views = [kernel.out, *kernel.extras]
    operands = [Operand(view, view.strides) for view in views]
    values = Elements(memory, out.shape, operands).spread(*[o.value for o in kernel.outputs])
    for output, value in zip(kernel.outputs, values, strict=True):
        view = views[output.operand]
        if output.way is None:
            memory.view(view)[...] = value
        else:
            shape = (-(-kernel.m // kernel.block), kernel.n)
            _store_blocks(memory, view, shape, output, value, kernel.block)


def _matrix(memory: Memory, view: View, prologue: Prologue | None) -> Array:
    """Return an operand of a product: as it lies, or as its prologue computes it."""
    if prologue is None:
        return memory.view(view)
    operands = [Operand(v, v.strides) for v in (view, *prologue.extras)]
    (found,) = Elements(memory, view.shape, operands).spread(prologue.value)
    return found


def _windows(kernel: GemmKernel, memory: Memory) -> Array:
    """Return the second operand where it lies in windows: by offsets of rows and of columns."""
    assert kernel.windows is not None
    sizes, strides = zip(*kernel.windows.columns, strict=True)
    columns = Elements(memory, sizes, ()).counted(strides).reshape(-1)
    *batch, _, _ = kernel.y.strides
    lead = Elements(memory, kernel.y.shape, ()).counted((*batch, 0, 0))
    rows = memory.view(kernel.windows.offsets)
    flat, places = memory.places(kernel.y, lead + rows + columns)
    found: Array = flat[places]
    return found


# -- control flow ----------------------------------------------------------------------------------


def run_loop(kernel: LoopKernel, memory: Memory) -> None:
    """Repeat the body: so many times, or while the test holds, or until the body stops it."""
    test, body = (partial(run_kernels, part, memory) for part in (kernel.test, kernel.body))
    repeat(kernel, test, body, memory.view, memory.word)


def run_branch(kernel: BranchKernel, memory: Memory) -> None:
    """Run one list of kernels or the other."""
    run_kernels(kernel.yes if memory.view(kernel.chosen) else kernel.no, memory)


def run_together(kernel: TogetherKernel, memory: Memory) -> None:
    """Run chains one after another: in which order makes no difference."""
    for chain in kernel.chains:
        run_kernels(chain, memory)


def run_call(kernel: CallKernel, memory: Memory) -> None:
    """Call an operator by its eager kernel: what a graph cannot say in loops."""
    call_operator(kernel, memory.view, memory.objects, memory.sizes)


RUN: dict[type, Callable[[Any, Memory], None]] = {
    RowKernel: run_rows,
    ColumnKernel: run_columns,
    ScatterKernel: run_scatter,
    ScanKernel: run_scan,
    GemmKernel: run_gemm,
    CallKernel: run_call,
    LoopKernel: run_loop,
    BranchKernel: run_branch,
    TogetherKernel: run_together,
}
