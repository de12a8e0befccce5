"""Write the value of a scalar expression: by the formulas of machine code, spelled in C."""

from __future__ import annotations

from typing import Any

from ...core.scalar.builder import Expr
from ..cpu.codegen.scalars import (
    combine,
    identity_of,
    write_constant,
    write_number,
    write_operation,
)
from ..cpu.codegen.values import IRValue, element_of
from .function import C_TYPES, CFunction

__all__ = ["c_type", "combined", "neutral", "stored_type", "write_scalar"]


def c_type(dtype: Any) -> str:
    """Return the C type of a value of a dtype, as it is computed with."""
    return C_TYPES[element_of(dtype)]


def stored_type(dtype: Any) -> str:
    """Return the C type of an element in memory: a truth value is a byte."""
    return "u8" if dtype.kind == "b" else c_type(dtype)


def write_scalar(f: CFunction, expr: Expr, args: list[IRValue]) -> IRValue:
    """Return the value of an operation on values that are there."""
    writer: Any = f  # it has the instructions that formulas use
    if expr.kind == "const":
        return write_constant(writer, expr, 1)
    if expr.kind == "upper_product":
        return f.define("i64", f"UPPER({args[0]}, {args[1]})")
    return write_operation(writer, expr, args)


def combined(f: CFunction, way: str, dtype: Any, a: IRValue, b: IRValue) -> IRValue:
    """Return two partial results of a reduction as one."""
    writer: Any = f
    return combine(writer, way, dtype, a, b)


def neutral(f: CFunction, way: str, dtype: Any) -> IRValue:
    """Return the value that changes nothing in a reduction."""
    writer: Any = f
    return write_number(writer, dtype, identity_of(way, dtype), 1)
