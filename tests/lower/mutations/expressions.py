"""Kernels whose expressions or outputs are wrong."""

from __future__ import annotations

from dataclasses import replace

from weft.core.dtype import float64, int8, int64
from weft.core.scalar.builder import ScalarBuilder, postorder
from weft.lower.kernels import GemmKernel, RowKernel, ScatterKernel

from .registry import changed_at, mutation, of_program, pick


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
