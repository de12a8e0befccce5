"""Products that are wrong: in sizes, epilogues, prologues, scratch or windows."""

from __future__ import annotations

from dataclasses import replace

from weft.core.scalar.builder import ScalarBuilder, postorder
from weft.lower.kernels import GemmKernel, Prologue
from weft.lower.storage import View

from .expressions import other_dtype
from .registry import changed_at, mutation, pick


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
