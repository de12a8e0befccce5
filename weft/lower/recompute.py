"""Compute cheap results again where they are wanted instead of storing them.

The backward pass of an activation takes a factor that follows from the activation's result, which
is stored anyway: relu's is a mask. Computing it twice costs less than writing and reading it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from ..core.scalar.builder import CHEAP, Expr, ScalarBuilder, postorder
from .kernels import Kernel, Operand, Output, RowKernel, buffers_of
from .storage import Buffer

MOST_OPERATIONS = 4


def recompute_cheap(kernels: Sequence[Kernel], kept: Collection[Buffer]) -> list[Kernel]:
    """Return the kernels without results that follow cheaply from others that are stored.

    `kept` are buffers that are wanted after the last kernel.
    """
    made = list(kernels)
    users: dict[Buffer, list[int]] = {}
    for i, kernel in enumerate(kernels):
        for buffer in buffers_of(kernel):
            users.setdefault(buffer, []).append(i)
    for i in range(len(made)):
        while _drop_one(made, i, users, kept):
            pass
    return made


def _drop_one(
    made: list[Kernel], maker: int, users: dict[Buffer, list[int]], kept: Collection[Buffer]
) -> bool:
    """Stop storing an output that all who read it can compute from another one, if there is one."""
    kernel = made[maker]
    if not isinstance(kernel, RowKernel):
        return False
    for output in kernel.outputs:
        stored = kernel.operands[output.operand].view.buffer
        readers = [j for j in users[stored] if j != maker]
        source = _source(kernel, output)
        if source is None or stored in kept or not readers:
            continue
        others = [_reading(made[j], kernel, source, output) for j in readers]
        if None in others:
            continue
        made[maker] = _without(kernel, output)
        for j, reader in zip(readers, others, strict=True):
            assert reader is not None
            made[j] = reader
        users[kernel.operands[source.operand].view.buffer] += readers
        return True
    return False


def _source(kernel: RowKernel, output: Output) -> Output | None:
    """Return another output from which alone an output follows by a few cheap operations."""
    for other in kernel.outputs:
        if other is output or not _alike(kernel, other, output):
            continue
        between = _between(output.value, other.value)
        if between is not None and 0 < len(between) <= MOST_OPERATIONS:
            return other
    return None


def _alike(kernel: RowKernel, a: Output, b: Output) -> bool:
    """Tell whether two outputs lie alike and the first has no more bytes than the second."""
    x, y = kernel.operands[a.operand], kernel.operands[b.operand]
    if a.way is not None or b.way is not None:
        return False
    same = x.strides == y.strides and x.view.strides == y.view.strides
    return same and 0 not in x.view.strides and x.view.dtype.itemsize <= y.view.dtype.itemsize


def _between(value: Expr, source: Expr) -> list[Expr] | None:
    """Return the operations from a source to a value, or None if they take anything else."""
    found: dict[int, Expr] = {}
    stack = [value]
    while stack:
        expr = stack.pop()
        if expr is source or expr.kind == "const" or id(expr) in found:
            continue
        if expr.kind not in CHEAP or expr.kind == "load":
            return None
        found[id(expr)] = expr
        stack.extend(expr.args)
    return list(found.values())


def _reading(reader: Kernel, maker: RowKernel, source: Output, output: Output) -> RowKernel | None:
    """Return a kernel that reads the source and computes what was stored from that."""
    if not isinstance(reader, RowKernel):
        return None
    stored, other = (maker.operands[o.operand].view for o in (output, source))
    places = [i for i, o in enumerate(reader.operands) if o.view.buffer is stored.buffer]
    if any(reader.operands[i].view != stored for i in places):
        return None
    exprs = postorder([o.value for o in reader.outputs])
    if any(expr.kind == "load_at" and expr.data[0] in places for expr in exprs):
        return None
    operands = list(reader.operands)
    for i in places:
        operands[i] = Operand(other, operands[i].strides)
    changed = _Substitution(set(places), source.value, output.value)
    outputs = [replace(o, value=value) for o, value in changed.of(reader.outputs)]
    return replace(reader, operands=tuple(operands), outputs=tuple(outputs))


class _Substitution:
    """Puts an expression of a new load in the place of loads of some operands."""

    def __init__(self, operands: set[int], source: Expr, value: Expr) -> None:
        self.operands = operands
        self.source = source
        self.value = value
        self.builder = ScalarBuilder()

    def of(self, outputs: Sequence[Output]) -> list[tuple[Output, Expr]]:
        """Return the outputs with their new values."""
        known: dict[int, Expr] = {}
        for expr in postorder([output.value for output in outputs]):
            if expr.kind == "load" and expr.data in self.operands:
                known[id(expr)] = self._computed(expr.data)
            else:
                known[id(expr)] = self._copy(expr, known)
        return [(output, known[id(output.value)]) for output in outputs]

    def _computed(self, operand: int) -> Expr:
        known = {id(self.source): self.builder.load(operand, self.source.dtype)}
        for expr in postorder([self.value]):
            if id(expr) not in known and all(id(a) in known for a in expr.args):
                known[id(expr)] = self._copy(expr, known)
        return known[id(self.value)]

    def _copy(self, expr: Expr, known: dict[int, Expr]) -> Expr:
        args = tuple(known[id(a)] for a in expr.args)
        return self.builder.make(expr.kind, args, expr.dtype, expr.data)


def _without(kernel: RowKernel, output: Output) -> RowKernel:
    """Return a kernel that does not store an output."""
    gone = output.operand
    operands = [o for i, o in enumerate(kernel.operands) if i != gone]
    outputs = [
        replace(o, operand=o.operand - (o.operand > gone))
        for o in kernel.outputs
        if o is not output
    ]
    return replace(kernel, operands=tuple(operands), outputs=tuple(outputs))
