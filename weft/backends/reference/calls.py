"""Calls of operators: what a graph cannot say in loops, by the operator's eager kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dispatch import canonical
from ...graph.node import resolve_attrs
from ...graph.run import bind_sizes, has_unknown_sizes
from ...lower.dynamic import OBJECT
from ...lower.kernels import CallKernel
from .memory import Memory


def call_operator(kernel: CallKernel, memory: Memory) -> None:
    """Call an operator on arrays, and store what it returns."""
    op = kernel.op
    given = [None if view is None else memory.view(view) for view in kernel.inputs]
    operands: list[Any] = given
    if op.variadic:
        fixed = len(op.inputs) - 1
        operands = [*given[:fixed], given[fixed:]]
    sizes = {"sizes": memory.sizes} if op.kind == "control" else {}
    made = op.kernel(*operands, *_attrs(kernel, given, memory), **sizes)
    results = [made] if op.outputs == 1 else list(made)
    for view, result in zip(kernel.outputs, results, strict=True):
        if view.buffer.kind == OBJECT:
            memory.objects[view.buffer] = np.asarray(result)
            bind_sizes(view.buffer, np.shape(result), memory.sizes)
        else:
            memory.view(view)[...] = result


def _attrs(kernel: CallKernel, given: list[Any], memory: Memory) -> tuple[Any, ...]:
    """Return the attributes of a call; what only this run can tell is put in and checked."""
    if not kernel.is_dynamic:
        return kernel.attrs
    attrs = resolve_attrs(kernel.attrs, memory.sizes)
    if kernel.op.kind == "control" or not has_unknown_sizes(kernel.op, kernel.inputs):
        return attrs
    return canonical(kernel.op, tuple(given), attrs)
