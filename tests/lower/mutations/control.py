"""Loops and branches that are wrong."""

from __future__ import annotations

from dataclasses import replace

from weft.core.dtype import bool_
from weft.core.scalar.builder import postorder
from weft.lower.kernels import (
    BranchKernel,
    GemmKernel,
    LoopKernel,
    LoopNest,
    ScatterKernel,
    TogetherKernel,
    walk,
)
from weft.lower.storage import View, buffers_behind, contiguous

from .loops import has_elements
from .registry import mutation, of_program, pick, with_kernel


@mutation(TogetherKernel)
def chain_alone(kernel, rng, program):
    return replace(kernel, chains=kernel.chains[:1])


@mutation(TogetherKernel)
def chain_of_no_kernels(kernel, rng, program):
    return replace(kernel, chains=(*kernel.chains, ()))


@mutation(TogetherKernel)
def chain_within_a_chain(kernel, rng, program):
    first, *others = kernel.chains
    return replace(kernel, chains=((replace(kernel, chains=(first, *others)),), first, *others))


@mutation(TogetherKernel)
def chain_that_needs_another(kernel, rng, program):
    """Let a kernel of a chain run beside the rest of it."""
    place = rng.integers(len(kernel.chains))
    chain = kernel.chains[place]
    if len(chain) < 2:
        return None
    at = rng.integers(1, len(chain))
    cut = (chain[:at], chain[at:], *(c for i, c in enumerate(kernel.chains) if i != place))
    return replace(kernel, chains=cut)


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
