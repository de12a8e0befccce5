"""What the mathematical functions must give: references, arguments, and errors in last places."""

from collections.abc import Callable

import numpy as np
from scipy import special

from weft.backends.cpu.codegen.scalars import writer_of
from weft.core.scalar.functions import FUNCTIONS as RECORDS

Reference = Callable[..., np.ndarray]


def sigmoid(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, np.ones_like(e)) / (1 + e)


UNARY: dict[str, Reference] = {
    "abs": np.abs,
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "ceil": np.ceil,
    "cos": np.cos,
    "cosh": np.cosh,
    "erf": special.erf,
    "erfc": special.erfc,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "floor": np.floor,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "round": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": sigmoid,
    "sign": np.sign,
    "sin": np.sin,
    "sinh": np.sinh,
    "sqrt": np.sqrt,
    "tan": np.tan,
    "tanh": np.tanh,
    "trunc": np.trunc,
}
BINARY: dict[str, Reference] = {
    "atan2": np.arctan2,
    "floor_divide": np.floor_divide,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "mod": np.remainder,
    "pow": np.power,
}
FUNCTIONS = {name: writer_of(name) for name in (*UNARY, *BINARY)}


def limit(name: str, dtype: str) -> float:
    """Return the largest error in units in the last place that a function states."""
    if name == "sqrt":
        return 0.501  # the reference is rounded too
    return RECORDS[name].ulps[dtype == "float64"]


def wider(dtype: np.dtype) -> type[np.floating]:
    """Return a type in which the rounding errors of a dtype can be measured."""
    return np.float64 if dtype == np.float32 else np.longdouble


def reference(name: str, *operands: np.ndarray) -> np.ndarray:
    """Return the result in a precision that makes its own error negligible.

    Remainders are exact in their own precision, and quotients defined by its roundings.
    """
    function = {**UNARY, **BINARY}[name]
    wide = wider(operands[0].dtype)
    if limit(name, "float32") == 0:
        wide = operands[0].dtype.type
    with np.errstate(all="ignore"):
        return function(*(x.astype(wide) for x in operands))


def every_exponent(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """Return numbers of all exponents and signs, random in their other bits."""
    integer = np.dtype(dtype.replace("float", "uint"))
    bits = np.random.default_rng(seed).integers(0, np.iinfo(integer).max, count, dtype=integer)
    return bits.view(dtype)


def common_arguments(dtype: str, count: int, seed: int = 0) -> np.ndarray:
    """Return numbers where functions are used most: near 0 and 1, and up to some thousands."""
    rng = np.random.default_rng(seed)
    spreads = [rng.normal(size=count // 6) * s for s in (1e-2, 1.0, 10.0, 300.0, 1e5)]
    near_one = 1 + rng.normal(size=count // 6) * 1e-2
    return np.concatenate([*spreads, near_one]).astype(dtype)


def last_places(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """Return the errors in units in the last place of the rounded exact value.

    NaN must meet NaN. An infinity counts as the number one step after the largest, so that a
    result may be wrong by an ulp at the threshold of overflow but no more.
    """
    dtype = got.dtype
    wide = wider(dtype)
    with np.errstate(all="ignore"):
        largest = np.finfo(dtype).max
        below = np.nextafter(largest, dtype.type(0))  # after the largest there is no spacing
        end = wide(largest) + wide(np.spacing(below))
        unit = np.spacing(np.minimum(np.abs(exact).astype(dtype), below))
        error = np.abs(
            np.clip(got.astype(wide), -end, end) - np.clip(exact.astype(wide), -end, end)
        )
        error = (error / unit).astype(np.float64)
    both_nan = np.isnan(got) & np.isnan(exact)
    return np.where(both_nan, 0.0, np.where(np.isnan(error), np.inf, error))
