"""Functions of each element, of two tensors and over axes, by TensorFlow's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..core.dim import floor_divide
from ..core.op import F
from .dtypes import as_dtype, float64, int64
from .dtypes import bool as boolean
from .recording import (
    Tensor,
    convert_to_tensor,
    is_tensor,
    pair,
    record,
)

Function = Callable[..., Tensor]


def late(operator: str) -> Callable[..., Any]:
    """Return an operator of Weft's that is looked up when it is called."""

    def called(*inputs: Any, **settings: Any) -> Any:
        return getattr(F, operator)(*inputs, **settings)

    return called


# -- one tensor ------------------------------------------------------------------------------------

# TensorFlow's name, the kind of operation, Weft's operator.
_UNARY = {
    "exp": ("Exp", "exp"),
    "expm1": ("Expm1", "expm1"),
    "log": ("Log", "log"),
    "log1p": ("Log1p", "log1p"),
    "sqrt": ("Sqrt", "sqrt"),
    "rsqrt": ("Rsqrt", "rsqrt"),
    "square": ("Square", "square"),
    "sin": ("Sin", "sin"),
    "cos": ("Cos", "cos"),
    "tan": ("Tan", "tan"),
    "asin": ("Asin", "asin"),
    "acos": ("Acos", "acos"),
    "atan": ("Atan", "atan"),
    "sinh": ("Sinh", "sinh"),
    "cosh": ("Cosh", "cosh"),
    "asinh": ("Asinh", "asinh"),
    "acosh": ("Acosh", "acosh"),
    "atanh": ("Atanh", "atanh"),
    "tanh": ("Tanh", "tanh"),
    "sigmoid": ("Sigmoid", "sigmoid"),
    "erf": ("Erf", "erf"),
    "erfc": ("Erfc", "erfc"),
    "lgamma": ("Lgamma", "lgamma"),
    "digamma": ("Digamma", "digamma"),
    "reciprocal": ("Reciprocal", "reciprocal"),
    "log_sigmoid": ("LogSigmoid", "log_sigmoid"),
    "sign": ("Sign", "sign"),
}
_STEPS = {
    "floor": ("Floor", "floor"),
    "ceil": ("Ceil", "ceil"),
    "round": ("Round", "round"),
    "rint": ("Rint", "round"),
}
_TESTS = {
    "is_nan": ("IsNan", "isnan"),
    "is_inf": ("IsInf", "isinf"),
    "is_finite": ("IsFinite", "isfinite"),
    "logical_not": ("LogicalNot", "logical_not"),
}


def _unary(public: str, type: str, operator: str, **options: Any) -> Function:
    def called(x: Any, name: str | None = None) -> Tensor:
        return record(type, getattr(F, operator), [x], name=name, **options)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return {public} of each element."
    return called


exp, expm1, log, log1p, sqrt, rsqrt, square = (
    _unary(n, *_UNARY[n]) for n in ("exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "square")
)
sin, cos, tan, asin, acos, atan = (
    _unary(n, *_UNARY[n]) for n in ("sin", "cos", "tan", "asin", "acos", "atan")
)
sinh, cosh, asinh, acosh, atanh, tanh = (
    _unary(n, *_UNARY[n]) for n in ("sinh", "cosh", "asinh", "acosh", "atanh", "tanh")
)
sigmoid, erf, erfc, lgamma, digamma, reciprocal, log_sigmoid, sign = (
    _unary(n, *_UNARY[n])
    for n in (
        *("sigmoid", "erf", "erfc", "lgamma", "digamma", "reciprocal", "log_sigmoid"),
        "sign",
    )
)
floor, ceil, rint = (_unary(n, *_STEPS[n], differentiable=False) for n in ("floor", "ceil", "rint"))
round = _unary("round", *_STEPS["round"], differentiable=False)
is_nan, is_inf, is_finite, logical_not = (
    _unary(n, *_TESTS[n], dtype=boolean, differentiable=False)
    for n in ("is_nan", "is_inf", "is_finite", "logical_not")
)


def abs(x: Any, name: str | None = None) -> Tensor:
    """Return the absolute value of each element."""
    return record("Abs", F.abs, [x], name=name, fold=np.abs)


def negative(x: Any, name: str | None = None) -> Tensor:
    """Return -x."""
    return record("Neg", F.neg, [x], name=name, fold=np.negative)


def identity(input: Any, name: str | None = None) -> Tensor:
    """Return the tensor as a result of its own."""
    return record("Identity", lambda x: x, [input], name=name, fold=lambda x: x)


def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Return the tensor as a constant for gradients."""
    return record("StopGradient", F.stop_gradient, [input], name=name, differentiable=False)


def cast(x: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Return the elements in another type; fractions are cut off."""
    kind = as_dtype(dtype)
    x = convert_to_tensor(x)
    if x.dtype == kind:
        return x
    fold = partial(_folded_cast, dtype=kind.dtype) if kind.is_integer else None
    return record("Cast", lambda x: F.cast(x, kind.dtype), [x], name=name, dtype=kind, fold=fold)


def _folded_cast(x: Any, dtype: Any) -> Any:
    return x if x.dtype == object else x.astype(dtype)


def to_float(x: Any, name: str | None = "ToFloat") -> Tensor:
    """Return the elements as float32."""
    return cast(x, "float32", name)


def to_double(x: Any, name: str | None = "ToDouble") -> Tensor:
    """Return the elements as float64."""
    return cast(x, "float64", name)


def to_int32(x: Any, name: str | None = "ToInt32") -> Tensor:
    """Return the elements as int32."""
    return cast(x, "int32", name)


def to_int64(x: Any, name: str | None = "ToInt64") -> Tensor:
    """Return the elements as int64."""
    return cast(x, "int64", name)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Return the elements in another type, those out of its range at its bounds."""
    kind = as_dtype(dtype)
    return cast(clip_by_value(value, kind.min, kind.max), kind, name)


# -- two tensors -----------------------------------------------------------------------------------


def _sized_divide(x: Any, y: Any) -> Any:
    if object in (x.dtype, y.dtype):
        return np.frompyfunc(floor_divide, 2, 1)(x, y)
    return x // y


def _binary(public: str, type: str, operator: str, **options: Any) -> Function:
    def called(x: Any, y: Any, name: str | None = None) -> Tensor:
        return record(type, getattr(F, operator), pair(type, x, y), name=name, **options)

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return {public} of two tensors, element by element."
    return called


def _folded(compute: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a function of sizes; of numbers it keeps their type."""

    def called(x: Any, y: Any) -> Any:
        made = np.asarray(compute(x, y))
        whole = made.dtype != object and made.dtype.kind == "i" and x.dtype.kind == "i"
        return made.astype(x.dtype) if whole else made

    return called


add = _binary("add", "Add", "add", fold=_folded(lambda x, y: x + y))
subtract = _binary("subtract", "Sub", "sub", fold=_folded(lambda x, y: x - y))
multiply = _binary("multiply", "Mul", "mul", fold=_folded(lambda x, y: x * y))
floordiv = _binary("floordiv", "FloorDiv", "floor_divide", fold=_folded(_sized_divide))
floor_div = floordiv
mod = _binary("mod", "FloorMod", "remainder", fold=_folded(lambda x, y: x % y))
floormod = mod
maximum = _binary("maximum", "Maximum", "maximum", fold=_folded(np.maximum))
minimum = _binary("minimum", "Minimum", "minimum", fold=_folded(np.minimum))
atan2 = _binary("atan2", "Atan2", "arctan2")
_COMPARED = {"dtype": boolean, "differentiable": False}
less = _binary("less", "Less", "less", **_COMPARED)
less_equal = _binary("less_equal", "LessEqual", "less_equal", **_COMPARED)
greater = _binary("greater", "Greater", "greater", **_COMPARED)
greater_equal = _binary("greater_equal", "GreaterEqual", "greater_equal", **_COMPARED)
equal = _binary("equal", "Equal", "equal", **_COMPARED)
not_equal = _binary("not_equal", "NotEqual", "not_equal", **_COMPARED)
logical_and = _binary("logical_and", "LogicalAnd", "logical_and", **_COMPARED)
logical_or = _binary("logical_or", "LogicalOr", "logical_or", **_COMPARED)
logical_xor = _binary("logical_xor", "LogicalXor", "logical_xor", **_COMPARED)


def pow(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return x to the power of y."""
    base, exponent = pair("Pow", x, y)
    number = y if isinstance(y, (int, float)) and not is_tensor(y) else None
    if number is not None:  # a power that is known has a gradient at 0
        return record("Pow", lambda x: F.pow(x, number), [base], name=name)
    return record("Pow", F.pow, [base, exponent], name=name)


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient; that of whole numbers is a float64."""
    left, right = pair("RealDiv", x, y)
    if left.dtype.is_integer:
        left, right = cast(left, float64), cast(right, float64)
    return record("RealDiv", F.div, [left, right], name=name)


divide = truediv
realdiv = truediv


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient as Python 2 does: of whole numbers rounded down."""
    left, right = pair("RealDiv", x, y)
    return floordiv(left, right, name) if left.dtype.is_integer else truediv(left, right, name)


def div_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient, 0 where the divisor is 0."""
    return record("DivNoNan", _div_no_nan, pair("DivNoNan", x, y), name=name)


def _div_no_nan(x: Any, y: Any) -> Any:
    zero = y == 0
    return F.where(zero, F.zeros_like(x * y), x / F.where(zero, F.ones_like(y), y))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return (x - y)^2."""
    inputs = pair("SquaredDifference", x, y)
    return record("SquaredDifference", lambda x, y: F.square(x - y), inputs, name=name)


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError(
            "inputs must be a list of at least one Tensor with the same dtype and shape"
        )
    return record("AddN", _sum_of_all, list(inputs), name=name)


def sum_of(values: Any) -> Any:
    """Return the sum of Weft's tensors."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _sum_of_all(*values: Any) -> Any:
    return sum_of(values)


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> Tensor:
    """Return the sum of tensors."""
    return add_n(inputs, name)


def clip_by_value(
    t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None
) -> Tensor:
    """Return the elements, those out of bounds at the bounds."""
    x = convert_to_tensor(t)
    bounds = [
        convert_to_tensor(b, None if is_tensor(b) else x.dtype)
        for b in (clip_value_min, clip_value_max)
    ]
    return record("ClipByValue", late("clip"), [x, *bounds], name=name)


# -- products --------------------------------------------------------------------------------------


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the product of matrices, or of stacks of them."""
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("Only one of transpose and adjoint can be True.")
    left, right = pair("MatMul", a, b)
    compute = partial(
        _matmul, transpose_a=transpose_a or adjoint_a, transpose_b=transpose_b or adjoint_b
    )
    kind = "BatchMatMul" if (left.shape.ndims or 2) > 2 else "MatMul"
    return record(kind, compute, [left, right], name=name or kind)


batch_matmul = matmul


def _matmul(a: Any, b: Any, *, transpose_a: bool, transpose_b: bool) -> Any:
    for x in (a, b):
        if x.ndim < 2:
            raise ValueError(f"Shape must be rank 2 but is rank {x.ndim}")
    a = F.matrix_transpose(a) if transpose_a else a
    return F.matmul(a, F.matrix_transpose(b) if transpose_b else b)


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Return the sum of products over axes of two tensors."""
    pairs = (
        axes
        if isinstance(axes, int)
        else tuple((x,) if isinstance(x, int) else tuple(x) for x in axes)
    )
    return record(
        "Tensordot", lambda x, y: F.tensordot(x, y, pairs), pair("Tensordot", a, b), name=name
    )


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Return the sum of products that an equation describes."""
    return record(
        "Einsum", lambda *xs: F.einsum(equation, *xs), list(inputs), name=kwargs.get("name")
    )


def cross(a: Any, b: Any, name: str | None = None) -> Tensor:
    """Return the cross product of vectors of three."""
    return record("Cross", late("cross"), pair("Cross", a, b), name=name)


INDEX = int64
