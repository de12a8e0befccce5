"""Compiled kernels for eager mode: an operation or a composite as a program of its own.

The choosers decide when; here what was called becomes a graph, goes through the same compiler as
every graph, and comes back as a function of arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..autodiff.reverse import gradients
from ..backends.cpu.runtime.arena import aligned_empty
from ..backends.cpu.runtime.buffers import array_maker, pooled_arena
from ..backends.cpu.runtime.executable import Executable
from ..compiler.stages import compile_program
from ..core.dtype import Array
from ..core.errors import AllocationError, WeftError
from ..core.locks import fork_safe_lock
from ..core.modes import enable_grad
from ..core.op import F, find_op
from ..core.scalar.builder import postorder
from ..core.scalar.functions import EXACT as EXACT_ULPS
from ..core.scalar.functions import ROUNDED as ROUNDED_ULPS
from ..core.scalar.functions import named
from ..core.tensor import Tensor, wrap_with_node
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.run import Program
from ..graph.symbol import Symbol
from ..lower.kernels import RowKernel
from .composites import CallShape
from .uses import Code

Types = Sequence[tuple[tuple[int, ...], np.dtype[Any]]]

# Expressions whose value follows from their operands without rounding, and with one. Either of two
# zeros may be the larger.
UNROUNDED = named(lambda record: record.ulps == EXACT_ULPS) - {"maximum", "minimum"}
UNROUNDED |= {"load", "const"}
ROUNDED_ONCE = named(lambda record: record.ulps == ROUNDED_ULPS) - {"cast"}

MOST_BETWEEN = 4  # times the bytes of its operands: what a program may keep in between
SMALL_ARENA = 1 << 16  # bytes that a program may keep for itself

# Held while a program computes in memory that it was lent.
_lending = fork_safe_lock("lending")


class ArrayProgram:
    """Machine code that takes arrays of given types and returns new ones."""

    def __init__(self, executable: Executable) -> None:
        entry = executable.entry
        assert entry is not None
        self.entry = entry
        self.executable = executable
        self.used = executable.layout.used_feeds
        self.arena_bytes = executable.layout.arena_bytes
        self.checks = executable.plan.flag is not None  # indices: in memory of the program
        self.makers = [array_maker(view.shape, view.dtype) for view in executable.plan.outputs]
        buffers = [view.buffer for view in executable.plan.outputs]
        self.order = [buffers.index(buffer) for buffer in executable.layout.fresh]
        self.own: Array | None = None
        if 0 < self.arena_bytes <= SMALL_ARENA:
            self.own = aligned_empty(self.arena_bytes)
            executable.memory.lend_arena(self.own)

    def run(self, *arrays: Array) -> tuple[Array, ...] | None:
        """Return the results; None for arrays not in C order and aligned, or a bad index."""
        given = tuple(arrays[i] for i in self.used)
        try:
            results = tuple(make() for make in self.makers)
            refused = self._call(given, tuple(results[i] for i in self.order))
        except (MemoryError, TypeError):
            return None
        return results if refused is None else None

    def _call(self, given: tuple[Array, ...], results: tuple[Array, ...]) -> int | None:
        if not self.arena_bytes and not self.checks:
            return self.entry(given, results)
        arena = None
        if self.arena_bytes and self.own is None:
            arena = pooled_arena(self.arena_bytes)
        with _lending:
            if arena is not None:
                self.executable.memory.lend_arena(arena)
            refused = self.entry(given, results)
            return 0 if self.executable.met_bad_index() else refused

    def single(self) -> Callable[..., Array | None]:
        """Return `run` for one result, as short as can be where it is no more than a call."""
        lent = self.arena_bytes and self.own is None
        if lent or self.checks or len(self.used) < self.executable.layout.feeds:
            return self._run_single
        entry, (make,), own = self.entry, self.makers, self.own

        def run(*arrays: Array) -> Array | None:
            try:
                result = make()
                if own is None:
                    refused = entry(arrays, result)
                else:  # the code computes in there, one call at a time
                    with _lending:
                        refused = entry(arrays, result)
            except (MemoryError, TypeError):  # the reference kernel will say so; a NumPy scalar
                return None
            return result if refused is None else None

        return run

    def _run_single(self, *arrays: Array) -> Array | None:
        results = self.run(*arrays)
        return None if results is None else results[0]


class CompositeKernel:
    """A composite's result on large arrays, and its gradient; the `op` of its tape nodes."""

    saves = None  # a node saves the operands as they are

    def __init__(
        self,
        name: str,
        recompute: Callable[..., Any],
        forward: ArrayProgram,
        pull_back: ArrayProgram | None,
        tracked: Sequence[bool],
    ) -> None:
        self.name = name
        self.recompute = recompute
        self.forward = forward.single()
        self.pull_back = pull_back
        self.tracked = tracked

    def __call__(self, *arrays: Array) -> Array | None:
        """Return the result, or None for arrays that the code does not take."""
        return self.forward(*arrays)

    def backward(self, node: Any, saved: Sequence[Array], g: Array) -> list[Array | None]:
        """Return the gradients of the operands on raw arrays."""
        assert self.pull_back is not None
        found = self.pull_back.run(*saved, np.require(g, requirements=["C", "A"]))
        if found is None:  # the operands were taken before, so that only memory can be missing
            raise AllocationError(f"{self.name}: not enough memory for its gradient")
        rest = iter(found)
        return [next(rest) if wanted else None for wanted in self.tracked]

    def linked(self, node: Any, saved: Sequence[Array], g: Tensor) -> list[Tensor | None]:
        """Return the gradients of the operands as tensors, to be differentiated again."""
        with enable_grad():
            # A node of its own for each operand, also where two are the same tensor.
            operands = [
                F.positive(wrap_with_node(x, parent))
                for x, parent in zip(saved, node.parents, strict=True)
            ]
            out = self.recompute(operands)
            wanted = [x for x, tracked in zip(operands, self.tracked, strict=True) if tracked]
            found = iter(gradients(out, wanted, g, create_graph=True))
        return [next(found) if tracked else None for tracked in self.tracked]


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
    executable = _compiled(graph, [out], feeds)
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
    executable = None if out is None else _compiled(graph, [out], feeds)
    return None if executable is None else ArrayProgram(executable).single()


def compile_composite(name: str, fn: Callable[..., Any], shape: CallShape) -> Code | None:
    """Return machine code for a call of a composite, or None if it has none."""
    graph = Graph()
    with graph:
        feeds = [placeholder(*kind) for kind in shape.types]
        out = _traced(lambda: shape.call(fn, feeds))
        if out is None:
            return None
        forward = _compiled(graph, [out], feeds)
        pull_back = _gradient(graph, out, feeds, shape.tracked)
    if forward is None or (any(shape.tracked) and pull_back is None):
        return None
    return CompositeKernel(
        name,
        lambda tensors: shape.call(fn, tensors),
        ArrayProgram(forward),
        None if pull_back is None else ArrayProgram(pull_back),
        shape.tracked,
    )


def _traced(call: Callable[[], Any]) -> Symbol | None:
    """Return the one symbol that a call gives, or None: a bad call fails in eager mode too."""
    try:
        out = call()
    except WeftError:
        return None
    return out if isinstance(out, Symbol) else None


def _gradient(
    graph: Graph, out: Symbol, feeds: Sequence[Symbol], tracked: Sequence[bool]
) -> Executable | None:
    """Return the gradients of the operands, from the operands and the gradient of the result."""
    wanted = [x for x, needed in zip(feeds, tracked, strict=True) if needed]
    if not wanted:
        return None
    seed = placeholder(out.shape, out.dtype)
    found = gradients(out, wanted, seed)
    if any(g is None for g in found):
        return None
    return _compiled(graph, found, [*feeds, seed])


def _compiled(
    graph: Graph, fetches: Sequence[Symbol], feeds: Sequence[Symbol]
) -> Executable | None:
    values: list[Value] = [x.value for x in feeds]
    program = Program(graph, [y.value for y in fetches], values)
    executable = compile_program(program, {value: value.shape for value in values}, own_arena=False)
    if executable is None or executable.entry is None:
        return None
    taken = sum(x.size * x.dtype.itemsize for x in feeds)
    return executable if executable.layout.arena_bytes <= MOST_BETWEEN * taken else None


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
