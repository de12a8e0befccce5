"""Random operators with floating-point results.

Their arithmetic is that of `core.random`, exact to the bit. A draw is a constant to
differentiation; the public functions scale and shift a standard draw, so that gradients reach the
parameters.
"""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dt
from ...core import random as kernels
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError
from ...core.op import op, random
from ...core.random import formulas
from ...core.random.continuous import bounds_inside, interval, truncation
from ...core.rng import make_state
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, as_shape, broadcast
from ...core.tensor import Tensor
from . import _placed as placed
from .state import check_state, drawn_at_once, read_state


@op(random, method=False)
def random_uniform(
    state: Tensor, shape: tuple[int, ...], low: float = 0.0, high: float = 1.0, dtype: object = None
) -> Tensor:
    """Draw from the uniform distribution over [low, high); high itself never occurs."""


@random_uniform.canon
def _(state, shape, low, high, dtype):
    low, high = _finite(low, "low"), _finite(high, "high")
    if not low < high:
        raise ArgumentError(f"low must be less than high. Received: low={low}, high={high}")
    return as_shape(shape), low, high, _float_dtype(dtype)


@random_uniform.eval
def _(state, shape, low, high, dtype):
    return kernels.uniform(*read_state(state), shape, low=low, high=high, dtype=dtype)


@random_uniform.place
def _(b, state, shape, low, high, dtype):
    drawn = placed.lanes_for(b, state, dtype)
    if (low, high) == (0, 1) and dtype.itemsize == drawn.dtype.itemsize:
        return formulas.closed_unit(b, drawn)
    return formulas.uniform(b, drawn, *interval(low, high, dtype))


@op(random, method=False)
def random_normal(
    state: Tensor, shape: tuple[int, ...], mean: float = 0.0, std: float = 1.0, dtype: object = None
) -> Tensor:
    """Draw from the normal distribution."""


@random_normal.canon
def _(state, shape, mean, std, dtype):
    mean, std = _finite(mean, "mean"), _finite(std, "std")
    if std < 0:
        raise ArgumentError(f"std must not be negative. Received: {std}")
    return as_shape(shape), mean, std, _float_dtype(dtype)


@random_normal.eval
def _(state, shape, mean, std, dtype):
    return kernels.normal(*read_state(state), shape, mean=mean, std=std, dtype=dtype)


@random_normal.place
def _(b, state, shape, mean, std, dtype):
    drawn = placed.lanes_for(b, state, dtype)
    standard = (mean, std) == (0.0, 1.0)
    return formulas.standard_normal(b, drawn) if standard else formulas.normal(b, drawn, mean, std)


@op(random, method=False)
def random_truncated_normal(
    state: Tensor,
    shape: tuple[int, ...],
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    dtype: object = None,
) -> Tensor:
    """Draw from the normal distribution restricted to [a, b]; the bounds may be infinite."""


@random_truncated_normal.canon
def _(state, shape, mean, std, a, b, dtype):
    mean, std, a, b = _finite(mean, "mean"), _finite(std, "std"), _real(a, "a"), _real(b, "b")
    if not (std > 0 and a < b):
        raise ArgumentError(f"std must be positive and a < b. Received: {std=}, {a=}, {b=}")
    return as_shape(shape), mean, std, a, b, _float_dtype(dtype)


@random_truncated_normal.eval
def _(state, shape, mean, std, a, b, dtype):
    where = read_state(state)
    return kernels.truncated_normal(*where, shape, mean=mean, std=std, a=a, b=b, dtype=dtype)


@random_truncated_normal.place
def _(draw, state, shape, mean, std, a, b, dtype):
    start, mass, sign = truncation(mean, std, a, b)
    numbers = (start, mass, sign * std, mean, *bounds_inside(a, b, dtype))
    return formulas.truncated_normal(draw, placed.lanes_for(draw, state, dtype), *numbers)


@op(random, method=False)
def random_exponential(state: Tensor, shape: tuple[int, ...], dtype: object = None) -> Tensor:
    """Draw from the exponential distribution of rate 1."""


@random_exponential.canon
def _(state, shape, dtype):
    return as_shape(shape), _float_dtype(dtype)


@random_exponential.eval
def _(state, shape, dtype):
    return kernels.exponential(*read_state(state), shape, dtype=dtype)


@random_exponential.place
def _(b, state, shape, dtype):
    return formulas.exponential(b, placed.lanes_for(b, state, dtype), -1.0)


@op(random, method=False)
def random_gamma(state: Tensor, alpha: Tensor, shape: tuple[int, ...] | None = None) -> Tensor:
    """Draw from the gamma distribution of shape parameter alpha and scale 1.

    alpha is broadcast to `shape` (default: its own shape) and gives the dtype.
    """


@random_gamma.canon
def _(state, alpha, shape):
    if not dt.is_float(alpha.dtype):
        raise DTypeError(f"alpha must be floating-point. Received: {alpha.dtype}")
    return (parameter_shape(alpha, shape, "alpha"),)


@random_gamma.infer
def _(state, alpha, shape):
    check_state(state)
    return TensorType(shape, alpha.dtype)


@random_gamma.eval
def _(state, alpha, shape):
    return kernels.gamma(*read_state(state), shape, alpha=alpha, dtype=alpha.dtype)


@random_gamma.blocks
def _(alpha, shape):
    return kernels.gamma_blocks(shape)


@op(random, method=False)
def random_dropout(
    state: Tensor, x: Tensor, p: float, spatial: int = 0, scale: float = 1.0
) -> Tensor:
    """Draw a mask for x: 0 with probability p and `scale` otherwise.

    Only the shape and dtype of x are used. The last `spatial` dimensions have size 1 in the mask:
    they are dropped together.
    """


@random_dropout.canon
def _(state, x, p, spatial, scale):
    if not dt.is_float(x.dtype):
        raise DTypeError(f"x must be floating-point. Received: {x.dtype}")
    p, spatial = _real(p, "p"), as_int(spatial, "spatial")
    if not 0 <= p <= 1:
        raise ArgumentError(f"p must lie in [0, 1]. Received: {p}")
    if not 0 <= spatial <= x.ndim:
        raise ArgumentError(f"spatial must be from 0 to {x.ndim}, x.ndim. Received: {spatial}")
    return p, spatial, _finite(scale, "scale")


@random_dropout.infer
def _(state, x, p, spatial, scale):
    check_state(state)
    return TensorType(_mask_shape(x.shape, spatial), x.dtype)


@random_dropout.eval
def _(state, x, p, spatial, scale):
    # Of float32, so that a lane of 32 bits is spent on an element whatever the dtype of x.
    keep = np.float32(1 - p)
    drawn = kernels.bernoulli(*read_state(state), _mask_shape(x.shape, spatial), p=keep)
    return drawn * x.dtype.type(scale)


@random_dropout.place
def _(b, state, x, p, spatial, scale):
    kept = placed.is_below(b, placed.lanes(b, state, 32), float(np.float32(1 - p)))
    return b.select(kept, b.constant(scale, b.result), 0)


random_dropout.batch(drawn_at_once)


@random_dropout.blocks
def _(x, p, spatial, scale):
    return kernels.blocks_for(_mask_shape(x.shape, spatial), dt.float32)


def _mask_shape(shape, spatial):
    return (*shape[: len(shape) - spatial], *(1,) * spatial)


# -- shared rules -----------------------------------------------------------------------------


def _declare_shaped(record):
    """Give an operator (state, shape, ..., dtype) its type rule and its number of blocks."""

    @record.infer
    def _(state, shape, *options):
        check_state(state)
        return TensorType(shape, options[-1])

    @record.blocks
    def _(shape, *options):
        return kernels.blocks_for(shape, options[-1])


for _record in (random_uniform, random_normal, random_truncated_normal, random_exponential):
    _declare_shaped(_record)


def parameter_shape(parameter, shape, name):
    """Return the shape of a draw whose parameter is a tensor that must broadcast to it."""
    if shape is None:
        return tuple(parameter.shape)
    shape = as_shape(shape)
    if broadcast(tuple(parameter.shape), shape) != shape:
        raise ArgumentError(
            f"{name} of shape {tuple(parameter.shape)} does not broadcast to shape {shape}"
        )
    return shape


def _float_dtype(dtype):
    dtype = dt.default_float() if dtype is None else dt.as_dtype(dtype)
    if not dt.is_float(dtype):
        raise DTypeError(f"dtype must be floating-point. Received: {dtype}")
    return dtype


def _real(value, name):
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{name} must be a number. Received: {value!r:.60}")
    return float(value)


def _finite(value, name):
    number = _real(value, name)
    if not math.isfinite(number):
        raise ArgumentError(f"{name} must be finite. Received: {number}")
    return number


# -- samples ----------------------------------------------------------------------------------

SHAPES = ((), (1,), (5,), (2, 3), (0,), (2, 0, 3))
STATE = make_state(7, 11)
WIDE_STATE = make_state(7 | 9 << 64, 2**63)  # a key of a forked generator; a late counter


def shaped_samples(**options):
    """Yield samples of an operator (state, shape, ...) over shapes, states and dtypes."""
    for shape in SHAPES:
        yield Sample(STATE, shape, grad=0, **options)
    yield Sample(WIDE_STATE, (2, 3), dtype="float64", grad=0, **options)
    yield Sample(STATE, 3, dtype="float16", grad=0, **options)


def shaped_errors():
    """Yield bad arguments common to operators (state, shape, ..., dtype)."""
    yield ErrorSample(STATE, (2, -1), error=ValueError, match=r"\(2, -1\)")
    yield ErrorSample(STATE, 2.5, error=TypeError, match="Received: 2.5")
    yield ErrorSample(STATE, (2,), dtype="int64", error=TypeError, match="Received: int64")
    yield ErrorSample(STATE, (2,), dtype="bool", error=TypeError, match="Received: bool")
    yield ErrorSample(STATE[:2], (2,), error=ValueError, match=r"Received: \(2,\)")
    yield ErrorSample(STATE.astype(np.int64), (2,), error=TypeError, match="Received: int64")


@random_uniform.samples
def _(s):
    yield from shaped_samples()
    yield from shaped_samples(low=-2.0, high=3)


@random_uniform.error_samples
def _(s):
    yield from shaped_errors()
    yield ErrorSample(STATE, (2,), 1.0, 1.0, error=ValueError, match="low=1.0, high=1.0")
    yield ErrorSample(STATE, (2,), -math.inf, error=ValueError, match="low must be finite")
    yield ErrorSample(STATE, (2,), 0.0, math.nan, error=ValueError, match="high must be finite")
    yield ErrorSample(STATE, (2,), "a", error=TypeError, match="low must be a number")


@random_normal.samples
def _(s):
    yield from shaped_samples()
    yield from shaped_samples(mean=5.0, std=0.25)
    yield Sample(STATE, (3,), 1.0, 0.0, grad=0, label="no spread")


@random_normal.error_samples
def _(s):
    yield from shaped_errors()
    yield ErrorSample(STATE, (2,), 0.0, -1.0, error=ValueError, match="Received: -1")
    yield ErrorSample(STATE, (2,), 0.0, math.inf, error=ValueError, match="std must be finite")
    yield ErrorSample(STATE, (2,), math.nan, error=ValueError, match="mean must be finite")
    yield ErrorSample(STATE, (2,), "a", error=TypeError, match="mean must be a number")


@random_truncated_normal.samples
def _(s):
    yield from shaped_samples()
    yield from shaped_samples(mean=1.0, std=2.0, a=0.5, b=math.inf)


@random_truncated_normal.error_samples
def _(s):
    yield from shaped_errors()
    yield ErrorSample(STATE, (2,), a=1.0, b=0.0, error=ValueError, match="a=1.0, b=0.0")
    yield ErrorSample(STATE, (2,), a=math.nan, error=ValueError, match="a=nan")
    yield ErrorSample(STATE, (2,), std=0.0, error=ValueError, match="std=0.0")
    yield ErrorSample(STATE, (2,), std=-1.0, error=ValueError, match="std=-1.0")
    yield ErrorSample(STATE, (2,), math.inf, error=ValueError, match="mean must be finite")


@random_exponential.samples
def _(s):
    yield from shaped_samples()


@random_exponential.error_samples
def _(s):
    yield from shaped_errors()


@random_gamma.samples
def _(s):
    yield Sample(STATE, s.positive(4), grad=0)
    yield Sample(STATE, s.positive(), shape=(2, 3), grad=0)
    yield Sample(WIDE_STATE, s.positive(3).astype(np.float32), shape=(2, 3), grad=0)
    yield Sample(STATE, np.array([0.01, 0.5, 1.0, 50.0]), grad=0, label="small and large alpha")
    yield Sample(STATE, s.positive(0), grad=0)


@random_gamma.error_samples
def _(s):
    yield ErrorSample(STATE, np.array([1.0, -1.0]), error=ValueError, match="alpha must be pos")
    yield ErrorSample(STATE, np.array([1]), error=TypeError, match="Received: int64")
    yield ErrorSample(
        STATE, s.positive(3), shape=(2,), error=ValueError, match=r"\(3,\) and \(2,\)"
    )
    yield ErrorSample(STATE, s.positive(3), shape=(1,), error=ValueError, match=r"\(3,\) does not")


@random_dropout.samples
def _(s):
    yield Sample(STATE, s.real(3, 4), 0.5, grad=0)
    yield Sample(STATE, s.real(3, 4), 0.25, scale=2.0, grad=0)
    yield Sample(STATE, s.real(2, 3, 2, 2), 0.5, spatial=2, grad=0, label="channels")
    yield Sample(STATE, s.real(), 0.5, grad=0)
    yield Sample(STATE, s.real(0, 3), 0.5, grad=0)
    yield Sample(STATE, s.real(5), 0, grad=0, label="nothing dropped")
    yield Sample(STATE, s.real(5).astype(np.float16), 1.0, grad=0, label="all dropped")


@random_dropout.error_samples
def _(s):
    yield ErrorSample(STATE, s.real(3), 1.5, error=ValueError, match="Received: 1.5")
    yield ErrorSample(STATE, s.real(3), 0.5, spatial=2, error=ValueError, match="Received: 2")
    yield ErrorSample(STATE, s.integers(3), 0.5, error=TypeError, match="Received: int64")
