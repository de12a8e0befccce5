"""Programs that are wrong as a whole: in their order, buffers, fetches and commits."""

from __future__ import annotations

from dataclasses import replace

from weft.core.dtype import int64
from weft.lower.kernels import LoopKernel, LoopNest, walk
from weft.lower.storage import Buffer, View

from .expressions import other_dtype
from .loops import fixed, has_elements
from .registry import changed_at, of_program, pick


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
