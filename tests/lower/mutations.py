"""Programs with one broken rule each, made from sound ones.

A mutation takes a program and a random generator; it returns a broken program and the kernel that
a message should name (None: any), or None where there is nothing to break in that way.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from weft.core.dtype import bool_, float64, int8, int64
from weft.core.scalar.builder import ScalarBuilder, postorder
from weft.lower.kernels import (
    BranchKernel,
    CallKernel,
    ColumnKernel,
    GemmKernel,
    LoopKernel,
    LoopNest,
    Operand,
    Prologue,
    RowKernel,
    ScanKernel,
    ScatterKernel,
    walk,
)
from weft.lower.storage import Buffer, View, buffers_behind, contiguous

MUTATIONS = {}


def mutation(*kinds, when=lambda kernel: True):
    """Register a mutation of a kernel of some kinds: kernel, rng, program -> kernel or None."""

    def register(change):
        def mutate(program, rng):
            found = [k for k in walk(program.kernels) if isinstance(k, kinds) and when(k)]
            if not found:
                return None
            kernel = found[rng.integers(len(found))]
            made = change(kernel, rng, program)
            return made and (with_kernel(program, kernel, made), made)

        MUTATIONS[change.__name__] = mutate
        return change

    return register


def of_program(change):
    """Register a mutation of a whole program."""
    MUTATIONS[change.__name__] = change
    return change


def with_kernel(program, old, new):
    return replace(program, kernels=_replaced(program.kernels, old, new))


def _replaced(kernels, old, new):
    return tuple(new if k is old else _inside(k, old, new) for k in kernels)


def _inside(kernel, old, new):
    if isinstance(kernel, LoopKernel):
        test, body = (_replaced(part, old, new) for part in kernel.parts)
        return replace(kernel, test=test, body=body)
    if isinstance(kernel, BranchKernel):
        yes, no = (_replaced(part, old, new) for part in kernel.parts)
        return replace(kernel, yes=yes, no=no)
    return kernel


def pick(rng, items):
    items = list(items)
    return items[rng.integers(len(items))] if items else None


def changed_at(items, place, item):
    return (*items[:place], item, *items[place + 1 :])


# -- loops and operands ----------------------------------------------------------------------------


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


# -- expressions -----------------------------------------------------------------------------------


def with_expression(kernel, rng, wanted, change):
    """Return a row kernel in which one expression is another."""
    exprs = postorder([o.value for o in kernel.outputs])
    chosen = pick(rng, [e for e in exprs if wanted(e)])
    if chosen is None:
        return None
    builder, made = ScalarBuilder(), {}
    for expr in exprs:
        args = tuple(made[id(a)] for a in expr.args)
        parts = (expr.kind, args, expr.dtype, expr.data)
        made[id(expr)] = builder.make(*(change(builder, *parts) if expr is chosen else parts))
    outputs = tuple(replace(o, value=made[id(o.value)]) for o in kernel.outputs)
    return replace(kernel, outputs=outputs)


def expression(name, wanted, change):
    def mutate(kernel, rng, program):
        return with_expression(kernel, rng, wanted, change)

    mutate.__name__ = name
    mutation(RowKernel, GemmKernel, when=lambda k: k.outputs)(mutate)


def other_dtype(dtype):
    return float64 if dtype != float64 else int8


expression(
    "load_of_no_operand", lambda e: e.kind == "load", lambda b, k, a, dtype, data: (k, a, dtype, 99)
)
expression(
    "load_of_other_dtype",
    lambda e: e.kind == "load",
    lambda b, k, a, dtype, data: (k, a, other_dtype(dtype), data),
)
expression(
    "unknown_function", lambda e: len(e.args) == 1, lambda b, k, a, *rest: ("nonsense", a, *rest)
)
expression(
    "too_many_arguments",
    lambda e: e.kind in ("exp", "neg", "add", "mul", "select", "maximum", "tanh", "cast", "const"),
    lambda b, k, a, dtype, data: (k, (*a, b.constant(1, dtype), b.constant(2, dtype)), dtype, data),
)
expression(
    "operands_of_two_dtypes",
    lambda e: e.kind in ("add", "mul", "sub", "div", "maximum", "lt", "gt", "eq", "ne"),
    lambda b, k, a, dtype, data: (k, (a[0], b.constant(1, other_dtype(a[0].dtype))), dtype, data),
)
expression(
    "comparison_that_is_no_truth",
    lambda e: e.kind in ("lt", "gt", "eq", "ne", "le", "ge"),
    lambda b, k, a, dtype, data: (k, a, float64, data),
)
expression(
    "selection_by_a_number",
    lambda e: e.kind == "select",
    lambda b, k, a, dtype, data: (k, (b.constant(1, int64), *a[1:]), dtype, data),
)
expression(
    "reduction_of_no_known_way",
    lambda e: e.kind == "reduce",
    lambda b, k, a, dtype, data: (k, a, dtype, "average"),
)
expression(
    "iota_of_none", lambda e: e.kind == "iota", lambda b, k, a, dtype, data: (k, a, dtype, 50)
)
expression(
    "carry_outside_of_a_scan",
    lambda e: e.kind == "const",
    lambda b, k, a, dtype, data: ("carry", (), dtype, 0),
)


@mutation(RowKernel)
def output_to_no_operand(kernel, rng, program):
    place = rng.integers(len(kernel.outputs))
    wrong = replace(kernel.outputs[place], operand=len(kernel.operands) + int(rng.integers(3)))
    return replace(kernel, outputs=changed_at(kernel.outputs, place, wrong))


@mutation(RowKernel)
def two_outputs_to_one_operand(kernel, rng, program):
    return replace(kernel, outputs=(*kernel.outputs, kernel.outputs[0]))


@mutation(RowKernel)
def no_outputs(kernel, rng, program):
    return replace(kernel, outputs=())


@mutation(RowKernel)
def output_of_other_dtype(kernel, rng, program):
    place = rng.integers(len(kernel.outputs))
    output = kernel.outputs[place]
    value = output.value.builder.cast(output.value, other_dtype(output.value.dtype))
    return replace(kernel, outputs=changed_at(kernel.outputs, place, replace(output, value=value)))


@mutation(RowKernel, GemmKernel, when=lambda k: any(o.way for o in k.outputs))
def rows_combined_by_no_known_way(kernel, rng, program):
    outputs = tuple(replace(o, way="average") if o.way else o for o in kernel.outputs)
    return replace(kernel, outputs=outputs)


@mutation(RowKernel)
def block_of_no_rows(kernel, rng, program):
    return replace(kernel, block=0)


@mutation(RowKernel, ScatterKernel, when=lambda k: k.iotas)
def iotas_for_other_loops(kernel, rng, program):
    return replace(kernel, iotas=tuple(strides[:-1] for strides in kernel.iotas))


@mutation(RowKernel, ScatterKernel, when=lambda k: k.flag is not None)
def index_checked_for_nobody(kernel, rng, program):
    return replace(kernel, flag=None)


@of_program
def report_that_nobody_reads(program, rng):
    return program.flag and (replace(program, flag=None), None)


# -- kinds -----------------------------------------------------------------------------------------


@mutation(ColumnKernel)
def column_reduced_by_no_known_way(kernel, rng, program):
    return replace(kernel, way="average")


@mutation(ColumnKernel)
def column_with_the_last_loop_reduced(kernel, rng, program):
    return replace(kernel, reduced=(*kernel.reduced[:-1], True))


@mutation(ColumnKernel)
def column_result_that_moves(kernel, rng, program):
    place = kernel.output.operand
    strides = tuple(1 for _ in kernel.loops)
    return with_operand(kernel, place, strides=strides)


@mutation(ColumnKernel)
def column_to_no_operand(kernel, rng, program):
    return replace(kernel, output=replace(kernel.output, operand=7))


@mutation(ScatterKernel)
def scatter_by_no_known_way(kernel, rng, program):
    return replace(kernel, way="average")


@mutation(ScatterKernel)
def scatter_with_too_many_loops_apart(kernel, rng, program):
    return replace(kernel, apart=len(kernel.loops))


@mutation(ScatterKernel)
def scatter_to_no_integer(kernel, rng, program):
    return replace(kernel, offset=kernel.offset.builder.cast(kernel.offset, float64))


@mutation(ScatterKernel)
def scatter_of_other_dtype(kernel, rng, program):
    value = kernel.value
    return replace(kernel, value=value.builder.cast(value, other_dtype(value.dtype)))


@mutation(ScanKernel)
def scan_without_what_it_carries(kernel, rng, program):
    return replace(kernel, carried=()) if kernel.carried else None


@mutation(ScanKernel)
def scan_from_no_constant(kernel, rng, program):
    after = kernel.carried[0][1]
    return replace(kernel, carried=((after, after), *kernel.carried[1:]))


@mutation(ScanKernel)
def scan_of_other_dtype(kernel, rng, program):
    value = kernel.value
    return replace(kernel, value=value.builder.cast(value, other_dtype(value.dtype)))


@mutation(GemmKernel)
def product_of_other_sizes(kernel, rng, program):
    name = pick(rng, ("m", "n", "k"))
    return replace(kernel, **{name: getattr(kernel, name) + 1})


@mutation(GemmKernel)
def product_with_another_batch(kernel, rng, program):
    return replace(kernel, batch=(3, *kernel.batch))


@mutation(GemmKernel, when=lambda k: k.m > 1 and k.k > 1 and k.x.buffer.window is None)
def product_beyond_its_operand(kernel, rng, program):
    return replace(kernel, x=replace(kernel.x, offset=kernel.x.buffer.size))


@mutation(GemmKernel, when=lambda k: k.bias is not None)
def bias_of_other_size(kernel, rng, program):
    bias = kernel.bias
    return replace(kernel, bias=View(bias.buffer, (bias.shape[0] + 1,), (0,), bias.offset))


@mutation(GemmKernel, when=lambda k: k.extras and k.outputs)
def epilogue_without_its_operands(kernel, rng, program):
    used = [e.data for o in kernel.outputs for e in postorder([o.value]) if e.kind == "load"]
    used += [o.operand for o in kernel.outputs]
    return replace(kernel, extras=()) if max(used) > 0 else None


@mutation(GemmKernel, when=lambda k: k.extras)
def epilogue_of_other_shape(kernel, rng, program):
    place = rng.integers(len(kernel.extras))
    view = kernel.extras[place]
    wrong = View(view.buffer, (*view.shape, 1), (*view.strides, 0), view.offset)
    return replace(kernel, extras=changed_at(kernel.extras, place, wrong))


@mutation(GemmKernel)
def epilogue_in_the_memory_of_the_result(kernel, rng, program):
    return replace(kernel, extras=(*kernel.extras, kernel.out))


@mutation(GemmKernel)
def blocks_of_rows_for_nobody(kernel, rng, program):
    return replace(kernel, block=0 if kernel.block else 4)


@mutation(GemmKernel)
def scratch_that_is_no_areas(kernel, rng, program):
    return replace(kernel, scratch=kernel.out)


@mutation(GemmKernel, when=lambda k: k.scratch is not None)
def scratch_of_more_areas(kernel, rng, program):
    areas, size = kernel.scratch.shape
    return replace(kernel, scratch=replace(kernel.scratch, shape=(areas + 1, size)))


@mutation(GemmKernel)
def prologue_without_its_operands(kernel, rng, program):
    builder = ScalarBuilder()
    value = builder.load(0, kernel.x.dtype) + builder.load(1, kernel.x.dtype)
    return replace(kernel, x_from=Prologue(value))


@mutation(GemmKernel)
def prologue_of_other_dtype(kernel, rng, program):
    builder = ScalarBuilder()
    value = builder.cast(builder.load(0, kernel.y.dtype), other_dtype(kernel.out.dtype))
    return replace(kernel, y_from=Prologue(value))


@mutation(GemmKernel, when=lambda k: k.windows is not None)
def windows_of_other_columns(kernel, rng, program):
    columns = ((kernel.n + 1, 1),)
    return replace(kernel, windows=replace(kernel.windows, columns=columns))


@mutation(GemmKernel, when=lambda k: k.windows is not None)
def windows_by_no_integers(kernel, rng, program):
    offsets = View(kernel.out.buffer, kernel.y.shape, (0,) * len(kernel.y.shape))
    return replace(kernel, windows=replace(kernel.windows, offsets=offsets))


@mutation(CallKernel)
def call_with_too_many_attributes(kernel, rng, program):
    return replace(kernel, attrs=(*kernel.attrs, 1))


@mutation(CallKernel, when=lambda k: not k.op.variadic)
def call_with_too_many_operands(kernel, rng, program):
    return replace(kernel, inputs=(*kernel.inputs, *[None] * (len(kernel.op.inputs) + 1)))


# -- control flow ----------------------------------------------------------------------------------


@mutation(LoopKernel)
def loop_with_one_word(kernel, rng, program):
    return replace(kernel, half=kernel.index)


@mutation(LoopKernel)
def loop_with_no_end(kernel, rng, program):
    return replace(kernel, length=None, test=(), holds=None)


@mutation(LoopKernel, when=lambda k: k.length is not None)
def loop_of_negative_length(kernel, rng, program):
    return replace(kernel, length=-1)


@mutation(LoopKernel, when=lambda k: k.holds is not None)
def loop_without_its_test(kernel, rng, program):
    return replace(kernel, test=())


@mutation(LoopKernel, when=lambda k: k.stops is not None)
def loop_stopped_by_a_number(kernel, rng, program):
    return replace(kernel, stops=contiguous(kernel.index, ()))


def _moving(kernel):
    """Tell whether a view in the body moves with the index, one element of its buffer at least."""
    return any(
        view.buffer.window is not None
        and view.buffer.window.word is kernel.index
        and view.buffer.window.step
        and view.buffer.window.buffer.window is None
        and 0 not in view.shape
        and i in _reached(part)
        for part in kernel.body
        for i, view in enumerate(part.views)
    )


def _reached(kernel):
    if isinstance(kernel, LoopNest):
        return fixed_or_moving(kernel) if has_elements(kernel) else ()
    return range(3) if isinstance(kernel, GemmKernel) else ()


def fixed_or_moving(kernel):
    loaded = {e.data for e in postorder(kernel.roots) if e.kind == "load"}
    return loaded | (set() if isinstance(kernel, ScatterKernel) else kernel.written)


@of_program
def loop_longer_than_its_windows(program, rng):
    """Blame a kernel inside the loop."""
    loops = [k for k in walk(program.kernels) if isinstance(k, LoopKernel) and k.length]
    loop = pick(rng, [k for k in loops if _moving(k)])
    most = max(buffer.size for buffer in program.buffers if buffer.window is None)
    return loop and (with_kernel(program, loop, replace(loop, length=most + loop.length + 1)), None)


@mutation(BranchKernel)
def branch_by_a_number(kernel, rng, program):
    words = [b for b in program.buffers if b.dtype != bool_ and b.kind == "arena"]
    other = pick(rng, words)
    return other and replace(kernel, chosen=View(other, (), ()))


@mutation(BranchKernel, when=lambda k: any(buffers_behind(v.buffer)[0].size for v in k.results))
def branch_that_gives_nothing(kernel, rng, program):
    return replace(kernel, **{pick(rng, ("yes", "no")): ()})


# -- programs --------------------------------------------------------------------------------------


@of_program
def kernel_that_is_missing(program, rng):
    """Leave out the only kernel that writes something which is read later."""
    for i in rng.permutation(len(program.kernels)):
        kernel = program.kernels[i]
        if kernel.parts:
            continue
        others = [k for k in walk(program.kernels) if k is not kernel]
        made = {kernel.views[n].buffer for n in kernel.written} - {
            k.views[n].buffer for k in others for n in k.written
        }
        made = {b for b in made if b.kind == "arena" and b.size and b.window is None}
        read = {k.views[n].buffer for k in others for n in k.read}
        if made & read and not any(isinstance(k, LoopKernel) for k in others):
            kernels = (*program.kernels[:i], *program.kernels[i + 1 :])
            return (replace(program, kernels=kernels), None) if kernels else None
    return None


@of_program
def kernels_in_another_order(program, rng):
    """Let the last kernel that reads what another one makes run first."""
    made = set()
    for i, kernel in enumerate(program.kernels):
        read = {kernel.views[n].buffer for n in kernel.read}
        if any(b in made and b.kind == "arena" and b.size for b in read) and not kernel.parts:
            kernels = (kernel, *program.kernels[:i], *program.kernels[i + 1 :])
            return replace(program, kernels=kernels), kernel
        made |= {kernel.views[n].buffer for n in kernel.written}
    return None


@of_program
def buffers_in_another_order(program, rng):
    used = [b.number for k in program.kernels for b in (v.buffer for v in k.views)]
    if len(set(used)) < 2:
        return None
    a, b = rng.choice(sorted(set(used)), 2, replace=False)
    buffers = list(program.buffers)
    buffers[a], buffers[b] = buffers[b], buffers[a]
    return replace(program, buffers=tuple(buffers)), None


def with_buffer(program, old, **changes):
    """Return a program in which a buffer is another one everywhere."""
    buffers = {b: b for b in program.buffers}
    made = buffers[old] = replace(old, **changes)
    for b in program.buffers:
        w = b.window
        if w is not None and old in (w.buffer, w.word):
            moved = replace(w, buffer=buffers[w.buffer], word=buffers[w.word])
            buffers[b] = replace(b, window=moved)
    flag = program.flag
    return replace(
        program,
        kernels=tuple(k.within(buffers) for k in program.kernels),
        buffers=changed_at(tuple(buffers[b] for b in program.buffers), old.number, made),
        fetches=tuple(v.within(buffers) for v in program.fetches),
        commits=tuple((n, v.within(buffers)) for n, v in program.commits),
        flag=flag and flag.within(buffers),
    )


def _in_kernels(program, *kinds):
    touched = {v.buffer for k in program.kernels for v in k.views}
    return [b for b in program.buffers if b.kind in kinds and b in touched]


@of_program
def slot_of_nothing(program, rng):
    buffer = pick(rng, _in_kernels(program, "feed", "constant", "state"))
    return buffer and (with_buffer(program, buffer, slot=500), None)


@of_program
def slot_of_its_own_memory(program, rng):
    buffer = pick(rng, _in_kernels(program, "arena"))
    return buffer and (with_buffer(program, buffer, slot=0), None)


@of_program
def kind_of_no_meaning(program, rng):
    buffer = pick(rng, _in_kernels(program, "feed"))
    return buffer and (with_buffer(program, buffer, kind="elsewhere"), None)


@of_program
def feed_as_another_one(program, rng):
    feeds = _in_kernels(program, "feed")
    return (with_buffer(program, feeds[0], slot=feeds[1].slot), None) if feeds[1:] else None


@of_program
def buffer_of_negative_size(program, rng):
    buffer = pick(rng, [b for b in _in_kernels(program, "feed") if b.size])
    return buffer and (with_buffer(program, buffer, shape=(-1, *buffer.shape)), None)


@of_program
def buffer_too_small(program, rng):
    windows = {b.window.buffer for b in program.buffers if b.window is not None}
    found = [
        kernel.operands[i].view.buffer
        for kernel in program.kernels
        if isinstance(kernel, LoopNest) and has_elements(kernel)
        for i in fixed(kernel)
        if kernel.operands[i].view.buffer not in windows
    ]
    buffer = pick(rng, [b for b in found if b.size and b.kind != "state"])
    return buffer and (with_buffer(program, buffer, shape=(0,)), None)


@of_program
def window_with_no_loops_word(program, rng):
    windows = [b for b in program.buffers if b.window is not None]
    touched = {v.buffer for k in walk(program.kernels) for v in k.views}
    chosen = pick(rng, [b for b in windows if b in touched])
    if chosen is None:
        return None
    word = Buffer("arena", (), int64, "word", number=len(program.buffers))
    buffers = replace(program, buffers=(*program.buffers, word))
    return with_buffer(buffers, chosen, window=replace(chosen.window, word=word)), None


@of_program
def state_of_other_dtype(program, rng):
    buffer = pick(rng, _in_kernels(program, "state"))
    if buffer is None:
        return None
    slot = program.states[buffer.slot]
    wrong = replace(slot, dtype=other_dtype(slot.dtype))
    return replace(program, states=changed_at(program.states, buffer.slot, wrong)), None


@of_program
def state_of_other_shape(program, rng):
    buffer = pick(rng, _in_kernels(program, "state"))
    if buffer is None:
        return None
    slot = program.states[buffer.slot]
    wrong = replace(slot, shape=(*slot.shape, 2))
    return replace(program, states=changed_at(program.states, buffer.slot, wrong)), None


def _computed(program):
    written = {k.views[n].buffer for k in program.kernels for n in k.written}
    return [i for i, (_, view) in enumerate(program.commits) if view.buffer in written]


def with_commit(program, rng, change):
    place = pick(rng, _computed(program))
    if place is None:
        return None
    wrong = change(*program.commits[place])
    return replace(program, commits=changed_at(program.commits, place, wrong)), None


@of_program
def commit_of_no_state(program, rng):
    return with_commit(program, rng, lambda number, view: (len(program.states), view))


@of_program
def commit_of_other_shape(program, rng):
    return with_commit(
        program,
        rng,
        lambda number, view: (number, View(view.buffer, (*view.shape, 1), (*view.strides, 0))),
    )


@of_program
def two_commits_of_one_state(program, rng):
    place = pick(rng, _computed(program))
    return place is not None and (
        replace(program, commits=(*program.commits, program.commits[place])),
        None,
    )


@of_program
def fetch_beyond_its_memory(program, rng):
    written = {k.views[n].buffer for k in program.kernels for n in k.written}
    place = pick(
        rng,
        [i for i, v in enumerate(program.fetches) if v.buffer in written and 0 not in v.shape],
    )
    if place is None:
        return None
    view = program.fetches[place]
    wrong = replace(view, offset=view.buffer.size)
    return replace(program, fetches=changed_at(program.fetches, place, wrong)), None


def broken(program, name, seed):
    """Return a program with one broken rule and the kernel to blame, if it has such a one."""
    return MUTATIONS[name](program, np.random.default_rng(seed)) or None
