"""Random operators with integer or boolean results. Results are constants to differentiation."""

from __future__ import annotations

import math

import numpy as np

from ...core import dtype as dt
from ...core import random as kernels
from ...core.dim import surely_less
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.op import F, op, random
from ...core.random import formulas
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, as_shape
from ...core.tensor import Tensor
from ..index.search import given_up
from . import _placed as placed
from .continuous import SHAPES, STATE, WIDE_STATE, parameter_shape
from .state import check_state, drawn_at_once, read_state


@op(random, method=False)
def random_integers(
    state: Tensor, shape: tuple[int, ...], low: int, high: int, dtype: object = "int64"
) -> Tensor:
    """Draw integers from [low, high), all equally likely."""


@random_integers.canon
def _(state, shape, low, high, dtype):
    dtype, low, high = dt.as_dtype(dtype), as_int(low, "low"), as_int(high, "high")
    if not dt.is_integer(dtype):
        raise DTypeError(f"dtype must be an integer dtype. Received: {dtype}")
    limits = np.iinfo(dtype)
    beyond = surely_less(low, limits.min) or surely_less(limits.max + 1, high)
    if beyond or surely_less(high, low + 1):
        raise ArgumentError(
            f"low must be less than high, and {dtype} holds {limits.min} ... {limits.max}. "
            f"Received: low={low}, high={high}"
        )
    return as_shape(shape), low, high, dtype


@random_integers.infer
def _(state, shape, low, high, dtype):
    check_state(state)
    return TensorType(shape, dtype)


@random_integers.eval
def _(state, shape, low, high, dtype):
    if low >= high:  # sizes that a graph knows only now
        raise ArgumentError(f"low must be less than high. Received: low={low}, high={high}")
    return kernels.randint(*read_state(state), shape, low=low, high=high, dtype=dtype)


@random_integers.place
def _(b, state, shape, low, high, dtype):
    if low >= high:
        return None
    drawn = placed.lanes(b, state, 64)
    if high - low < 2**64:
        drawn = b.upper_product(drawn, high - low)
    return drawn + low % 2**64


@random_integers.blocks
def _(shape, low, high, dtype):
    return kernels.blocks_for(shape, dtype)


@random_integers.samples
def _(s):
    for shape in SHAPES:
        yield Sample(STATE, shape, -3, 10, grad=0)
    yield Sample(WIDE_STATE, (6,), -(2**63), 2**63, grad=0, label="all of int64")
    yield Sample(STATE, (6,), 0, 2**64, dtype="uint64", grad=0, label="all of uint64")
    yield Sample(STATE, (6,), -128, 128, dtype="int8", grad=0)


@random_integers.error_samples
def _(s):
    yield ErrorSample(STATE, (2,), 3, 3, error=ValueError, match="low=3, high=3")
    yield ErrorSample(STATE, (2,), 0, 257, dtype="uint8", error=ValueError, match=r"0 \.\.\. 255")
    yield ErrorSample(STATE, (2,), 0, 2, dtype="float32", error=TypeError, match="float32")
    yield ErrorSample(STATE, (2,), 0, 2.5, error=TypeError, match="high must be an integer")
    yield ErrorSample(STATE, -1, 0, 2, error=ValueError, match="-1")


@op(random, method=False)
def random_bernoulli(
    state: Tensor, p: Tensor, shape: tuple[int, ...] | None = None, dtype: object = None
) -> Tensor:
    """Draw 1 with probability p and 0 otherwise.

    p is broadcast to `shape` (default: its own shape); dtype None takes that of p.
    """


@random_bernoulli.canon
def _(state, p, shape, dtype):
    if not dt.is_float(p.dtype):
        raise DTypeError(f"p must be floating-point. Received: {p.dtype}")
    return parameter_shape(p, shape, "p"), p.dtype if dtype is None else dt.as_dtype(dtype)


@random_bernoulli.infer
def _(state, p, shape, dtype):
    check_state(state)
    return TensorType(shape, dtype)


@random_bernoulli.eval
def _(state, p, shape, dtype):
    return kernels.bernoulli(*read_state(state), shape, p=p).astype(dtype, copy=False)


@random_bernoulli.place
def _(b, state, p, shape, dtype):
    drawn = placed.lanes_for(b, state, p.dtype)
    probability = b.cast(p.here(), dt.float64)
    valid = placed.required(b, (probability >= 0.0) & (probability <= 1.0))
    return formulas.bernoulli(b, drawn, probability) & valid


@random_bernoulli.blocks
def _(p, shape, dtype):
    return kernels.blocks_for(shape, p.dtype)


@random_bernoulli.samples
def _(s):
    p = s.real(2, 3, low=0.0, high=1.0)
    yield Sample(STATE, p, grad=0)
    yield Sample(STATE, p[0], shape=(4, 3), dtype="bool", grad=0)
    yield Sample(WIDE_STATE, p.astype(np.float32), grad=0, label="float32")
    yield Sample(STATE, np.array([0.0, 1.0]), dtype="int64", grad=0, label="certain")
    yield Sample(STATE, p[:0], grad=0)
    yield Sample(STATE, np.array(0.5), shape=(), grad=0)


@random_bernoulli.error_samples
def _(s):
    yield ErrorSample(STATE, np.array([0.5, 1.5]), error=ValueError, match="1.5")
    yield ErrorSample(STATE, np.array([math.nan]), error=ValueError, match="nan")
    yield ErrorSample(STATE, np.array([1]), error=TypeError, match="Received: int64")
    yield ErrorSample(STATE, np.ones(3), shape=(1,), error=ValueError, match=r"\(3,\) does not")


@op(random, method=False)
def random_categorical(
    state: Tensor,
    weights: Tensor,
    num_samples: int = 1,
    replacement: bool = True,
    logits: bool = False,
) -> Tensor:
    """Draw indices, shape (..., num_samples), in proportion to weights of shape (..., K).

    logits: the weights are given as logarithms, up to an additive constant.
    """


@random_categorical.canon
def _(state, weights, num_samples, replacement, logits):
    if not dt.is_float(weights.dtype):
        raise DTypeError(f"weights must be floating-point. Received: {weights.dtype}")
    if weights.ndim == 0 or weights.shape[-1] == 0:
        raise ShapeError(f"weights must have shape (..., K), K >= 1. Received: {weights.shape}")
    num_samples = as_int(num_samples, "num_samples")
    if num_samples < 0:
        raise ArgumentError(f"num_samples must not be negative. Received: {num_samples}")
    return num_samples, _flag(replacement, "replacement"), _flag(logits, "logits")


@random_categorical.infer
def _(state, weights, num_samples, replacement, logits):
    check_state(state)
    return TensorType((*weights.shape[:-1], num_samples), dt.int64)


@random_categorical.eval
def _(state, weights, num_samples, replacement, logits):
    given = {"logits" if logits else "probabilities": weights}
    return kernels.categorical(
        *read_state(state), num_samples=num_samples, replacement=replacement, **given
    )


@random_categorical.expand
def _(state, weights, num_samples, replacement, logits):
    if not replacement:
        return None
    rows, zero = F.cast(weights, dt.float64), -math.inf if logits else 0.0
    possible = F.all((rows >= zero) & (rows < math.inf)) & F.all(F.any(rows > zero, -1))
    largest = F.max(rows, -1, True)
    scaled = F.exp(rows - largest) if logits else rows / largest
    cumulative = F.cumsum(scaled, -1)
    shape = (*weights.shape[:-1], num_samples)
    targets = F.random_uniform(state, shape, 0.0, 1.0, dtype="float64") * cumulative[..., -1:]
    places = F.minimum(F.sorted_search(cumulative, targets, True), weights.shape[-1] - 1)
    return places + given_up(possible)


random_categorical.batch(drawn_at_once)


@random_categorical.blocks
def _(weights, num_samples, replacement, logits):
    return kernels.categorical_blocks(weights.shape, num_samples, replacement=replacement)


@random_categorical.samples
def _(s):
    weights = s.positive(2, 4)
    yield Sample(STATE, weights, grad=0)
    yield Sample(STATE, weights, num_samples=5, grad=0)
    yield Sample(STATE, weights[0], num_samples=100, grad=0, label="many")
    yield Sample(STATE, weights, num_samples=4, replacement=False, grad=0)
    yield Sample(WIDE_STATE, s.real(3, 2, 4), num_samples=2, logits=True, grad=0)
    yield Sample(STATE, s.real(5), num_samples=2, replacement=False, logits=True, grad=0)
    yield Sample(STATE, np.array([0.0, 1.0, 0.0]), num_samples=3, grad=0, label="certain")
    yield Sample(STATE, weights[:0], num_samples=3, grad=0, label="no rows")
    yield Sample(STATE, weights, num_samples=0, grad=0, label="no samples")


@random_categorical.error_samples
def _(s):
    few = np.array([1.0, 0.0])
    yield ErrorSample(STATE, few, 2, False, error=ValueError, match="2 different categories")
    yield ErrorSample(STATE, np.array([1.0, -1.0]), error=ValueError, match="not negative")
    yield ErrorSample(STATE, np.zeros(3), error=ValueError, match="at least one category")
    yield ErrorSample(STATE, np.array(1.0), error=ValueError, match=r"Received: \(\)")
    yield ErrorSample(STATE, few, -1, error=ValueError, match="Received: -1")


@op(random, method=False)
def random_permutation(state: Tensor, n: int) -> Tensor:
    """Draw a random order of 0 ... n-1."""


@random_permutation.canon
def _(state, n):
    n = as_int(n, "n")
    if surely_less(n, 0):
        raise ArgumentError(f"n must not be negative. Received: {n}")
    return (n,)


@random_permutation.infer
def _(state, n):
    check_state(state)
    return TensorType((n,), dt.int64)


@random_permutation.eval
def _(state, n):
    return kernels.permutation(*read_state(state), n)


@random_permutation.expand
def _(state, n):
    return F.argsort(F.random_integers(state, (n,), 0, 2**64, dtype="uint64"), 0)


@random_permutation.blocks
def _(n):
    return kernels.blocks_for((n,), dt.int64)


@random_permutation.samples
def _(s):
    yield from (Sample(STATE, n, grad=0) for n in (0, 1, 2, 7))
    yield Sample(WIDE_STATE, 100, grad=0)


@random_permutation.error_samples
def _(s):
    yield ErrorSample(STATE, -1, error=ValueError, match="Received: -1")
    yield ErrorSample(STATE, 2.0, error=TypeError, match="n must be an integer")


def _flag(value, name):
    if not isinstance(value, (bool, np.bool_)):
        raise ArgumentTypeError(f"{name} must be True or False. Received: {value!r:.60}")
    return bool(value)
