"""The scalar functions that `lower` rules are made of: one record each.

A record says what every part of the package must know of a function: its operands, the dtypes it
is defined on, what it costs, how far results may lie from the true value, and what it is in NumPy.
Machine code attaches one writer to each (codegen/scalars.py); everything else follows from here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import special
from ..rng import multiply_high

Ulps = tuple[float, float]

EXACT: Ulps = (0.0, 0.0)  # follows from the operands without rounding
ROUNDED: Ulps = (0.5, 0.5)  # the true value rounded once, as IEEE 754 demands

# How many simple operations on floats take as long; most mathematical functions are polynomials.
SIMPLE, DIVISION, POLYNOMIAL = 1.0, 4.0, 14.0


class Scalar(NamedTuple):
    """One scalar function.

    arity      the number of its operands
    numpy      what it is as a function of arrays
    on         the kinds of dtypes it is defined on: floats, signed and unsigned integers, bool
    cost       in simple operations, on floats; on others it counts as one
    cheap      whether it is better computed again than kept
    ulps       the largest error of machine code in units in the last place: (float32, float64)
    result     "same": the dtype of its operands; "bool"; "given": one that is said with it
    whole      whether integers stay as they are
    steps      the same of simpler functions, where NumPy takes it step by step
    composed   the same of simpler functions, where machine code does
    """

    name: str
    arity: int
    numpy: Callable[..., Any]
    on: str = "f"
    cost: float = POLYNOMIAL
    cheap: bool = False
    ulps: Ulps = (4.0, 4.0)
    result: str = "same"
    whole: bool = False
    steps: Callable[..., Any] | None = None
    composed: Callable[..., Any] | None = None


FUNCTIONS: dict[str, Scalar] = {}


def _declare(name: str, arity: int, numpy: Callable[..., Any], **facts: Any) -> None:
    FUNCTIONS[name] = Scalar(name, arity, numpy, **facts)


class _Arrays:
    """Lets the steps of a function run on arrays: its functions are NumPy's."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return FUNCTIONS[name].numpy


def _declare_cheap(name: str, arity: int, numpy: Callable[..., Any], **facts: Any) -> None:
    _declare(name, arity, numpy, cost=SIMPLE, cheap=True, **facts)


def _declare_steps(name: str, steps: Callable[..., Any], **facts: Any) -> None:
    _declare(name, 1, lambda *arrays: steps(_Arrays(), *arrays), steps=steps, **facts)


def _upper_product(x: Any, factor: Any) -> Any:
    return multiply_high(x, int(np.ravel(factor)[0]))


# -- arithmetic ------------------------------------------------------------------------------------

_NUMBERS, _BITS, _ALL = "fiu", "iub", "fiub"

_declare_cheap("add", 2, np.add, on=_ALL, ulps=ROUNDED)
_declare_cheap("sub", 2, np.subtract, on=_NUMBERS, ulps=ROUNDED)
_declare_cheap("mul", 2, np.multiply, on=_ALL, ulps=ROUNDED)
_declare("div", 2, np.divide, cost=DIVISION, ulps=ROUNDED)
_declare_cheap("neg", 1, np.negative, on=_NUMBERS, ulps=EXACT)
_declare_cheap("abs", 1, np.absolute, on=_ALL, ulps=EXACT)
_declare_cheap("square", 1, np.square, on=_ALL, ulps=ROUNDED)
_declare("reciprocal", 1, np.reciprocal, cost=DIVISION, ulps=ROUNDED)
_declare("sqrt", 1, np.sqrt, cost=DIVISION, ulps=ROUNDED)
_declare_steps("rsqrt", lambda b, x: b.reciprocal(b.sqrt(x)), cost=2 * DIVISION)
_declare_cheap("maximum", 2, np.maximum, on=_ALL, ulps=EXACT)
_declare_cheap("minimum", 2, np.minimum, on=_ALL, ulps=EXACT)
_declare("copysign", 2, np.copysign, cost=SIMPLE, ulps=EXACT)
_declare("sign", 1, np.sign, ulps=EXACT)
_declare("floor_divide", 2, np.floor_divide, on=_NUMBERS, ulps=EXACT)
_declare("mod", 2, np.remainder, on=_NUMBERS, ulps=EXACT)
_declare("fmod", 2, np.fmod, on=_NUMBERS, ulps=EXACT)
# Of integers that are not negative, by a positive constant.
_declare("quotient", 2, np.floor_divide, on="iu", ulps=EXACT)
_declare("remainder", 2, np.remainder, on="iu", ulps=EXACT)
_declare("upper_product", 2, _upper_product, on="iu", ulps=EXACT)
_declare("floor", 1, np.floor, cost=SIMPLE, ulps=EXACT, whole=True)
_declare("ceil", 1, np.ceil, cost=SIMPLE, ulps=EXACT, whole=True)
_declare("trunc", 1, np.trunc, cost=SIMPLE, ulps=EXACT, whole=True)
_declare("round", 1, np.rint, cost=SIMPLE, ulps=EXACT, whole=True)

# -- choices and bits ------------------------------------------------------------------------------

_declare_cheap("select", 3, np.where, on=_ALL, ulps=EXACT)
_declare_cheap("eq", 2, np.equal, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("ne", 2, np.not_equal, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("lt", 2, np.less, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("le", 2, np.less_equal, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("gt", 2, np.greater, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("ge", 2, np.greater_equal, on=_ALL, ulps=EXACT, result="bool")
_declare_cheap("and", 2, np.bitwise_and, on=_BITS, ulps=EXACT)
_declare_cheap("or", 2, np.bitwise_or, on=_BITS, ulps=EXACT)
_declare_cheap("xor", 2, np.bitwise_xor, on=_BITS, ulps=EXACT)
_declare_cheap("not", 1, np.invert, on=_BITS, ulps=EXACT)
_declare("shift_left", 2, np.left_shift, on="iu", ulps=EXACT)
_declare("shift_right", 2, np.right_shift, on="iu", ulps=EXACT)
_declare_cheap("cast", 1, lambda x, dtype: x.astype(dtype), on=_ALL, ulps=ROUNDED, result="given")
_declare(
    "bits", 1, lambda x, dtype: x.view(dtype), on=_ALL, cost=SIMPLE, ulps=EXACT, result="given"
)

# -- mathematics -----------------------------------------------------------------------------------

_declare("exp", 1, np.exp, ulps=(2.0, 4.0))
_declare("exp2", 1, np.exp2)
_declare("expm1", 1, np.expm1)
_declare("log", 1, np.log, ulps=(2.0, 4.0))
_declare("log2", 1, np.log2)
_declare("log10", 1, np.log10)
_declare("log1p", 1, np.log1p)
_declare("sin", 1, np.sin)
_declare("cos", 1, np.cos)
_declare("tan", 1, np.tan)
_declare("asin", 1, np.arcsin)
_declare("acos", 1, np.arccos)
_declare("atan", 1, np.arctan)
_declare("sinh", 1, np.sinh)
_declare("cosh", 1, np.cosh)
_declare("tanh", 1, np.tanh, ulps=(2.0, 4.0))
_declare("asinh", 1, np.arcsinh)
_declare("acosh", 1, np.arccosh)
_declare("atanh", 1, np.arctanh)
_declare("erf", 1, special.erf, ulps=(2.0, 4.0))
_declare("erfc", 1, special.erfc)
_declare("atan2", 2, np.arctan2)
_declare("hypot", 2, np.hypot, ulps=(1.0, 1.5))
_declare("pow", 2, np.power, ulps=(1.0, 1.5))
# exp may overflow: 1 / inf is the 0 that is due.
_declare_steps("sigmoid", lambda b, x: 1.0 / (b.exp(-x) + 1.0), ulps=(2.0, 4.0))


def _normal_cdf(b: Any, x: Any) -> Any:
    """Return the normal distribution function, as core/special/_normal.py computes it."""
    if x.dtype.itemsize == 8:
        return b.erfc(x * -math.sqrt(0.5)) / 2.0
    t = 1.0 / (b.abs(x) * special.TAIL_SLOPE + 1.0)
    rest = b.constant(special.TAIL[-1], x.dtype)
    for coefficient in reversed(special.TAIL[:-1]):
        rest = rest * (1.0 - t) + coefficient
    tail = b.exp(x * x * -0.5) * (t * rest)
    return b.select(x < 0.0, tail, 1.0 - tail)


# Far below 0 the rounding of x**2 dominates; `gelu` states the bound.
_declare("normal_cdf", 1, special.normal_cdf, ulps=(math.inf, math.inf), composed=_normal_cdf)


def named(condition: Callable[[Scalar], bool]) -> frozenset[str]:
    """Return the names of the functions for which a condition holds."""
    return frozenset(name for name, record in FUNCTIONS.items() if condition(record))
