"""Kernels whose loops, operands or origins are wrong."""

from __future__ import annotations

from dataclasses import replace

from weft.core.scalar.builder import postorder
from weft.lower.kernels import CallKernel, GemmKernel, LoopNest, Operand, ScatterKernel

from .registry import changed_at, mutation, pick


def has_elements(kernel):
    return 0 not in kernel.loops


def fixed(kernel):
    """Return the operands whose elements the loops alone find, of buffers that do not move."""
    loaded = {e.data for e in postorder(kernel.roots) if e.kind == "load"}
    if not isinstance(kernel, ScatterKernel):
        loaded |= kernel.written
    return [i for i in sorted(loaded) if kernel.operands[i].view.buffer.window is None]


def with_operand(kernel, place, **changes):
    operand = kernel.operands[place]
    strides = changes.pop("strides", operand.strides)
    made = Operand(replace(operand.view, **changes), strides)
    return replace(kernel, operands=changed_at(kernel.operands, place, made))


@mutation(LoopNest, when=has_elements)
def offset_behind_the_buffer(kernel, rng, program):
    place = pick(rng, fixed(kernel))
    return place is not None and with_operand(
        kernel, place, offset=kernel.operands[place].view.buffer.size
    )


@mutation(LoopNest, when=has_elements)
def offset_before_the_buffer(kernel, rng, program):
    place = pick(rng, fixed(kernel))
    if place is None:
        return None
    low = sum(min(0, (n - 1) * s) for n, s in pairs(kernel, place))
    return with_operand(kernel, place, offset=-low - 1)


def pairs(kernel, place):
    return zip(kernel.loops, kernel.operands[place].strides, strict=True)


@mutation(LoopNest, when=has_elements)
def stride_too_long(kernel, rng, program):
    axis = pick(rng, [a for a, n in enumerate(kernel.loops) if n > 1])
    place = pick(rng, fixed(kernel))
    if axis is None or place is None:
        return None
    operand = kernel.operands[place]
    strides = changed_at(operand.strides, axis, operand.view.buffer.size + 1)
    return with_operand(kernel, place, strides=strides)


@mutation(LoopNest)
def strides_for_other_loops(kernel, rng, program):
    place = rng.integers(len(kernel.operands))
    strides = kernel.operands[place].strides
    return with_operand(kernel, place, strides=pick(rng, ((*strides, 1), strides[:-1])))


@mutation(LoopNest)
def negative_loop(kernel, rng, program):
    return replace(kernel, loops=changed_at(kernel.loops, rng.integers(len(kernel.loops)), -1))


@mutation(LoopNest)
def loop_of_no_integer(kernel, rng, program):
    return replace(kernel, loops=changed_at(kernel.loops, rng.integers(len(kernel.loops)), 2.5))


@mutation(LoopNest)
def no_loops(kernel, rng, program):
    return replace(kernel, loops=())


@mutation(LoopNest, when=has_elements)
def loop_too_long(kernel, rng, program):
    strides = [kernel.operands[i].strides for i in fixed(kernel)]
    axis = pick(rng, [a for a in range(len(kernel.loops)) if any(s[a] for s in strides)])
    if axis is None:
        return None
    most = max(kernel.operands[i].view.buffer.size for i in fixed(kernel))
    return replace(kernel, loops=changed_at(kernel.loops, axis, most + kernel.loops[axis] + 1))


@mutation(LoopNest, GemmKernel, CallKernel)
def foreign_buffer(kernel, rng, program):
    view = pick(rng, kernel.views)
    buffers = {b: b for b in program.buffers}
    return view and kernel.within(buffers | {view.buffer: replace(view.buffer)})


@mutation(LoopNest, GemmKernel, CallKernel, when=lambda k: k.written)
def writes_what_is_not_its_own(kernel, rng, program):
    given = [b for b in program.buffers if b.kind in ("feed", "constant", "state")]
    target = kernel.views[pick(rng, kernel.written)].buffer
    fits = [b for b in given if b.dtype == target.dtype and b.size >= target.size]
    wrong = pick(rng, fits)
    buffers = {b: b for b in program.buffers}
    return wrong and kernel.within(buffers | {target: wrong})


@mutation(LoopNest, GemmKernel, CallKernel)
def origins_of_other_programs(kernel, rng, program):
    return replace(kernel, origins=(*kernel.origins, int(pick(rng, (-1, 10**6)))))
