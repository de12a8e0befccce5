"""Mathematical functions as inline vector code, for float32 and float64 in any number of lanes.

Each is a function of the writer and its operands: `exp(f, x)` appends the instructions that compute
e^x to `f` and returns the value. `FUNCTIONS` finds them by name. float16 and bfloat16 are computed
in float32. Special values (NaN, infinities, zeros, subnormals, overflow) are as NumPy's. In float32
exp, log, sqrt, tanh, sigmoid and erf are within 2 units in the last place, all others within 4.
"""

from __future__ import annotations

from collections.abc import Callable

from ..text import FunctionText
from ..values import Value
from .error import erf, erfc
from .exponential import cosh, exp, exp2, expm1, sigmoid, sinh, tanh
from .inverse import acos, asin, atan, atan2
from .logarithm import acosh, asinh, atanh, log, log1p, log2, log10, logaddexp, softplus
from .power import cbrt, hypot, pow, rsqrt
from .rounding import absolute, ceil, floor, floor_divide, fmod, remainder, round, sign, trunc
from .trigonometric import cos, sin, tan

__all__ = ["FUNCTIONS"]

Writer = Callable[..., Value]


def _sqrt(f: FunctionText, x: Value) -> Value:
    return f.sqrt(x)


FUNCTIONS: dict[str, Writer] = {
    "abs": absolute,
    "acos": acos,
    "acosh": acosh,
    "asin": asin,
    "asinh": asinh,
    "atan": atan,
    "atan2": atan2,
    "atanh": atanh,
    "cbrt": cbrt,
    "ceil": ceil,
    "cos": cos,
    "cosh": cosh,
    "erf": erf,
    "erfc": erfc,
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "floor": floor,
    "floor_divide": floor_divide,
    "fmod": fmod,
    "hypot": hypot,
    "log": log,
    "log10": log10,
    "log1p": log1p,
    "log2": log2,
    "logaddexp": logaddexp,
    "mod": remainder,
    "pow": pow,
    "round": round,
    "rsqrt": rsqrt,
    "sigmoid": sigmoid,
    "sign": sign,
    "sin": sin,
    "sinh": sinh,
    "softplus": softplus,
    "sqrt": _sqrt,
    "tan": tan,
    "tanh": tanh,
    "trunc": trunc,
}
