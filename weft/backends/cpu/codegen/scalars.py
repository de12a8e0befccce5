"""Write the value of a scalar expression, for one element or for a vector of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.dim import Dim
from ....core.dtype import float32
from ....core.errors import UnknownSizeError
from ....core.imports import deferred_imports
from ....core.scalar.builder import Expr
from .halves import half_bits, is_half, narrowed, widened
from .text import FunctionText
from .values import IRValue, bits_of, element_of, is_float, lanes_of, scalar_of, vector_of

Writer = Callable[..., IRValue]
_MOST_EXPONENT = 100  # of numbers that are normal, as are their inverses, in every format


def type_of(expr: Expr, lanes: int) -> str:
    """Return the LLVM type of an expression's value in so many lanes."""
    return vector_of(element_of(expr.dtype), lanes)


def write_constant(f: FunctionText, expr: Expr, lanes: int) -> IRValue:
    """Return the constant in all lanes."""
    return write_number(f, expr.dtype, expr.data, lanes)


def write_number(f: FunctionText, dtype: Any, number: float | Dim, lanes: int) -> IRValue:
    """Return a number of a dtype in all lanes."""
    if isinstance(number, Dim):
        return f.splat(_size_as(f, number, dtype), lanes)
    type = vector_of(element_of(dtype), lanes)
    return f.constant(type, half_bits(dtype, number) if is_half(dtype) else number)


def _size_as(f: FunctionText, size: Dim, dtype: Any) -> IRValue:
    """Return a size that only a run knows as a number of a dtype, rounded once."""
    element = element_of(dtype)
    if element == "i64":
        return f.size(size)
    if element not in ("float", "double"):
        raise UnknownSizeError(f"the size {size} is needed as {dtype}, which only numbers can be")
    return f.sitofp(f.size(size), element)


def write_operation(f: FunctionText, expr: Expr, args: list[IRValue]) -> IRValue:
    """Return the value of an operation on values that are there."""
    kind = expr.kind
    if kind == "cast":
        return write_cast(f, args[0], expr.args[0].dtype, expr.dtype)
    if kind == "bits":
        return f.bitcast(args[0], type_of(expr, lanes_of(args[0].type)))
    if kind == "select":
        return f.select(*args)
    wide = [
        widened(f, x, arg.dtype) if is_half(arg.dtype) else x
        for x, arg in zip(args, expr.args, strict=True)
    ]
    value = _write_arithmetic(f, expr, wide)
    return narrowed(f, value, expr.dtype) if is_half(expr.dtype) else value


def _write_arithmetic(f: FunctionText, expr: Expr, args: list[IRValue]) -> IRValue:
    kind, dtype = expr.kind, expr.args[0].dtype.kind
    if kind == "div" and _has_exact_inverse(expr.args[1]):
        return f.fmul(args[0], 1.0 / expr.args[1].data)
    return writer_of(kind, dtype)(f, *args)


def writer_of(kind: str, dtype: str = "f") -> Writer:
    """Return the writer of a function on dtypes of a kind: floats, integers or truth values."""
    writer = WRITERS.get(kind)
    if isinstance(writer, ByDType):
        writer = writer.on(dtype)
    return writer or mathematics(kind)


def write_values(
    f: FunctionText,
    order: Sequence[Expr],
    lanes: int,
    known: dict[int, IRValue],
    load: Callable[[Expr], IRValue],
) -> dict[int, IRValue]:
    """Return the values of expressions at one place by their id, arguments coming first.

    Those that are known are not written again; `load` writes the loads.
    """
    values = dict(known)
    for expr in order:
        if id(expr) in values:
            continue
        if expr.kind == "load":
            values[id(expr)] = load(expr)
        elif expr.kind == "const":
            values[id(expr)] = write_constant(f, expr, lanes)
        else:
            values[id(expr)] = write_operation(f, expr, [values[id(a)] for a in expr.args])
    return values


def _has_exact_inverse(expr: Expr) -> bool:
    """Tell whether dividing by an expression is multiplying by a number: by a power of two."""
    if expr.kind != "const" or expr.dtype.kind != "f" or isinstance(expr.data, Dim):
        return False
    mantissa, exponent = math.frexp(expr.data)
    return abs(mantissa) == 0.5 and abs(exponent) < _MOST_EXPONENT


def mathematics(kind: str) -> Writer:
    """Return the writer of a function by polynomials."""
    with deferred_imports:
        from .mathematics import FUNCTIONS  # noqa: PLC0415  (cached kernels do without it)

    found: Writer = FUNCTIONS[kind]
    return found


def write_cast(f: FunctionText, x: IRValue, source: Any, wanted: Any) -> IRValue:
    """Return a value converted between dtypes as NumPy converts it."""
    if source == wanted:
        return x
    if is_half(source):
        return write_cast(f, widened(f, x, source), float32, wanted)
    if is_half(wanted):
        return narrowed(f, _as_single(f, x, source), wanted)
    return _write_wide_cast(f, x, source, wanted)


def _write_wide_cast(f: FunctionText, x: IRValue, source: Any, wanted: Any) -> IRValue:
    element = element_of(wanted)
    if wanted.kind == "b":
        zero = f.constant(x.type, 0)
        return f.fcmp("une", x, zero) if source.kind == "f" else f.icmp("ne", x, zero)
    if source.kind == "b":
        return f.uitofp(x, element) if wanted.kind == "f" else f.zext(x, element)
    if source.kind == "f":
        if wanted.kind == "f":
            return f.float_cast(x, element)
        return f.fptosi(x, element) if wanted.kind == "i" else f.fptoui(x, element)
    if wanted.kind == "f":
        return f.sitofp(x, element) if source.kind == "i" else f.uitofp(x, element)
    return f.integer_cast(x, element, signed=source.kind == "i")


def _as_single(f: FunctionText, x: IRValue, source: Any) -> IRValue:
    """Return numbers as float32 from which rounding to 16 bits gives the same as from themselves.

    Integers that are too long for float32 round twice, as they do in NumPy.
    """
    if element_of(source) == "double":
        return f.rounded_to_odd(x)
    return write_cast(f, x, source, float32)


class ByDType(NamedTuple):
    """The writers of one function for floats, signed and unsigned integers, and truth values.

    Unsigned integers are written as signed ones, and truth values as integers of one bit, where
    nothing else is said; floats as mathematics.
    """

    floats: Writer | None
    signed: Writer
    unsigned: Writer | None = None
    truth: Writer | None = None

    def on(self, kind: str) -> Writer | None:
        """Return the writer for dtypes of a kind."""
        if kind == "f":
            return self.floats
        given = {"u": self.unsigned, "b": self.truth or self.unsigned}.get(kind)
        return given or self.signed


def _comparison(of_floats: str, signed: str, unsigned: str) -> ByDType:
    return ByDType(
        lambda f, x, y: f.fcmp(of_floats, x, y),
        lambda f, x, y: f.icmp(signed, x, y),
        lambda f, x, y: f.icmp(unsigned, x, y),
    )


def _integer_abs(f: FunctionText, x: IRValue) -> IRValue:
    return f.select(f.icmp("slt", x, 0), f.sub(f.constant(x.type, 0), x), x)


def _divided(
    f: FunctionText, x: IRValue, y: IRValue, signed: bool
) -> tuple[IRValue, IRValue, IRValue]:
    """Return y or a divisor that does no harm, the quotient cut towards zero, and the rest.

    A division by zero, and that of the least number by -1, stop the machine.
    """
    harmful = f.icmp("eq", y, 0)
    if signed:
        least = f.icmp("eq", x, -(2 ** (bits_of(x.type) - 1)))
        harmful = f.or_(harmful, f.and_(f.icmp("eq", y, -1), least))
    safe = f.select(harmful, 1, y)
    if signed:
        return safe, f.sdiv(x, safe), f.srem(x, safe)
    return safe, f.udiv(x, safe), f.urem(x, safe)


def _zero_by_zero(f: FunctionText, y: IRValue, result: IRValue) -> IRValue:
    return f.select(f.icmp("eq", y, 0), 0, result)


def _floor_divide(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    safe, quotient, rest = _divided(f, x, y, True)
    return _zero_by_zero(f, y, f.select(_crosses(f, rest, safe), f.sub(quotient, 1), quotient))


def _mod(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    safe, _, rest = _divided(f, x, y, True)
    return _zero_by_zero(f, y, f.select(_crosses(f, rest, safe), f.add(rest, safe), rest))


def _crosses(f: FunctionText, rest: IRValue, divisor: IRValue) -> IRValue:
    """Tell whether a rest and its divisor differ in sign: the floor lies one lower then."""
    return f.and_(f.icmp("ne", rest, 0), f.icmp("slt", f.xor(rest, divisor), 0))


def _unsigned_quotient(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    return _zero_by_zero(f, y, _divided(f, x, y, False)[1])


def _unsigned_rest(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    return _zero_by_zero(f, y, _divided(f, x, y, False)[2])


def _shift_left(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return x << y, 0 where y is no number of bits, as NumPy."""
    return f.select(f.icmp("ult", y, bits_of(x.type)), f.shl(x, y), 0)


def _shift_right(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    """Return x >> y, the sign where y is no number of bits, as NumPy."""
    most = bits_of(x.type) - 1
    return f.ashr(x, f.select(f.icmp("ult", y, most), y, most))


def _unsigned_shift_right(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    return f.select(f.icmp("ult", y, bits_of(x.type)), f.lshr(x, y), 0)


def _upper_product(f: FunctionText, x: IRValue, y: IRValue) -> IRValue:
    wide = f.mul(f.zext(x, "i128"), f.zext(y, "i128"))
    return f.trunc(f.lshr(wide, 64), "i64")


def _itself(f: FunctionText, x: IRValue) -> IRValue:
    return x


# The one writer of each function; those of mathematics stand in a package of their own.
WRITERS: dict[str, Writer | ByDType] = {
    "add": ByDType(
        lambda f, x, y: f.fadd(x, y),
        lambda f, x, y: f.add(x, y),
        truth=lambda f, x, y: f.or_(x, y),
    ),
    "sub": ByDType(lambda f, x, y: f.fsub(x, y), lambda f, x, y: f.sub(x, y)),
    "mul": ByDType(
        lambda f, x, y: f.fmul(x, y),
        lambda f, x, y: f.mul(x, y),
        truth=lambda f, x, y: f.and_(x, y),
    ),
    "div": lambda f, x, y: f.fdiv(x, y),
    "neg": ByDType(lambda f, x: f.fneg(x), lambda f, x: f.sub(f.constant(x.type, 0), x)),
    "abs": ByDType(lambda f, x: f.fabs(x), _integer_abs, _itself),
    "square": ByDType(lambda f, x: f.fmul(x, x), lambda f, x: f.mul(x, x), truth=_itself),
    "reciprocal": lambda f, x: f.fdiv(1.0, x),
    "sqrt": lambda f, x: f.sqrt(x),
    "rsqrt": lambda f, x: f.fdiv(1.0, f.sqrt(x)),
    "maximum": ByDType(
        lambda f, x, y: f.maximum(x, y),
        lambda f, x, y: f.maximum(x, y),
        lambda f, x, y: f.unsigned_maximum(x, y),
        lambda f, x, y: f.or_(x, y),
    ),
    "minimum": ByDType(
        lambda f, x, y: f.minimum(x, y),
        lambda f, x, y: f.minimum(x, y),
        lambda f, x, y: f.unsigned_minimum(x, y),
        lambda f, x, y: f.and_(x, y),
    ),
    "copysign": lambda f, x, y: f.copysign(x, y),
    "floor_divide": ByDType(None, _floor_divide, _unsigned_quotient),
    "mod": ByDType(None, _mod, _unsigned_rest),
    "fmod": ByDType(
        None, lambda f, x, y: _zero_by_zero(f, y, _divided(f, x, y, True)[2]), _unsigned_rest
    ),
    "quotient": lambda f, x, y: f.udiv(x, y),
    "remainder": lambda f, x, y: f.urem(x, y),
    "upper_product": _upper_product,
    "and": lambda f, x, y: f.and_(x, y),
    "or": lambda f, x, y: f.or_(x, y),
    "xor": lambda f, x, y: f.xor(x, y),
    "not": lambda f, x: f.not_(x),
    "shift_left": _shift_left,
    "shift_right": ByDType(None, _shift_right, _unsigned_shift_right),
    "eq": _comparison("oeq", "eq", "eq"),
    "ne": _comparison("une", "ne", "ne"),
    "lt": _comparison("olt", "slt", "ult"),
    "le": _comparison("ole", "sle", "ule"),
    "gt": _comparison("ogt", "sgt", "ugt"),
    "ge": _comparison("oge", "sge", "uge"),
}


def broadcast_to_lanes(f: FunctionText, x: IRValue, lanes: int) -> IRValue:
    """Return a scalar in all lanes."""
    return x if lanes == 1 or lanes_of(x.type) == lanes else f.splat(x, lanes)


def identity_of(way: str, dtype: Any) -> float:
    """Return the value that changes nothing in a reduction."""
    if way in ("sum", "any"):
        return 0
    if way in ("prod", "all"):
        return 1
    if dtype.kind == "f" or is_half(dtype):
        return -float("inf") if way == "max" else float("inf")
    if dtype.kind == "b":
        return 0 if way == "max" else 1
    limits = np.iinfo(dtype)
    return limits.min if way == "max" else limits.max


def combine(f: FunctionText, way: str, dtype: Any, a: IRValue, b: IRValue) -> IRValue:
    """Return two partial results of a reduction as one."""
    if is_half(dtype):
        wide = combine(f, way, float32, widened(f, a, dtype), widened(f, b, dtype))
        return narrowed(f, wide, dtype)
    if way == "sum":
        return f.fadd(a, b) if is_float(a.type) else f.add(a, b)
    if way == "prod":
        return f.fmul(a, b) if is_float(a.type) else f.mul(a, b)
    if scalar_of(a.type) == "i1":
        return f.or_(a, b) if way == "max" else f.and_(a, b)
    if dtype.kind == "u":
        return f.unsigned_maximum(a, b) if way == "max" else f.unsigned_minimum(a, b)
    return f.maximum(a, b) if way == "max" else f.minimum(a, b)
