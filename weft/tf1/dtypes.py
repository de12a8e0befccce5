"""TensorFlow's element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dtype import as_dtype as weft_dtype

__all__ = [
    "DType",
    "as_dtype",
    "bfloat16",
    "bool",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int8",
    "int16",
    "int32",
    "int64",
    "string",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]


class DType:
    """An element type: `tf.float32`; equal to NumPy's type of the same name, and to its name."""

    __slots__ = ("_numpy", "name")

    def __init__(self, name: str, numpy: Any = None) -> None:
        self.name = name
        self._numpy = numpy

    @property
    def as_numpy_dtype(self) -> Any:
        """Return the class of NumPy's scalars of this type."""
        return object if self._numpy is None else self._numpy.type

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return NumPy's type: NumPy itself asks for it by this name."""
        return np.dtype(object) if self._numpy is None else self._numpy

    @property
    def base_dtype(self) -> DType:
        """Return the type without the mark of a reference."""
        return self

    @property
    def real_dtype(self) -> DType:
        """Return the type of real parts."""
        return self

    @property
    def is_floating(self) -> Any:
        """Tell whether it is a floating-point type."""
        return self.name in _FLOATS

    @property
    def is_integer(self) -> Any:
        """Tell whether it is an integer type."""
        return self._numpy is not None and self._numpy.kind in "iu"

    @property
    def is_unsigned(self) -> Any:
        """Tell whether it is an integer type without sign."""
        return self._numpy is not None and self._numpy.kind == "u"

    @property
    def is_bool(self) -> Any:
        """Tell whether it is the type of truth values."""
        return self.name == "bool"

    @property
    def is_complex(self) -> Any:
        """Return False: complex numbers are not served."""
        return False

    @property
    def size(self) -> int:
        """Return the bytes of an element."""
        return 1 if self._numpy is None else int(self._numpy.itemsize)

    @property
    def min(self) -> Any:
        """Return the least number."""
        return _limits(self).min

    @property
    def max(self) -> Any:
        """Return the greatest number."""
        return _limits(self).max

    @property
    def as_datatype_enum(self) -> int:
        """Return the number of the type in TensorFlow's files."""
        return _ENUM[self.name]

    def is_compatible_with(self, other: Any) -> Any:
        """Tell whether values of the other type are of this one."""
        return self == as_dtype(other)

    def __eq__(self, other: object) -> Any:
        if other is None:
            return False
        try:
            return self.name == as_dtype(other).name
        except TypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"tf.{self.name}"

    def __str__(self) -> str:
        return f"<dtype: {self.name!r}>"


def _limits(dtype: DType) -> Any:
    if dtype._numpy is None or dtype._numpy.kind == "b":
        raise TypeError(f"Cannot find minimum value of {dtype}.")
    return (np.iinfo if dtype.is_integer else np.finfo)(dtype._numpy)


_ENUM = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
_OTHER_NAMES: dict[Any, str] = {
    "float": "float32",
    float: "float32",
    "double": "float64",
    "half": "float16",
}
_FLOATS = ("float16", "float32", "float64", "bfloat16")
_BY_NAME = {
    name: DType(name, None if name == "string" else np.dtype(weft_dtype(name))) for name in _ENUM
}

float16, float32, float64 = (_BY_NAME[f"float{n}"] for n in (16, 32, 64))
bfloat16 = _BY_NAME["bfloat16"]
half, double = float16, float64
int8, int16, int32, int64 = (_BY_NAME[f"int{n}"] for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (_BY_NAME[f"uint{n}"] for n in (8, 16, 32, 64))
bool = _BY_NAME["bool"]  # TensorFlow's name; Python's own is not used in this file
string = _BY_NAME["string"]


def as_dtype(given: Any) -> DType:
    """Return the element type that is meant: a DType, a type of NumPy's or Python's, or a name."""
    if isinstance(given, DType):
        return given
    if isinstance(given, (str, type)) and given in _OTHER_NAMES:
        return _BY_NAME[_OTHER_NAMES[given]]
    if isinstance(given, str) and given.removesuffix("_ref") in _BY_NAME:
        return _BY_NAME[given.removesuffix("_ref")]
    for number, name in ((n, k) for k, n in _ENUM.items()):
        if given.__class__ is int and given == number:
            return _BY_NAME[name]
    try:
        kind = np.dtype(given)
    except TypeError:
        raise TypeError(f"Cannot convert value {given!r:.60} to a TensorFlow DType.") from None
    if kind.kind in "OSU":
        return string
    if kind.name not in _BY_NAME:
        raise TypeError(f"Cannot convert value {given!r:.60} to a TensorFlow DType.")
    return _BY_NAME[kind.name]
