"""Compiled kernels for eager mode: an operation as a program of its own.

The choosers decide when; here what was called becomes a graph, goes through the same compiler as
every graph, and comes back as a function of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ..backends.cpu.runtime.executable import Executable
from ..compiler.stages import compile_program
from ..core.errors import WeftError
from ..core.op import F, find_op
from ..core.scalar.builder import postorder
from ..core.scalar.functions import EXACT as EXACT_ULPS
from ..core.scalar.functions import ROUNDED as ROUNDED_ULPS
from ..core.scalar.functions import named
from ..core.shape import Shape, size_of
from ..core.tape import make_node
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.run import Program
from ..graph.symbol import Symbol
from ..lower.kernels import RowKernel
from ..passes.user_rules import without_user_rules
from .array_program import ArrayProgram
from .uses import Code

Types = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]

# Expressions whose value follows from their operands without rounding, and with one. Either of two
# zeros may be the larger.
UNROUNDED = named(lambda record: record.ulps == EXACT_ULPS) - {"maximum", "minimum"}
UNROUNDED |= {"load", "const"}
ROUNDED_ONCE = named(lambda record: record.ulps == ROUNDED_ULPS) - {"cast"}

MOST_BETWEEN = 4  # times the bytes of its operands: what a program may keep in between


def compile_kernel(name: str, types: Types, attrs: tuple[Any, ...]) -> Code | None:
    """Return machine code for an operator on arrays of given types, or None if it has none."""
    op, graph = find_op(name), Graph()
    promoted = {kind[1] for kind, x in zip(types, op.inputs, strict=True) if x in op.promoted}
    if op.promote is not None and len(promoted) > 1:  # a rule mixes dtypes: NumPy's business
        return None
    with graph:
        feeds = [placeholder(shape, dtype) for shape, dtype in types]
        out = _traced(lambda: graph.tracer.apply(op, tuple(feeds), attrs))
    if out is None:
        return None
    executable = compile_fixed(graph, [out.value], [x.value for x in feeds])
    if executable is None or (op.exact and not is_exact(executable)):
        return None
    if not executable.checks_feeds:  # it is called with anything, and must tell by itself
        return None
    return ArrayProgram(executable).single()


def compile_product(
    name: str, types: Sequence[tuple[Any, Any, bool]], attrs: tuple[Any, ...]
) -> Code | None:
    """Return machine code for a product, or None; operands may be given transposed."""
    op, graph = find_op(name), Graph()
    with graph:
        feeds = [placeholder(shape, dtype) for shape, dtype, _ in types]
        turned = [
            F.swapaxes(x, -1, -2) if kind[2] else x for x, kind in zip(feeds, types, strict=True)
        ]
        operands = (*turned, *[None] * (len(op.inputs) - len(turned)))
        out = _traced(lambda: graph.tracer.apply(op, operands, attrs))
    executable = (
        None if out is None else compile_fixed(graph, [out.value], [x.value for x in feeds])
    )
    return None if executable is None else ArrayProgram(executable).single()


def compile_pullback(
    name: str,
    types: Types,
    others: Sequence[Any],
    attrs: tuple[Any, ...],
    spread: Shape | None = None,
) -> Code | None:
    """Return machine code for the gradient of an operator of one operand, or None.

    types    of the arrays that its node saves, and of the gradient of the result
    others   what the node saves, with None for the arrays
    spread   the shape of that gradient, if one number is given for all of it
    """
    op, graph = find_op(name), Graph()
    with graph:
        *arrays, g = feeds = [placeholder(shape, dtype) for shape, dtype in types]
        rest = iter(arrays)
        saved = tuple(next(rest) if x is None else x for x in others)
        node = make_node(op, (None,), saved, attrs)
        linked = cast("Callable[..., Any]", op.linked)
        whole = g if spread is None else F.broadcast_to(g, spread)
        out = _traced(lambda: linked(node, saved, whole)[0])
    if out is None:
        return None
    executable = compile_fixed(graph, [out.value], [x.value for x in feeds])
    return None if executable is None else ArrayProgram(executable).single()


def _traced(call: Callable[[], Any]) -> Symbol | None:
    """Return the one symbol that a call gives, or None: a bad call fails in eager mode too."""
    try:
        out = call()
    except WeftError:
        return None
    return out if isinstance(out, Symbol) else None


def compile_fixed(
    graph: Graph, fetches: Sequence[Value], feeds: Sequence[Value]
) -> Executable | None:
    """Return the program for these very shapes, or None: where there is none, or it needs states.

    The one place where eager mode decides for which sizes code is made.
    """
    program = Program(graph, fetches, feeds)
    if program.states or program.commits:
        return None
    with without_user_rules():  # they are for programs; single operations stay as they are
        executable = compile_program(program, {x: x.shape for x in feeds}, own_arena=False)
    if executable is None or executable.entry is None or not _hands_out(executable):
        return None
    taken = sum(size_of(x.shape) * x.dtype.itemsize for x in (*feeds, *fetches))
    return executable if executable.layout.arena_bytes <= MOST_BETWEEN * taken else None


def _hands_out(executable: Executable) -> bool:
    """Tell whether each result is a new array of its own, and no operand, say."""
    return all(view.buffer in executable.layout.fresh for view in executable.plan.outputs)


def is_exact(executable: Executable) -> bool:
    """Tell whether results equal NumPy's bit for bit: rounded once at most."""
    for kernel in executable.program.kernels:
        if not isinstance(kernel, RowKernel):
            return False
        exprs = postorder([output.value for output in kernel.outputs])
        rounded = [e for e in exprs if e.kind in ROUNDED_ONCE and e.dtype.kind == "f"]
        if len(rounded) > 1 or not all(e.kind in UNROUNDED | ROUNDED_ONCE for e in exprs):
            return False
    return True
