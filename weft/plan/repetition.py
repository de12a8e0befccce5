"""What a program that communicates keeps in order to be repeated.

A run that fails is repeated node by node, to say where, and is given what its exchanges gave: other
processes take part once. From the last kernel on that can fail by itself, nobody will need that:
an exchange that fails does so again. So what was gathered is freed behind its last use there.
"""

from __future__ import annotations

from dataclasses import replace

from ..graph.communication import COMMUNICATION
from ..lower.kernels import CallKernel, Kernel, may_fail
from ..lower.program import KernelProgram


def with_repetition(program: KernelProgram) -> KernelProgram:
    """Return a program whose exchanges know whether anything behind them may repeat it."""
    places = [i for i, kernel in enumerate(program.kernels) if _is_exchange(kernel)]
    if not places:
        return program
    others = (i for i, k in enumerate(program.kernels) if may_fail(k) and not _is_exchange(k))
    last = max(others, default=-1)
    kernels = list(program.kernels)
    for i in (i for i in places if i > last):
        kernels[i] = _unkept(kernels[i])
    return program.with_kernels(kernels)


def _is_exchange(kernel: Kernel) -> bool:
    return isinstance(kernel, CallKernel) and kernel.op in COMMUNICATION.values()


def _unkept(kernel: Kernel) -> Kernel:
    assert isinstance(kernel, CallKernel)
    return replace(kernel, attrs=(*kernel.attrs[:-1], False))
