"""Kernels that are wrong in what only their kind has: columns, scatters, scans, calls."""

from __future__ import annotations

from dataclasses import replace

from weft.core.dtype import float64
from weft.lower.kernels import CallKernel, ColumnKernel, ScanKernel, ScatterKernel

from .expressions import other_dtype
from .loops import with_operand
from .registry import mutation


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


@mutation(CallKernel)
def call_with_too_many_attributes(kernel, rng, program):
    return replace(kernel, attrs=(*kernel.attrs, 1))


@mutation(CallKernel, when=lambda k: not k.op.variadic)
def call_with_too_many_operands(kernel, rng, program):
    return replace(kernel, inputs=(*kernel.inputs, *[None] * (len(kernel.op.inputs) + 1)))
