"""States of which a run writes some rows: tables whose gradients are row-sparse.

The new value is the old one with values scattered into it: a copy, and a scatter behind it. Where
the new value takes the memory of the old one there is nothing to copy, and a run touches the rows
alone. That can be when nothing reads the old value any more, and nothing can fail any more: so
these kernels come last. Nobody waits for them, and what they read are a few rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..lower.copies import copied_views
from ..lower.kernels import Kernel, ScatterKernel
from ..lower.lifetimes import uses_of
from ..lower.program import KernelProgram
from ..lower.storage import Buffer


def with_rows_last(program: KernelProgram) -> KernelProgram:
    """Return a program in which kernels that write rows of states stand behind all others."""
    uses = uses_of(program.kernels)
    fetched = {view.buffer for view in program.fetches}
    states = {b.slot: b for b in program.buffers if b.kind == "state"}
    last = {
        i
        for number, view in program.commits
        if view.buffer not in fetched and number in states
        for i in _writers(program, view.buffer, states[number], uses.get(view.buffer, ()))
    }
    if not last:
        return program
    order = sorted(range(len(program.kernels)), key=lambda i: i in last)
    return replace(program, kernels=tuple(program.kernels[i] for i in order))


def _writers(
    program: KernelProgram, new: Buffer, old: Buffer, touching: Sequence[int]
) -> Sequence[int]:
    """Return all kernels that touch a new value, if they copy the old one and scatter into it."""
    if len(touching) < 2:
        return ()
    first, *others = (program.kernels[i] for i in touching)
    copied = copied_views(first)
    if copied is None or copied[0].buffer is not old or copied[1].buffer is not new:
        return ()
    return touching if all(_only_writes(kernel, new) for kernel in others) else ()


def _only_writes(kernel: Kernel, target: Buffer) -> bool:
    """Tell whether a kernel scatters into a buffer of which it reads nothing."""
    if not isinstance(kernel, ScatterKernel):
        return False
    *read, written = (operand.view.buffer for operand in kernel.operands)
    return written is target and target not in read


def without_copies(program: KernelProgram, shared: Mapping[Buffer, Buffer]) -> KernelProgram:
    """Return a program without copies of old values of states to where they lie already.

    A copy that something reads stays: a program writes what it reads, wherever that lies.
    """
    uses = uses_of(program.kernels)
    kernels = []
    for kernel in program.kernels:
        copied = copied_views(kernel)
        if copied is None or shared.get(copied[1].buffer) is not copied[0].buffer:
            kernels.append(kernel)
            continue
        new = copied[1].buffer
        others = [program.kernels[i] for i in uses[new] if program.kernels[i] is not kernel]
        if not all(_only_writes(other, new) for other in others):
            kernels.append(kernel)
    if len(kernels) == len(program.kernels):
        return program
    return replace(program, kernels=tuple(kernels))
