"""Give fetches memory of their own.

What a program hands out is an array in C order that nothing else lies in. A fetch that is part of a
buffer, or goes through it in another order, is copied by a kernel: by all threads, with the rest.
"""

from __future__ import annotations

from dataclasses import replace

from ..lower.copies import copy_kernel
from ..lower.kernels import Kernel
from ..lower.kinds import DTYPES
from ..lower.program import KernelProgram, NewBuffers
from ..lower.storage import Buffer, View


def with_own_memory(program: KernelProgram, *, parts: bool = False) -> KernelProgram:
    """Return a program whose fetches have their own memory, copied by kernels where need be.

    What states hold is left alone, old and new, and so is what only a run can tell the size of.

    parts   whether the host cannot take a part out of memory: then a kernel copies all parts
    """
    taken = {view.buffer for _, view in program.commits}
    copies: list[Kernel] = []
    new, fetches = NewBuffers(program), []
    for view in program.fetches:
        if _needs_copy(view, taken, parts):
            made = new.arena(view.shape, view.dtype, f"copy of {view.buffer.name}")
            copies.append(copy_kernel(made.buffer.name, view, made))
            fetches.append(made)
        else:
            fetches.append(view)
    if not copies:
        return program
    made_program = program.with_kernels([*program.kernels, *copies], new)
    return replace(made_program, fetches=tuple(fetches))


def _needs_copy(view: View, taken: set[Buffer], parts: bool) -> bool:
    computed = view.buffer.kind == "arena"
    if computed and view.whole and view.buffer not in taken:
        taken.add(view.buffer)
        return False
    # What was fed, or is constant, and lies in order needs no code of its own to be copied.
    given = view.buffer.kind in ("feed", "constant") and not view.contiguous
    part = parts and view.buffer.kind in ("feed", "constant", "state") and not view.whole
    return (computed or given or part) and view.dtype in DTYPES
