"""Element types: NumPy dtypes under Weft's names, and the promotion rule.

Weft uses NumPy's dtype objects as they are: `x.dtype == np.float32` and `np.zeros(3, wf.float32)`
simply work. Promotion is the array API standard's, completed where it is silent the way
deep-learning users expect: an integer meeting a float takes the float's dtype (NumPy would widen to
float64), bool meets anything, float16 with bfloat16 gives float32, and Python scalars are weak.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from .config import config
from .errors import ArgumentTypeError, DTypeError, MissingDependencyError

DType = np.dtype[Any]
Array = np.ndarray[Any, Any]

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))

_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8, uint16, uint32, uint64)
_FLOATS = (float16, float32, float64)
_NATIVE = frozenset((bool_, *_SIGNED, *_UNSIGNED, *_FLOATS))
_PYTHON = {bool: bool_, int: int64}


def bfloat16() -> DType:
    """Return the bfloat16 dtype, provided by the optional package ml_dtypes."""
    try:
        import ml_dtypes  # noqa: PLC0415  (optional: needed by nothing else)
    except ImportError:
        raise MissingDependencyError(
            'bfloat16 needs the package ml_dtypes: pip install "weft[bfloat16]"'
        ) from None
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    return dtype


def as_dtype(spec: Any) -> DType:
    """Return the dtype named by a dtype, a string, a NumPy scalar type or a Python type."""
    if spec is float:
        return default_float()
    if isinstance(spec, type) and spec in _PYTHON:
        return _PYTHON[spec]
    if isinstance(spec, str) and spec == "bfloat16":
        return bfloat16()
    try:
        if spec is None:  # which NumPy would take for float64
            raise TypeError
        return check_dtype(np.dtype(spec))
    except (TypeError, ValueError, DeprecationWarning) as error:
        if isinstance(error, DTypeError):
            raise
        raise ArgumentTypeError(
            f"expected a dtype such as wf.float32 or 'int64'. Received: {spec!r}"
        ) from None


def is_dtype(spec: Any) -> bool:
    """Tell whether an argument is a dtype, or a type or name of one, rather than something else."""
    if isinstance(spec, str):
        return spec == "bfloat16" or any(spec == dtype.name for dtype in _NATIVE)
    if isinstance(spec, type):
        return spec is float or spec in _PYTHON or issubclass(spec, np.generic)
    return isinstance(spec, np.dtype) or hasattr(spec, "stands_for_dtype")


def check_dtype(dtype: DType) -> DType:
    """Return the dtype if Weft supports it; raise otherwise."""
    if dtype in _NATIVE or dtype.name == "bfloat16":
        return dtype
    if not dtype.isnative:
        raise DTypeError(
            f"dtype {dtype} has the byte order of another machine; copy the data with "
            "wf.tensor(data), or convert it with array.astype(array.dtype.newbyteorder('='))"
        )
    raise DTypeError(
        f"dtype {dtype} is not supported; use bool, an integer, or a float of 16, 32 or 64 bits"
    )


def default_float() -> DType:
    """Return the dtype that Python floats become."""
    return np.dtype(config.default_float)


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype that Python floats become."""
    dtype = as_dtype(dtype)
    if not is_float(dtype):
        raise DTypeError(f"the default dtype must be a float. Received: {dtype}")
    config.default_float = dtype.name


def is_float(dtype: DType) -> bool:
    """Tell whether a dtype is a floating-point type (bfloat16 included)."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name == "bfloat16")


def is_half(dtype: DType) -> bool:
    """Tell whether a dtype is a float of 16 bits, which is too narrow to compute in."""
    return dtype.itemsize == 2 and is_float(dtype)


def printable(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that NumPy prints as it prints its own: bfloat16 as float32."""
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def float_limits(dtype: DType) -> Any:
    """Return what np.finfo says of a float dtype; bfloat16, which it does not know, included."""
    if dtype.kind == "f":
        return np.finfo(dtype)
    import ml_dtypes  # noqa: PLC0415  (optional; whoever has such a dtype has it)

    limits: Any = ml_dtypes.finfo
    return limits(dtype)


def is_integer(dtype: DType) -> bool:
    """Tell whether a dtype is a signed or unsigned integer type (bool is not)."""
    return dtype.kind in "iu"


@cache
def promote(a: DType, b: DType) -> DType:
    """Return the dtype in which values of two dtypes are computed together."""
    if b in (a, bool_):
        return a
    if a == bool_:
        return b
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if is_float(a):
        return _promote_floats(a, b)
    result = np.promote_types(a, b)
    if result.kind == "f":  # uint64 with a signed integer has no common integer type
        raise DTypeError(f"{a} and {b} have no common integer dtype; cast one of them first")
    return result


def _promote_floats(a: DType, b: DType) -> DType:
    if a.itemsize == b.itemsize:  # float16 with bfloat16: neither holds the other
        return float32
    return a if a.itemsize > b.itemsize else b


def to_float(dtype: DType) -> DType:
    """Return the dtype itself if floating, else the default float."""
    return dtype if is_float(dtype) else default_float()


def promote_weak(dtype: DType, scalar: bool | int | float) -> DType:
    """Return the dtype in which a value of `dtype` is computed with a Python scalar."""
    if isinstance(scalar, bool) or is_float(dtype):
        return dtype
    if isinstance(scalar, float):
        return default_float()
    return int64 if dtype == bool_ else dtype


def scalar_dtype(scalar: bool | int | float) -> DType:
    """Return the dtype a Python scalar takes when it stands alone."""
    if isinstance(scalar, bool):
        return bool_
    return int64 if isinstance(scalar, int) else default_float()
