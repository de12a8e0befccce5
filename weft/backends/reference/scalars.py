"""What scalar functions mean, by NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.rng import multiply_high
from ...core.special import erf, erfc

Array = np.ndarray[Any, Any]


def _square(x: Any) -> Any:
    return x * x


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "add": np.add,
    "and": np.bitwise_and,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "ceil": np.ceil,
    "copysign": np.copysign,
    "cos": np.cos,
    "cosh": np.cosh,
    "div": np.divide,
    "eq": np.equal,
    "erf": erf,
    "erfc": erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "floor_divide": np.floor_divide,
    "fmod": np.fmod,
    "ge": np.greater_equal,
    "gt": np.greater,
    "hypot": np.hypot,
    "le": np.less_equal,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "lt": np.less,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.remainder,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "pow": np.power,
    "quotient": np.floor_divide,
    "reciprocal": lambda x: 1 / x,
    "remainder": np.remainder,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "select": np.where,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "sigmoid": _sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "softplus": _softplus,
    "sqrt": np.sqrt,
    "square": _square,
    "sub": np.subtract,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
    "upper_product": lambda x, y: multiply_high(x, int(y)),
    "xor": np.bitwise_xor,
}
