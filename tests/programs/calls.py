"""Random calls of operators, each with an independent computation by NumPy.

A call has operands, a function of tensors and one of arrays. The second gets floats as float64
(exactly what the narrower ones hold) and integers in their own dtype, and need not care for dtypes
of results. How closely both must agree:

EXACT    to the bit
EQUAL    as numbers: a zero may have either sign, which NumPy itself leaves to the processor
CLOSE    to some units in the last place of each element
SUMMED   to some units in the last place of the largest operand or result: terms cancel
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import weft as wf

from .operands import DTYPES, FLOATS, INTEGERS, Array, Draw, dtype_named, is_float

F = wf.nn.functional
EXACT, EQUAL, CLOSE, SUMMED = "exact", "equal", "close", "summed"


class Call(NamedTuple):
    """One call with its operands, and what it must give."""

    name: str
    operands: list[Array]
    of_tensors: Callable[..., Any]
    of_arrays: Callable[..., Any]
    agreement: str

    def expected(self) -> Array:
        """Return what NumPy makes of the operands."""
        given = [x.astype(np.float64) if is_float(x.dtype) else x for x in self.operands]
        with np.errstate(all="ignore"):
            return np.asarray(self.of_arrays(*given))


def draw_call(draw: Draw) -> Call:
    """Return a random call."""
    while True:
        call = draw.choose(FORMS)(draw)
        if call is not None:
            return call


# -- element by element ---------------------------------------------------------------------------


def _softplus(x: Array) -> Array:
    return np.logaddexp(x, 0)


# Functions of floats: NumPy's, and the range in which operands are drawn.
SMOOTH: dict[str, tuple[Any, Any, float, float]] = {
    "exp": (wf.exp, np.exp, -10, 10),
    "exp2": (wf.exp2, np.exp2, -10, 10),
    "expm1": (wf.expm1, np.expm1, -10, 10),
    "log": (wf.log, np.log, 0.01, 50),
    "log2": (wf.log2, np.log2, 0.01, 50),
    "log10": (wf.log10, np.log10, 0.01, 50),
    "log1p": (wf.log1p, np.log1p, -0.9, 50),
    "sqrt": (wf.sqrt, np.sqrt, 0, 50),
    "rsqrt": (wf.rsqrt, lambda x: 1 / np.sqrt(x), 0.1, 50),
    "reciprocal": (wf.reciprocal, lambda x: 1 / x, 0.1, 50),
    "sin": (wf.sin, np.sin, -6, 6),
    "cos": (wf.cos, np.cos, -6, 6),
    "tan": (wf.tan, np.tan, -1.4, 1.4),
    "asin": (wf.asin, np.arcsin, -1, 1),
    "acos": (wf.acos, np.arccos, -1, 0.9),
    "atan": (wf.atan, np.arctan, -20, 20),
    "sinh": (wf.sinh, np.sinh, -8, 8),
    "cosh": (wf.cosh, np.cosh, -8, 8),
    "tanh": (wf.tanh, np.tanh, -10, 10),
    "asinh": (wf.asinh, np.arcsinh, -20, 20),
    "acosh": (wf.acosh, np.arccosh, 1.1, 20),
    "atanh": (wf.atanh, np.arctanh, -0.9, 0.9),
    "sigmoid": (wf.sigmoid, special.expit, -15, 15),
    "erf": (wf.erf, special.erf, -4, 4),
    "gelu": (F.gelu, lambda x: x * special.ndtr(x), -5, 10),
    "silu": (F.silu, lambda x: x * special.expit(x), -10, 10),
    "softplus": (F.softplus, _softplus, -10, 10),
    "log_sigmoid": (F.logsigmoid, special.log_expit, -10, 10),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(x)), -8, 8),
    "relu": (wf.relu, lambda x: np.maximum(x, 0), -8, 8),
    "square": (wf.square, np.square, -12, 12),
    "cube": (lambda x: x**3, lambda x: x * x * x, -6, 6),
    "sinc": (wf.sinc, np.sinc, -0.9, 0.9),
}

# Near a root a function of a rounded operand is no closer than that: these have none in range.
BINARY_SMOOTH: dict[str, tuple[Any, Any, float, float]] = {
    "div": (wf.div, np.divide, 0.2, 20),
    "mul": (wf.mul, np.multiply, -20, 20),
    "hypot": (wf.hypot, np.hypot, 0.1, 20),
    "atan2": (wf.atan2, np.arctan2, 0.1, 20),
    "logaddexp": (wf.logaddexp, np.logaddexp, 0.1, 8),
    "pow": (wf.pow, np.power, 0.2, 3),
}

UNARY_EXACT: dict[str, tuple[Any, Any]] = {
    "abs": (wf.abs, np.abs),
    "neg": (wf.neg, np.negative),
    "sign": (wf.sign, np.sign),
    "floor": (wf.floor, np.floor),
    "ceil": (wf.ceil, np.ceil),
    "trunc": (wf.trunc, np.trunc),
    "round": (wf.round, np.round),
    "isnan": (wf.isnan, np.isnan),
    "isinf": (wf.isinf, np.isinf),
    "isfinite": (wf.isfinite, np.isfinite),
    "signbit": (wf.signbit, np.signbit),
    "logical_not": (wf.logical_not, np.logical_not),
    "clip": (lambda x: wf.clip(x, -2, 3), lambda x: np.clip(x, -2, 3)),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.5), lambda x: np.where(x > 0, x, x * 0.5)),
}
NOT_OF_BOOL = {"neg", "sign", "clip"}
OF_FLOATS = {"signbit", "leaky_relu"}
EITHER_ZERO = {"sign", "maximum", "minimum"}

BINARY_EXACT: dict[str, tuple[Any, Any]] = {
    "add": (wf.add, np.add),
    "sub": (wf.sub, np.subtract),
    "mul": (wf.mul, np.multiply),
    "maximum": (wf.maximum, np.maximum),
    "minimum": (wf.minimum, np.minimum),
    "less": (wf.less, np.less),
    "less_equal": (wf.less_equal, np.less_equal),
    "greater": (wf.greater, np.greater),
    "greater_equal": (wf.greater_equal, np.greater_equal),
    "equal": (wf.equal, np.equal),
    "not_equal": (wf.not_equal, np.not_equal),
    "logical_and": (wf.logical_and, np.logical_and),
    "logical_or": (wf.logical_or, np.logical_or),
    "logical_xor": (wf.logical_xor, np.logical_xor),
}
OF_INTEGERS: dict[str, tuple[Any, Any]] = {
    "bitwise_and": (wf.bitwise_and, np.bitwise_and),
    "bitwise_or": (wf.bitwise_or, np.bitwise_or),
    "bitwise_xor": (wf.bitwise_xor, np.bitwise_xor),
    "floor_divide": (wf.floor_divide, np.floor_divide),
    "mod": (wf.mod, np.mod),
}


def smooth(draw: Draw) -> Call:
    name = draw.choose(list(SMOOTH))
    of_tensors, of_arrays, low, high = SMOOTH[name]
    x = draw.array(draw.shape(), dtype_named(draw.choose(FLOATS)), low, high)
    return Call(name, [x], of_tensors, of_arrays, CLOSE)


def binary_smooth(draw: Draw) -> Call:
    name = draw.choose(list(BINARY_SMOOTH))
    of_tensors, of_arrays, low, high = BINARY_SMOOTH[name]
    x, y = _pair(draw, FLOATS, lambda shape, dtype: draw.array(shape, dtype, low, high))
    return Call(name, [x, y], of_tensors, of_arrays, CLOSE)


def unary_exact(draw: Draw) -> Call | None:
    name = draw.choose(list(UNARY_EXACT))
    dtype = draw.choose(FLOATS if name in OF_FLOATS else DTYPES)
    if dtype == "bool" and name in NOT_OF_BOOL:
        return None
    if name == "clip" and dtype.startswith("u"):
        return None
    x = draw.array(draw.shape(), dtype_named(dtype))
    if is_float(x.dtype):
        x = draw.special(x)
    return Call(f"{name} {dtype}", [x], *UNARY_EXACT[name], _exactness(name))


def binary_exact(draw: Draw) -> Call | None:
    name = draw.choose(list(BINARY_EXACT))
    dtypes = DTYPES[1:] if name in ("add", "sub", "mul") else DTYPES
    x, y = _pair(draw, dtypes, draw.whole)
    if is_float(x.dtype) and draw.chance(0.5):
        x = draw.special(x)
    return Call(f"{name} {x.dtype.name}", [x, y], *BINARY_EXACT[name], _exactness(name))


def _exactness(name: str) -> str:
    return EQUAL if name in EITHER_ZERO else EXACT


def of_integers(draw: Draw) -> Call:
    name = draw.choose(list(OF_INTEGERS))
    x, y = _pair(draw, INTEGERS, lambda shape, dtype: draw.array(shape, dtype, -100, 100))
    if name in ("floor_divide", "mod"):
        y = np.asarray(np.where(y == 0, y.dtype.type(3), y))
    return Call(f"{name} {x.dtype.name}", [x, y], *OF_INTEGERS[name], EXACT)


def casts(draw: Draw) -> Call:
    given, wanted = draw.choose(DTYPES), dtype_named(draw.choose(DTYPES))
    x = draw.whole(draw.shape(), dtype_named(given))
    if wanted.kind == "u":
        x = np.asarray(np.abs(x)) if x.dtype.kind != "b" else x
    return Call(f"{given} to {wanted.name}", [x], lambda t: t.astype(wanted), lambda a: a, EXACT)


def where(draw: Draw) -> Call:
    x, y = _pair(draw, DTYPES, draw.whole)
    condition = draw.array(draw.broadcastable(x.shape), "bool")
    return Call(f"where {x.dtype.name}", [condition, x, y], wf.where, np.where, EXACT)


def _pair(draw: Draw, dtypes: Any, make: Callable[..., Array]) -> tuple[Array, Array]:
    """Return two operands of one dtype whose shapes broadcast."""
    shape, dtype = draw.shape(), dtype_named(draw.choose(dtypes))
    return make(draw.broadcastable(shape), dtype), make(draw.broadcastable(shape), dtype)


# -- reductions -----------------------------------------------------------------------------------

EXACT_REDUCTIONS: dict[str, tuple[Any, Any]] = {
    "any": (wf.any, lambda x, **how: np.any(x != 0, **how)),
    "all": (wf.all, lambda x, **how: np.all(x != 0, **how)),
    "max": (wf.max, np.max),
    "min": (wf.min, np.min),
    "sum": (wf.sum, np.sum),
    "count_nonzero": (
        lambda x, axis, keepdims: wf.count_nonzero(x, axis=axis),
        lambda x, axis, keepdims: np.count_nonzero(x, axis=axis),
    ),
}
SUMS: dict[str, tuple[Any, Any]] = {
    "sum": (wf.sum, np.sum),
    "mean": (wf.mean, np.mean),
    "var": (wf.var, np.var),
    "std": (wf.std, np.std),
    "logsumexp": (wf.logsumexp, special.logsumexp),
    "max": (wf.max, np.max),
}
EXTREMA = ("max", "min")


def exact_reduction(draw: Draw) -> Call | None:
    name = draw.choose(list(EXACT_REDUCTIONS))
    dtype = draw.choose(DTYPES)
    x = draw.whole(draw.shape(1), dtype_named(dtype), 1 if dtype in ("int8", "float16") else 2)
    how = {"axis": draw.axis(x.ndim), "keepdims": draw.chance(0.5)}
    if name in EXTREMA and (not x.size or dtype == "bool"):
        return None
    if name == "sum" and dtype == "bfloat16" and x.size > 128:
        return None  # beyond 256 not every whole number is a bfloat16
    return _reduction(name, x, how, *EXACT_REDUCTIONS[name], EXACT)


def sums(draw: Draw) -> Call | None:
    name = draw.choose(list(SUMS))
    x = draw.array(draw.shape(1), dtype_named(draw.choose(FLOATS)))
    how = {"axis": draw.axis(x.ndim), "keepdims": draw.chance(0.5)}
    if not x.size:
        return None
    return _reduction(name, x, how, *SUMS[name], SUMMED)


def _reduction(name: str, x: Array, how: Any, tensors: Any, arrays: Any, agreement: str) -> Call:
    label = f"{name} {x.dtype.name} {how}"
    return Call(label, [x], lambda t: tensors(t, **how), lambda a: arrays(a, **how), agreement)


def positions(draw: Draw) -> Call | None:
    x = draw.whole(draw.shape(1), dtype_named(draw.choose(DTYPES[1:])))
    axis = draw.one_axis(x.ndim)
    if not x.size:
        return None
    of_tensors, of_arrays = draw.choose([(wf.argmax, np.argmax), (wf.argmin, np.argmin)])
    label = f"{of_arrays.__name__} {x.dtype.name} {axis}"
    return Call(label, [x], lambda t: of_tensors(t, axis), lambda a: of_arrays(a, axis), EXACT)


def rows(draw: Draw) -> Call | None:
    x = draw.array(draw.shape(1), dtype_named(draw.choose(FLOATS)))
    axis = draw.one_axis(x.ndim)
    if not x.size:
        return None
    pairs = {
        "softmax": (F.softmax, special.softmax, CLOSE),
        "log_softmax": (F.log_softmax, special.log_softmax, SUMMED),
        "cumsum": (wf.cumsum, np.cumsum, SUMMED),
    }
    name = draw.choose(list(pairs))
    of_tensors, of_arrays, agreement = pairs[name]
    label = f"{name} {x.dtype.name} {axis}"
    if is_half(x.dtype) and name == "cumsum":
        return None  # running sums are rounded at every step
    return Call(
        label, [x], lambda t: of_tensors(t, axis), lambda a: of_arrays(a, axis=axis), agreement
    )


def is_half(dtype: Any) -> bool:
    """Tell whether a dtype is a float of 16 bits."""
    return is_float(dtype) and np.dtype(dtype).itemsize == 2


# -- movement -------------------------------------------------------------------------------------


def movement(draw: Draw) -> Call:
    x = draw.whole(draw.shape(1), dtype_named(draw.choose(DTYPES)))
    n, axis = x.ndim, draw.one_axis(x.ndim)
    order = tuple(draw.rng.permutation(n).tolist())
    step = draw.choose((1, 2, -1, -3))
    start = draw.choose((None, 0, 1, -1))
    part = (*[slice(None)] * draw.rng.integers(n), slice(start, None, step))
    widths = [tuple(draw.rng.integers(0, 4, 2).tolist()) for _ in range(n)]
    shift = int(draw.rng.integers(-5, 6))
    ways: dict[str, tuple[Any, Any]] = {
        "flatten": (lambda t: t.reshape(-1), lambda a: a.reshape(-1)),
        "permute": (lambda t: wf.permute(t, order), lambda a: a.transpose(order)),
        f"slice {part}": (lambda t: t[part], lambda a: a[part]),
        f"flip {axis}": (lambda t: wf.flip(t, axis), lambda a: np.flip(a, axis)),
        f"roll {shift} {axis}": (
            lambda t: wf.roll(t, shift, axis),
            lambda a: np.roll(a, shift, axis),
        ),
        f"pad {widths}": (lambda t: wf.pad(t, widths), lambda a: np.pad(a, widths)),
        f"expand {axis}": (
            lambda t: wf.expand_dims(t, axis),
            lambda a: np.expand_dims(a, axis),
        ),
        "broadcast": (
            lambda t: wf.broadcast_to(t, (2, *t.shape)),
            lambda a: np.broadcast_to(a, (2, *a.shape)),
        ),
        f"repeat {axis}": (
            lambda t: wf.repeat(t, 2, axis=axis),
            lambda a: np.repeat(a, 2, axis=axis),
        ),
        "tril": (wf.tril, np.tril) if n > 1 else (lambda t: t[None], lambda a: a[None]),
        "diagonal": (
            (wf.diagonal, np.diagonal)
            if n > 1
            else (lambda t: t[..., None], lambda a: a[..., None])
        ),
        f"sort {axis}": (
            (lambda t: wf.sort(t, axis=axis), lambda a: np.sort(a, axis))
            if x.dtype.kind != "b"
            else (lambda t: t[:1], lambda a: a[:1])
        ),
    }
    name = draw.choose(list(ways))
    return Call(f"{name} {x.dtype.name}", [x], *ways[name], EXACT)


def joins(draw: Draw) -> Call:
    x, axis = _rows_and_axis(draw, DTYPES)
    y = draw.whole(_resized(draw, x, axis, (0, 1, 3, 33)), x.dtype)
    label = f"{x.dtype.name} {axis}"
    if draw.chance(0.5):
        return Call(
            f"concat {label}",
            [x, y],
            lambda a, b: wf.concat([a, b], axis),
            lambda a, b: np.concatenate([a, b], axis),
            EXACT,
        )
    return Call(
        f"stack {label}",
        [x, draw.laid_out(x + x if x.dtype.kind != "b" else ~x)],
        lambda a, b: wf.stack([a, b], axis),
        lambda a, b: np.stack([a, b], axis),
        EXACT,
    )


# -- places ---------------------------------------------------------------------------------------


def takes(draw: Draw) -> Call | None:
    x, axis = _rows_and_axis(draw, DTYPES)
    if not x.shape[axis]:
        return None
    index = draw.rng.integers(-x.shape[axis], x.shape[axis], draw.shape(0, 2))
    return Call(
        f"take {x.dtype.name} {axis}",
        [x, index],
        lambda t, i: wf.take(t, i, axis=axis),
        lambda a, i: np.take(a, i, axis=axis),
        EXACT,
    )


def gathers(draw: Draw) -> Call | None:
    x, axis = _rows_and_axis(draw, DTYPES)
    if not x.shape[axis]:
        return None
    return Call(
        f"take_along_axis {x.dtype.name} {axis}",
        [x, _index_along(draw, x, axis)],
        lambda t, i: wf.take_along_axis(t, i, axis),
        lambda a, i: np.take_along_axis(a, i, axis),
        EXACT,
    )


def scatters(draw: Draw) -> Call | None:
    """Add whole numbers into places of which some may be named several times."""
    x, axis = _rows_and_axis(draw, ("int32", "int64", "float32"))
    if not x.shape[axis]:
        return None
    index = _index_along(draw, x, axis)
    source = draw.whole(index.shape, x.dtype)

    def of_arrays(a: Array, i: Array, s: Array) -> Array:
        out = a.copy()
        places = list(np.indices(i.shape))
        places[axis] = i
        np.add.at(out, tuple(places), s)
        return out

    return Call(
        f"scatter_add {x.dtype.name} {axis}",
        [x, index, source],
        lambda t, i, s: wf.scatter_add(t, axis, i, s),
        of_arrays,
        EXACT,
    )


def _rows_and_axis(draw: Draw, dtypes: Any) -> tuple[Array, int]:
    """Return whole numbers of one to three dimensions, and one of their axes."""
    x = draw.whole(draw.shape(1, 3), dtype_named(draw.choose(dtypes)))
    return x, draw.one_axis(x.ndim)


def _index_along(draw: Draw, x: Array, axis: int) -> Array:
    """Return numbers of rows along an axis, as many as there are rows or not."""
    shape = _resized(draw, x, axis, (1, 2, 33))
    return draw.rng.integers(0, x.shape[axis], shape)


def _resized(draw: Draw, x: Array, axis: int, sizes: Any) -> list[int]:
    shape = list(x.shape)
    shape[axis] = draw.choose(sizes)
    return shape


def writes(draw: Draw) -> Call:
    x = draw.whole(draw.shape(1, 3), dtype_named(draw.choose(DTYPES)))
    part = (slice(draw.choose((None, 1, -2)), None, draw.choose((1, 2, -1))),)
    value = draw.whole((), x.dtype)

    def of_arrays(a: Array, v: Array) -> Array:
        out = a.copy()
        out[part] = v
        return out

    label = f"index_set {x.dtype.name} {part}"
    return Call(label, [x, value], lambda t, v: wf.index_set(t, part, v), of_arrays, EXACT)


# -- products -------------------------------------------------------------------------------------


def products(draw: Draw) -> Call:
    m, k, n = draw.size(), draw.size(), draw.size()
    batch = draw.choose(((), (), (2,), (3, 1)))
    dtype = dtype_named(draw.choose((*FLOATS, "int32", "int64")))
    x, y = draw.whole((*batch, m, k), dtype, 2), draw.whole((k, n), dtype, 2)
    if draw.chance(0.3):
        y = draw.laid_out(np.ascontiguousarray(y.T)).T
    if draw.chance(0.2):
        x = x[..., 0, :] if m else x
    agreement = SUMMED if is_half(dtype) else EXACT
    return Call(f"matmul {dtype.name}", [x, y], wf.matmul, np.matmul, agreement)


def chains(draw: Draw) -> Call:
    """Several steps, so that kernels are fused and narrow types lie between wide ones."""
    dtype = dtype_named(draw.choose(("float32", "float64", "int32", "int16", "uint8", "float16")))
    shape = draw.shape(1, 3)
    x, y = draw.whole(shape, dtype, 5), draw.whole(draw.broadcastable(shape), dtype, 5)

    def of_tensors(a: Any, b: Any) -> Any:
        return wf.where((a > b) | (b == 2), (a != 0).astype(dtype), wf.maximum(a, b)) == b

    def of_arrays(a: Array, b: Array) -> Array:
        return np.where((a > b) | (b == 2), (a != 0).astype(a.dtype), np.maximum(a, b)) == b

    return Call(f"chain {dtype.name}", [x, y], of_tensors, of_arrays, EXACT)


FORMS = (
    *(smooth, smooth, binary_smooth, unary_exact, binary_exact, binary_exact, of_integers, casts),
    *(where, exact_reduction, exact_reduction, sums, positions, rows, movement, movement, joins),
    *(takes, gathers, scatters, writes, products, chains),
)
