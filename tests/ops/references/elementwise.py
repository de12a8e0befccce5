"""Independent computations of the elementwise operators: SciPy, plain formulas, or NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from weft.core.samples import ErrorSample, Sample


def as_float(x: Any) -> Any:
    x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def on_floats(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reference that sees integers as the default float, as the operators do."""

    def reference(*args: Any, **kwargs: Any) -> Any:
        return fn(*map(as_float, args), **kwargs)

    return reference


def with_attributes(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reference whose first argument alone is a tensor."""
    return lambda x, *args, **kwargs: fn(as_float(x), *args, **kwargs)


def fmod(x: Any, y: Any) -> Any:
    quotient = np.where(np.asarray(y) == 0, 0, np.trunc(x / np.where(np.asarray(y) == 0, 1, y)))
    result = x - quotient * y
    return np.where(np.asarray(y) == 0, 0, result).astype(np.result_type(x, y))


def gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return x * special.ndtr(x)
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    return np.where(x * beta > threshold, x, np.logaddexp(0, beta * x) / beta)


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.maximum(x, 0) + alpha * np.expm1(np.minimum(x, 0))


def celu(x: Any, alpha: float = 1.0) -> Any:
    return np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(np.minimum(x, 0) / alpha))


def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return np.maximum(x, 0) + negative_slope * np.minimum(x, 0)


def hard_gate(x: Any) -> Any:
    return np.clip(x / 6 + 0.5, 0, 1)


def softshrink(x: Any, lambd: float = 0.5) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - lambd, 0)


def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    return x * (np.abs(x) > lambd)


def threshold(x: Any, threshold: float, value: float) -> Any:
    return np.where(x > threshold, x, value)


def prelu(x: Any, weight: Any) -> Any:
    shape = (-1,) + (1,) * (x.ndim - 2) if weight.size > 1 else ()
    return np.maximum(x, 0) + weight.reshape(shape) * np.minimum(x, 0)


def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    if isinstance(min, float) or isinstance(max, float):
        x = as_float(x)
    for bound, choose in ((min, np.maximum), (max, np.minimum)):
        if bound is not None:
            x = choose(x, bound)
    return x


def clip_to(x: Any, low: Any, high: Any) -> Any:
    if x.dtype.kind == "u":
        return x
    return clip(x, low, high)


def lerp(x: Any, y: Any, weight: Any) -> Any:
    return (1 - weight) * x + weight * y


def fill_like(x: Any, value: Any, dtype: Any = None) -> Any:
    return np.broadcast_to(np.array(value, dtype or x.dtype), x.shape)


def rounded(x: Any, decimals: int = 0) -> Any:
    if decimals == 0:
        return np.round(x)
    scale = 10.0**-decimals
    return (np.rint(x / scale) * scale).astype(x.dtype)


def cast(x: Any, dtype: Any) -> Any:
    names = {int: "int64", float: "float32"}
    return np.array(x.tolist()).reshape(x.shape).astype(names.get(dtype, dtype))


def nan_to_num(x: Any, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if x.dtype.kind != "f":
        return x
    high = np.finfo(x.dtype).max if posinf is None else posinf
    low = np.finfo(x.dtype).min if neginf is None else neginf
    return np.select([np.isnan(x), x == np.inf, x == -np.inf], [nan, high, low], x)


def isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    x, y = np.broadcast_arrays(np.asarray(x, float), np.asarray(y, float))
    near = np.isfinite(y) & (np.abs(x - y) <= atol + rtol * np.abs(y))
    return (x == y) | near | (equal_nan & np.isnan(x) & np.isnan(y))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805

REFERENCES: dict[str, Callable[..., Any]] = {
    # arithmetic
    "add": lambda x, y: np.logical_or(x, y) if x.dtype == bool else x - (-np.asarray(y)),
    "sub": lambda x, y: x + (-np.asarray(y)),
    "mul": lambda x, y: x * y,
    "div": on_floats(lambda x, y: x * (1 / y)),
    "neg": lambda x: 0 - x,
    "positive": np.array,
    "abs": lambda x: np.fabs(x).astype(x.dtype),
    "sign": lambda x: ((x > 0) * 1 - (x < 0) * 1).astype(x.dtype),
    "floor_divide": np.floor_divide,
    "mod": np.mod,
    "fmod": fmod,
    "pow": np.power,
    "square": lambda x: np.int8(1) * x * x if x.dtype == bool else x * x,
    "sqrt": on_floats(lambda x: np.power(x, 0.5)),
    "rsqrt": on_floats(lambda x: np.power(x, -0.5)),
    "reciprocal": on_floats(lambda x: 1 / x),
    "hypot": on_floats(lambda x, y: np.abs(x + 1j * y)),
    # exponentials
    "exp": on_floats(lambda x: np.cosh(x) + np.sinh(x)),
    "exp2": on_floats(lambda x: np.power(2, x)),
    "expm1": on_floats(special.expm1),
    "log": on_floats(lambda x: np.log2(x) * np.log(2)),
    "log2": on_floats(lambda x: np.log(x) / np.log(2)),
    "log10": on_floats(lambda x: np.log(x) / np.log(10)),
    "log1p": on_floats(special.log1p),
    "logaddexp": on_floats(lambda x, y: np.maximum(x, y) + softgap(x, y)),
    "logaddexp2": on_floats(
        lambda x, y: np.maximum(x, y) + softgap(x * np.log(2), y * np.log(2)) / np.log(2)
    ),
    "xlogy": on_floats(special.xlogy),
    "xlog1py": on_floats(special.xlog1py),
    "entr": on_floats(special.entr),
    "logit": on_floats(
        lambda x, eps=None: special.logit(x if eps is None else np.clip(x, eps, 1 - eps))
    ),
    # trigonometry
    "sin": on_floats(lambda x: np.exp(1j * x).imag),
    "cos": on_floats(lambda x: np.exp(1j * x).real),
    "tan": on_floats(lambda x: np.sin(x) / np.cos(x)),
    "asin": on_floats(lambda x: np.arctan2(x, np.sqrt(1 - x * x))),
    "acos": on_floats(lambda x: np.arctan2(np.sqrt(1 - x * x), x)),
    "atan": on_floats(lambda x: np.angle(1 + 1j * x)),
    "atan2": on_floats(np.arctan2),
    "sinc": on_floats(np.sinc),
    "deg2rad": on_floats(np.radians),
    "rad2deg": on_floats(np.degrees),
    # hyperbolic
    "sinh": on_floats(lambda x: (np.exp(x) - np.exp(-x)) / 2),
    "cosh": on_floats(lambda x: (np.exp(x) + np.exp(-x)) / 2),
    "tanh": on_floats(lambda x: np.sinh(x) / np.cosh(x)),
    "asinh": on_floats(lambda x: np.sign(x) * np.log(np.abs(x) + np.sqrt(x * x + 1))),
    "acosh": on_floats(lambda x: np.log(x + np.sqrt(x * x - 1))),
    "atanh": on_floats(lambda x: np.log((1 + x) / (1 - x)) / 2),
    # special functions
    "erf": on_floats(special.erf),
    "erfc": on_floats(special.erfc),
    "erfinv": on_floats(special.erfinv),
    "lgamma": on_floats(special.gammaln),
    "digamma": on_floats(special.digamma),
    "polygamma": lambda n, x: special.polygamma(n, as_float(x)),
    # activations
    "sigmoid": on_floats(special.expit),
    "log_sigmoid": on_floats(special.log_expit),
    "silu": on_floats(lambda x: x * special.expit(x)),
    "mish": on_floats(lambda x: x * np.tanh(np.logaddexp(0, x))),
    "softsign": on_floats(lambda x: np.sign(x) * (1 - 1 / (1 + np.abs(x)))),
    "tanhshrink": on_floats(lambda x: x - np.tanh(x)),
    "gelu": with_attributes(gelu),
    "normal_cdf": special.ndtr,
    "elu": with_attributes(elu),
    "celu": with_attributes(celu),
    "selu": on_floats(lambda x: SELU_SCALE * elu(x, SELU_ALPHA)),
    "softplus": with_attributes(softplus),
    "relu": lambda x: (x + 0 if x.dtype == bool else x) * (x > 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": with_attributes(leaky_relu),
    "hardtanh": lambda x, min_val=-1, max_val=1: np.clip(as_float(x), min_val, max_val),
    "hardsigmoid": on_floats(hard_gate),
    "hardswish": on_floats(lambda x: x * hard_gate(x)),
    "softshrink": with_attributes(softshrink),
    "hardshrink": with_attributes(hardshrink),
    "threshold": with_attributes(threshold),
    "prelu": prelu,
    # choosing
    "maximum": lambda x, y: np.where(np.isnan(x) | (x >= y), x, y),
    "minimum": lambda x, y: np.where(np.isnan(x) | (x <= y), x, y),
    "fmax": lambda x, y: np.where(np.isnan(y) | (x >= y), x, y),
    "fmin": lambda x, y: np.where(np.isnan(y) | (x <= y), x, y),
    "clip": clip,
    "clamp": clip,
    "clip_to": clip_to,
    "where": lambda condition, x, y: np.select([condition != 0], [x], y),
    "lerp": lambda x, y, weight: lerp(as_float(x), as_float(y), weight),
    "copysign": on_floats(lambda x, y: np.abs(x) * np.where(np.signbit(y), -1, 1)),
    "heaviside": on_floats(lambda x, values: np.where(x == 0, values, x > 0)),
    "addcmul": lambda x, a, b, value=1: x + value * a * b,
    "addcdiv": lambda x, a, b, value=1: x + value * a / b,
    # rounding
    "floor": lambda x: -np.ceil(-x),
    "ceil": lambda x: -np.floor(-x),
    "trunc": np.fix,
    "round": rounded,
    "frac": lambda x: x - np.fix(x),
    # conversion and constants
    "cast": cast,
    "fill_like": fill_like,
    "full_like": lambda x, fill_value, dtype=None: fill_like(x, fill_value, dtype),
    "zeros_like": lambda x, dtype=None: fill_like(x, 0, dtype),
    "ones_like": lambda x, dtype=None: fill_like(x, 1, dtype),
    # comparison and classification
    "equal": lambda x, y: ~(x != y),
    "not_equal": lambda x, y: ~(x == y),
    "less": lambda x, y: y > x,
    "less_equal": lambda x, y: y >= x,
    "greater": lambda x, y: y < x,
    "greater_equal": lambda x, y: y <= x,
    "isnan": lambda x: np.isnan(as_float(x)),
    "isposinf": lambda x: as_float(x) == np.inf,
    "isneginf": lambda x: as_float(x) == -np.inf,
    "isinf": lambda x: np.abs(as_float(x)) == np.inf,
    "isfinite": lambda x: np.abs(as_float(x)) < np.inf,
    "signbit": lambda x: np.copysign(1.0, as_float(x)) < 0,
    "nan_to_num": nan_to_num,
    "isclose": isclose,
    "allclose": lambda *args, **kwargs: isclose(*args, **kwargs).all(),
    # logic
    "logical_and": lambda x, y: (x != 0) & (np.asarray(y) != 0),
    "logical_or": lambda x, y: (x != 0) | (np.asarray(y) != 0),
    "logical_xor": lambda x, y: (x != 0) ^ (np.asarray(y) != 0),
    "logical_not": lambda x: x == 0,
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: (x | y) & ~(x & y),
    "bitwise_not": lambda x: ~x if x.dtype == bool else (-1 - x.astype(int)).astype(x.dtype),
    "bitwise_left_shift": lambda x, y: (x * 2**y).astype(np.result_type(x, y)),
    "bitwise_right_shift": lambda x, y: (x // 2**y).astype(np.result_type(x, y)),
}


def softgap(x: Any, y: Any) -> Any:
    """Return log(exp(x) + exp(y)) - max(x, y)."""
    gap = np.where(np.isinf(x) & (x == y), 0, np.abs(x - y))
    return np.log1p(np.exp(-gap))


# -- samples of composites ------------------------------------------------------------------------


def clip_samples(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-0.5, 1.0)), min=-0.5, max=1.0)
    yield Sample(s.away(3), 0, label="below only")
    yield Sample(s.away(3), None, 0.0, label="above only")
    low, high = s.real(3, low=-2.0, high=-1.0), s.real(2, 1, low=0.0, high=1.0)
    yield Sample(s.distinct(2, 3), low, high, label="tensor bounds")
    yield Sample(s.distinct(2, 3), low, label="tensor bound")
    yield Sample(s.distinct(2, 3), -1.0, high, label="number and tensor")
    yield Sample(s.integers(3, high=9), 2, 5, label="integers")
    yield Sample(s.integers(3, high=9), 2.5, label="float bound of integers")
    yield Sample(np.array([np.nan, 0.5]), np.array([0.0, np.nan]), grad=0, label="NaN")


def clip_errors(s):
    yield ErrorSample(s.real(3), error=ValueError, match="at least one of min and max")
    yield ErrorSample(s.real(3), "a", error=TypeError, match="min must be.*'a'")


def prelu_samples(s):
    yield Sample(s.away(3), s.real(1))
    yield Sample(s.away(2, 3), s.real(3))
    yield Sample(s.away(2, 3, 2), s.real(3))
    yield Sample(s.away(2, 3), s.real())
    yield Sample(s.away(0, 3), s.real(3))


def prelu_errors(s):
    yield ErrorSample(s.real(2, 3), s.real(2), error=ValueError, match=r"weight of shape \(2,\)")
    yield ErrorSample(s.real(3), s.real(3), error=ValueError, match=r"x of shape \(3,\)")


def addcmul_samples(s):
    yield Sample(s.real(2, 3), s.real(3), s.away(2, 1))
    yield Sample(s.real(3), s.real(3), s.away(3), value=-0.5)
    yield Sample(s.real(), s.real(), s.away())


def allclose_samples(s):
    x = s.real(3)
    yield Sample(x, x + 1e-9, grad=0)
    yield Sample(x, x + 1.0, grad=0)
    yield Sample(x, x + 1.0, atol=2.0, grad=0)
    yield Sample(np.array([np.nan]), np.array([np.nan]), equal_nan=True, grad=0)


def like_samples(s):
    yield from s.unary(grad=0)
    yield Sample(s.integers(3), label="integers")
    yield Sample(s.integers(3), dtype="float32", label="other dtype")


def full_like_samples(s):
    yield from s.unary(grad=0, fill_value=2.5)
    yield Sample(s.integers(3), 7, dtype="int8", label="other dtype")


def like_errors(s):
    yield ErrorSample(s.real(3), dtype="text", error=TypeError, match="expected a dtype.*'text'")
    yield ErrorSample(s.real(3), device="abacus", error=ValueError, match="'abacus'")


COMPOSITE_SAMPLES = {
    "clip": clip_samples,
    "clamp": clip_samples,
    "prelu": prelu_samples,
    "addcmul": addcmul_samples,
    "addcdiv": addcmul_samples,
    "allclose": allclose_samples,
    "zeros_like": like_samples,
    "ones_like": like_samples,
    "full_like": full_like_samples,
}
COMPOSITE_ERROR_SAMPLES = {
    "clip": clip_errors,
    "prelu": prelu_errors,
    "zeros_like": like_errors,
    "ones_like": like_errors,
}
