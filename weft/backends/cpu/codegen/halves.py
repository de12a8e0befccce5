"""16-bit floats: integers of their bits, until they are converted to float32 to be computed with.

LLVM has types for them, but calls a library for what a machine cannot do with them, which is
nearly everything. Whatever only moves, chooses or stores them needs no such type.

    float16    sign, 5 bits of exponent, 10 of mantissa (IEEE 754)
    bfloat16   the upper half of a float32
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .instructions import Instructions
from .values import IRValue, lanes_of, vector_of

_SIGN, _INFINITE = 0x8000, 0x7C00  # of float16
_MORE_MANTISSA = 13  # bits that float32 has beyond float16
_BIAS = 127 - 15  # of float32's exponent beyond float16's
_INFINITY = 0x7F800000  # of float32
_QUIET = 0x400000


def is_half(dtype: Any) -> bool:
    """Whether a dtype is a float of 16 bits."""
    return dtype.name in ("float16", "bfloat16")


def half_bits(dtype: Any, number: float) -> int:
    """Return the bits of the number of a 16-bit float nearest to another."""
    if dtype.name == "float16":
        with np.errstate(over="ignore"):
            return int(np.float16(number).view(np.int16))
    with np.errstate(over="ignore"):
        bits = int(np.float32(number).view(np.uint32))
    if np.isnan(number):
        return bits >> 16 | _QUIET >> 16
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16


def widened(f: Instructions, x: IRValue, dtype: Any) -> IRValue:
    """Return the float32 numbers that bits of a 16-bit float stand for; exact."""
    if dtype.name == "bfloat16":
        return f.as_float(f.shl(f.zext(x, "i32"), 16))
    if f.target.has_half:
        return f.fpext(f.bitcast(x, vector_of("half", lanes_of(x.type))), "float")
    return _float_of_half(f, f.zext(x, "i32"))


def narrowed(f: Instructions, x: IRValue, dtype: Any) -> IRValue:
    """Return the bits of the 16-bit floats nearest to float32 numbers, the even ones of two."""
    if dtype.name == "bfloat16":
        return _upper_half(f, x)
    if f.target.has_half:
        half = f.fptrunc(x, "half")
        return f.bitcast(half, vector_of("i16", lanes_of(x.type)))
    return _half_of_float(f, f.as_integer(x))


def _upper_half(f: Instructions, x: IRValue) -> IRValue:
    """Return the upper bits of float32 numbers, rounded by an addition to all of them."""
    bits = f.as_integer(x)
    odd = f.and_(f.lshr(bits, 16), 1)
    rounded = f.add(bits, f.add(odd, 0x7FFF))
    upper = f.select(f.fcmp("uno", x, x), f.or_(bits, _QUIET), rounded)
    return f.trunc(f.lshr(upper, 16), "i16")


def _float_of_half(f: Instructions, bits: IRValue) -> IRValue:
    """Return float16 numbers by moving mantissa and exponent to their places.

    There the exponent is too small by the difference of the biases: a multiplication sets it
    right, and makes numbers that were subnormal normal.
    """
    moved = f.shl(f.and_(bits, _SIGN - 1), _MORE_MANTISSA)
    size = f.as_integer(f.fmul(f.as_float(moved), 2.0**_BIAS))
    infinite = f.icmp("uge", moved, _INFINITE << _MORE_MANTISSA)
    size = f.select(infinite, f.or_(moved, _INFINITY), size)
    return f.as_float(f.or_(size, f.shl(f.and_(bits, _SIGN), 16)))


def _half_of_float(f: Instructions, bits: IRValue) -> IRValue:
    """Return the bits of float16 numbers, by the three ranges of the result."""
    size = f.and_(bits, 0x7FFFFFFF)
    # The last bit that stays decides where the middle between two numbers goes.
    odd = f.and_(f.lshr(size, _MORE_MANTISSA), 1)
    half_unit = (1 << (_MORE_MANTISSA - 1)) - 1
    rounded = f.add(f.sub(size, (_BIAS << 23) - half_unit), odd)
    result = f.lshr(rounded, _MORE_MANTISSA)
    # Added to 0.5, whose last bit is worth the least float16, a small number is rounded to it.
    sum = f.as_integer(f.fadd(f.as_float(size), 0.5))
    tiny = f.sub(sum, int(np.float32(0.5).view(np.int32)))
    result = f.select(f.icmp("ult", size, _BIAS + 1 << 23), tiny, result)
    nan = f.or_(f.and_(f.lshr(size, _MORE_MANTISSA), 0x3FF), _INFINITE | 0x200)
    beyond = f.select(f.icmp("ugt", size, _INFINITY), nan, f.constant(size.type, _INFINITE))
    result = f.select(f.icmp("uge", size, _BIAS + 31 << 23), beyond, result)
    return f.trunc(f.or_(result, f.and_(f.lshr(bits, 16), _SIGN)), "i16")
