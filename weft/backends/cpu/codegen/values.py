"""Types and values of LLVM IR as text.

A type is its LLVM spelling (`"float"`, `"<8 x float>"`, `"i64"`, `"ptr"`). A value is the text of
an operand, a str that also knows its type, so that instructions need no type arguments.
"""

from __future__ import annotations

import math
import re
import struct
from functools import cache
from typing import Any

import numpy as np
from llvmlite.binding import llvm_version_info

_ELEMENTS = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "i16",
    "bfloat16": "i16",
    "float32": "float",
    "float64": "double",
}
_FLOAT_BITS = {"half": 16, "float": 32, "double": 64}
_VECTOR = re.compile(r"<(\d+) x (\w+)>")
_POINTER_BITS = 64
HAS_SPLAT = llvm_version_info[0] >= 20  # whether LLVM reads constants of one number for all lanes
_SINGLE, _DOUBLE, _WORD = (struct.Struct(f"<{letter}") for letter in "fdQ")


class IRValue(str):
    """The text of an operand, with its LLVM type in `type`."""

    __slots__ = ("type",)
    type: str

    def __new__(cls, text: str, type: str) -> IRValue:
        """Make a value from the text of an operand and the text of its type."""
        value = super().__new__(cls, text)
        value.type = type
        return value

    @property
    def typed(self) -> str:
        """The operand with its type before it: `float %x`."""
        return f"{self.type} {self}"


@cache
def element_of(dtype: Any) -> str:
    """Return the LLVM type of one element of a NumPy dtype.

    bool is `i1` (in memory, a byte); floats of 16 bits are the integers of their bits, see halves.
    """
    name = np.dtype(dtype).name
    if name not in _ELEMENTS:
        raise TypeError(
            f"no machine type for dtype {name}; it can be one of {', '.join(_ELEMENTS)}"
        )
    return _ELEMENTS[name]


def vector_of(element: str, lanes: int) -> str:
    """Return the type of `lanes` elements: a vector, or the plain scalar for one lane.

    >>> vector_of("float", 8), vector_of("float", 1)
    ('<8 x float>', 'float')
    """
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def lanes_of(type: str) -> int:
    """Return the number of elements of a type: 1 for scalars."""
    found = _VECTOR.fullmatch(type)
    return int(found[1]) if found else 1


@cache
def scalar_of(type: str) -> str:
    """Return the type of one element."""
    found = _VECTOR.fullmatch(type)
    return found[2] if found else type


def with_element(type: str, element: str) -> str:
    """Return a type of as many lanes as `type`, of another element."""
    return vector_of(element, lanes_of(type))


def is_float(type: str) -> bool:
    """Whether the elements of a type are floating-point numbers."""
    return scalar_of(type) in _FLOAT_BITS


def is_constant(x: IRValue) -> bool:
    """Whether a value is known while text is written."""
    return not x.startswith("%")


@cache
def bits_of(type: str) -> int:
    """Return the width of one element in bits."""
    element = scalar_of(type)
    if element == "ptr":
        return _POINTER_BITS
    return _FLOAT_BITS[element] if element in _FLOAT_BITS else int(element[1:])


@cache
def bytes_of(type: str) -> int:
    """Return the size of one element in memory; a bool is a byte."""
    return (bits_of(type) + 7) // 8


@cache
def suffix_of(type: str) -> str:
    """Return a type as it is spelled in the names of intrinsics: `<8 x float>` is `v8f32`."""
    element, lanes = scalar_of(type), lanes_of(type)
    short = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
    name = short.get(element, element)
    return name if lanes == 1 else f"v{lanes}{name}"


def constant(type: str, number: float) -> IRValue:
    """Return a number as a constant of a type, the same in every lane.

    >>> constant("float", 0.5), constant("i64", 3)
    ('0x3FE0000000000000', '3')
    """
    element, lanes = scalar_of(type), lanes_of(type)
    text = _literal(element, number)
    if lanes == 1:
        return IRValue(text, type)
    if HAS_SPLAT:
        return IRValue(f"splat ({element} {text})", type)
    return IRValue("<" + ", ".join([f"{element} {text}"] * lanes) + ">", type)


def constants(type: str, numbers: list[float]) -> IRValue:
    """Return a vector constant with a number for each lane."""
    element = scalar_of(type)
    texts = [_literal(element, number) for number in numbers]
    if len(texts) != lanes_of(type):
        raise ValueError(f"a constant of type {type} got {len(texts)} numbers")
    if lanes_of(type) == 1:
        return IRValue(texts[0], type)
    return IRValue("<" + ", ".join(f"{element} {text}" for text in texts) + ">", type)


def _literal(element: str, number: float) -> str:
    if element == "i1":
        return "true" if number else "false"
    if element not in _FLOAT_BITS:
        return str(int(number))
    return _FLOAT_LITERALS[element](number)


def _float(number: float) -> str:
    """Spell a float32 as LLVM wants it: as the double of equal value."""
    try:
        return _double(_SINGLE.unpack(_SINGLE.pack(number))[0])
    except OverflowError:  # it rounds to infinity
        return _double(math.copysign(math.inf, number))


def _double(number: float) -> str:
    return f"0x{_WORD.unpack(_DOUBLE.pack(number))[0]:016X}"


_FLOAT_LITERALS = {"float": _float, "double": _double}
