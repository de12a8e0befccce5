"""The public random functions: each reserves counters from a generator and applies an operator.

All take `generator` (None = the default one, see wf.manual_seed); those that make tensors also take
`dtype`, `requires_grad` and `device`. Parameters may be numbers or tensors; tensors broadcast with
each other and, unless `shape` is given, set the shape of the result. Gradients reach the
parameters of `uniform`, `normal` and `exponential`, and the scale of `gamma`: these move and
stretch a standard draw (the reparameterisation of Kingma and Welling 2014).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F
from ...core.rng import Generator, manual_seed
from ...core.shape import normalize_axis, size_of
from ...core.tensor import Tensor, constant
from .._operands import names_errors
from . import continuous, discrete
from ._arguments import (
    as_sizes,
    as_tensor,
    like_dtype,
    made,
    plain,
    read_floats,
    read_parameters,
    read_tensor,
    shape_or_scalar,
)
from .state import draw, get_rng_state, set_rng_state

__all__ = [
    "bernoulli",
    "beta",
    "categorical",
    "dirichlet",
    "exponential",
    "gamma",
    "get_rng_state",
    "manual_seed",
    "multinomial",
    "normal",
    "orthogonal",
    "permutation",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "randperm",
    "set_rng_state",
    "truncated_normal",
    "uniform",
]

Parameter = float | Tensor
Shape = int | tuple[int, ...] | None


# -- continuous ---------------------------------------------------------------------------------


@names_errors
def rand(
    *shape: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw uniformly from [0, 1); sizes as in wf.rand(2, 3) or wf.rand((2, 3)).

    >>> import weft as wf
    >>> wf.rand(2, 3).shape
    (2, 3)
    """
    attrs = (as_sizes(shape), 0.0, 1.0, dtype)
    return made(draw(continuous.random_uniform, (), attrs, generator), requires_grad, device)


@names_errors
def randn(
    *shape: Any,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the standard normal distribution; sizes as in wf.randn(2, 3)."""
    attrs = (as_sizes(shape), 0.0, 1.0, dtype)
    return made(draw(continuous.random_normal, (), attrs, generator), requires_grad, device)


@names_errors
def rand_like(x: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Draw uniformly from [0, 1) in the shape and dtype of x."""
    x = read_tensor("rand_like", "x", x)
    return rand(x.shape, dtype=like_dtype(x) if dtype is None else dtype, **options)


@names_errors
def randn_like(x: Tensor, *, dtype: Any = None, **options: Any) -> Tensor:
    """Draw from the standard normal distribution in the shape and dtype of x."""
    x = read_tensor("randn_like", "x", x)
    return randn(x.shape, dtype=like_dtype(x) if dtype is None else dtype, **options)


@names_errors
def uniform(
    low: Parameter = 0.0,
    high: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw uniformly from [low, high).

    Where a bound is a tensor the result is low + (high - low) * u, differentiable in both, which
    rounding may bring to `high` itself.
    """
    if plain(low, high):
        attrs = (shape_or_scalar(shape), low, high, dtype)
        drawn = draw(continuous.random_uniform, (), attrs, generator)
        return made(drawn, requires_grad, device)
    (low, high), shape, dtype = read_parameters("uniform", shape, dtype, low=low, high=high)
    u = draw(continuous.random_uniform, (), (shape, 0.0, 1.0, dtype), generator)
    return made(low + (high - low) * u, requires_grad, device)


@names_errors
def normal(
    mean: Parameter = 0.0,
    std: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the normal distribution: mean + std * z with z standard normal.

    >>> import weft as wf
    >>> wf.normal(wf.zeros(3), 0.0)
    tensor([0., 0., 0.])
    """
    if plain(mean, std):
        attrs = (shape_or_scalar(shape), mean, std, dtype)
        drawn = draw(continuous.random_normal, (), attrs, generator)
        return made(drawn, requires_grad, device)
    if plain(std) and not std >= 0:
        raise ArgumentError(f"normal: std must not be negative. Received: {std}")
    (mean, std), shape, dtype = read_parameters("normal", shape, dtype, mean=mean, std=std)
    z = draw(continuous.random_normal, (), (shape, 0.0, 1.0, dtype), generator)
    return made(mean + std * z, requires_grad, device)


@names_errors
def truncated_normal(
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the normal distribution restricted to [a, b]."""
    attrs = (shape_or_scalar(shape), mean, std, a, b, dtype)
    drawn = draw(continuous.random_truncated_normal, (), attrs, generator)
    return made(drawn, requires_grad, device)


@names_errors
def exponential(
    rate: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the exponential distribution: a standard draw divided by `rate`."""
    if plain(rate) and not rate > 0:
        raise ArgumentError(f"exponential: rate must be positive. Received: {rate}")
    (rate,), shape, dtype = read_parameters("exponential", shape, dtype, rate=rate)
    drawn = draw(continuous.random_exponential, (), (shape, dtype), generator)
    scaled = drawn if plain(rate) and rate == 1 else drawn / rate
    return made(scaled, requires_grad, device)


@names_errors
def gamma(
    alpha: Parameter,
    scale: Parameter = 1.0,
    shape: Shape = None,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the gamma distribution of shape parameter alpha, times `scale`.

    The draw is a constant to alpha: no gradient reaches it.
    """
    (alpha, scale), shape, dtype = read_parameters("gamma", shape, dtype, alpha=alpha, scale=scale)
    drawn = draw(continuous.random_gamma, (as_tensor(alpha, dtype),), (shape,), generator)
    scaled = drawn if plain(scale) and scale == 1 else drawn * scale
    return made(scaled, requires_grad, device)


@names_errors
def beta(
    a: Parameter,
    b: Parameter,
    shape: Shape = None,
    *,
    dtype: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from the beta distribution: x / (x + y) of gamma draws x of alpha a, y of alpha b."""
    (a, b), shape, dtype = read_parameters("beta", shape, dtype, a=a, b=b)
    x = gamma(a, shape=shape, dtype=dtype, generator=generator)
    y = gamma(b, shape=shape, dtype=dtype, generator=generator)
    return x / (x + y)


@names_errors
def dirichlet(
    alpha: Tensor, shape: Shape = None, *, dtype: Any = None, generator: Generator | None = None
) -> Tensor:
    """Draw from the Dirichlet distribution: gamma draws divided by their sum.

    alpha has shape (..., K); `shape`, which ends in K too, asks for more draws.
    """
    x = gamma(alpha, shape=shape, dtype=dtype, generator=generator)
    if x.ndim == 0:
        raise ShapeError("dirichlet: alpha must have shape (..., K). Received: a single number")
    return x / F.sum(x, axis=-1, keepdims=True)


@names_errors
def orthogonal(
    *shape: Any,
    gain: float = 1.0,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw a matrix with orthonormal rows or columns (the fewer of them), times `gain`.

    Dimensions after the first are flattened together, as for convolution weights. Uniform over all
    such matrices: the signs of R's diagonal are moved into Q (Mezzadri 2007, section 5).
    """
    sizes = as_sizes(shape)
    if len(sizes) < 2:
        raise ShapeError(f"orthogonal: needs at least 2 dimensions. Received: shape {sizes}")
    rows, columns = sizes[0], size_of(sizes[1:])
    tall = (max(rows, columns), min(rows, columns))
    q, r = F.qr(randn(tall, dtype=dtype, generator=generator))
    q = q * F.where(F.diagonal(r) < 0, -1.0, 1.0)
    q = q if rows >= columns else F.permute(q, (1, 0))
    return made(F.reshape(q, sizes) * gain, requires_grad, device)


# -- discrete -----------------------------------------------------------------------------------


@names_errors
def randint(
    low: int,
    high: int | None = None,
    shape: Shape = None,
    *,
    dtype: Any = "int64",
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw integers from [low, high), or from [0, low) if high is not given.

    >>> import weft as wf
    >>> wf.randint(5, 6, (2, 2))
    tensor([[5, 5],
            [5, 5]])
    """
    low, high = (0, low) if high is None else (low, high)
    attrs = (shape_or_scalar(shape), low, high, dtype)
    return made(draw(discrete.random_integers, (), attrs, generator), False, device)


@names_errors
def bernoulli(
    p: Parameter,
    shape: Shape = None,
    *,
    dtype: Any = None,
    device: Any = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw 1 with probability p and 0 otherwise, in the dtype of p unless one is given."""
    (p,), shape, p_dtype = read_parameters("bernoulli", shape, None, p=p)
    drawn = draw(discrete.random_bernoulli, (as_tensor(p, p_dtype),), (shape, dtype), generator)
    return made(drawn, False, device)


@names_errors
def categorical(
    logits: Tensor,
    num_samples: int | None = None,
    *,
    replacement: bool = True,
    generator: Generator | None = None,
) -> Tensor:
    """Draw category indices from logits of shape (..., K).

    The result has shape (...), or (..., num_samples) if that is given.
    """
    number = 1 if num_samples is None else num_samples
    inputs, attrs = (read_floats("categorical", "logits", logits),), (number, replacement, True)
    drawn = draw(discrete.random_categorical, inputs, attrs, generator)
    return made(drawn[..., 0] if num_samples is None else drawn, False, None)


@names_errors
def multinomial(
    weights: Tensor,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Draw indices, shape (..., num_samples), in proportion to weights of shape (..., K)."""
    inputs = (read_floats("multinomial", "weights", weights),)
    attrs = (num_samples, replacement, False)
    return made(draw(discrete.random_categorical, inputs, attrs, generator), False, None)


@names_errors
def permutation(x: Any, axis: int = 0, *, generator: Generator | None = None) -> Tensor:
    """Draw a random order of 0 ... x-1, or shuffle the tensor x along an axis."""
    if isinstance(x, (int, np.integer)):
        return randperm(x, generator=generator)
    x = read_tensor("permutation", "x", x)
    axis = normalize_axis(axis, x.ndim, "permutation: axis")
    order = randperm(x.shape[axis], generator=generator)
    return F.take(x, order, axis=axis)


@names_errors
def randperm(n: Any, *, device: Any = None, generator: Generator | None = None) -> Tensor:
    """Draw a random order of 0 ... n-1."""
    return made(draw(discrete.random_permutation, (), (n,), generator), False, device)


def dropout_mask(
    x: Any, p: float, spatial: int = 0, *, scale: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Draw a mask for x: 0 with probability p, else `scale`; see the operator random_dropout."""
    inputs = (x if isinstance(x, Tensor) else constant(x),)
    return draw(continuous.random_dropout, inputs, (p, spatial, scale), generator)
