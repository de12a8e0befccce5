"""Initialise tensors in place: PyTorch's `torch.nn.init`, by Weft's random numbers.

Every function writes into the tensor it is given, unrecorded, and returns it. `generator` chooses
the random numbers (None: the default generator, see `wf.manual_seed`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ..core.lost_writes import refusing_lost_arguments
from ..core.modes import no_grad
from ..core.rng import Generator
from ..core.shape import size_of
from ..core.tensor import Tensor
from ..ops.random import draw
from .arguments import as_choice, as_number, as_size
from .parameter import UninitializedParameter

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

T = TypeVar("T", bound=Tensor)


# -- by a distribution ---------------------------------------------------------------------------


@refusing_lost_arguments
def uniform_(tensor: T, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> T:
    """Fill with draws from the uniform distribution over [a, b)."""
    _check(tensor, "uniform_")
    if a == b:
        return constant_(tensor, a)
    drawn = draw.uniform(a, b, tensor.shape, dtype=_draw_dtype(tensor), generator=generator)
    return _fill(tensor, drawn)


@refusing_lost_arguments
def normal_(
    tensor: T, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> T:
    """Fill with draws from the normal distribution."""
    _check(tensor, "normal_")
    dtype = _draw_dtype(tensor)
    return _fill(tensor, draw.normal(mean, std, tensor.shape, dtype=dtype, generator=generator))


@refusing_lost_arguments
def trunc_normal_(
    tensor: T,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> T:
    """Fill with draws from the normal distribution restricted to [a, b]."""
    _check(tensor, "trunc_normal_")
    dtype = _draw_dtype(tensor)
    drawn = draw.truncated_normal(mean, std, a, b, tensor.shape, dtype=dtype, generator=generator)
    return _fill(tensor, drawn)


@refusing_lost_arguments
def xavier_uniform_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Fill from U(-a, a), a = gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain, "xavier_uniform_")
    return uniform_(tensor, -bound, bound, generator)


@refusing_lost_arguments
def xavier_normal_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Fill from N(0, s), s = gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio 2010)."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain, "xavier_normal_"), generator)


@refusing_lost_arguments
def kaiming_uniform_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Fill from U(-b, b), b = gain * sqrt(3 / fan) (He et al. 2015).

    a is the negative slope if the nonlinearity that follows is leaky_relu; mode "fan_in" keeps the
    variance of activations, "fan_out" that of gradients.
    """
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_uniform_")
    return uniform_(tensor, -bound, bound, generator)


@refusing_lost_arguments
def kaiming_normal_(
    tensor: T,
    a: float = 0.0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> T:
    """Fill from N(0, gain / sqrt(fan)) (He et al. 2015); see `kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity, "kaiming_normal_")
    return normal_(tensor, 0.0, std, generator)


@refusing_lost_arguments
def orthogonal_(tensor: T, gain: float = 1.0, generator: Generator | None = None) -> T:
    """Fill with a matrix of orthonormal rows or columns, times gain (Saxe et al. 2013).

    Dimensions after the first are taken together.
    """
    _check(tensor, "orthogonal_", least=2)
    if tensor.size == 0:
        return tensor
    options: dict[str, Any] = {"dtype": _draw_dtype(tensor), "generator": generator}
    return _fill(tensor, draw.orthogonal(tensor.shape, gain=gain, **options))


@refusing_lost_arguments
def sparse_(tensor: T, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> T:
    """Fill a matrix from N(0, std) and set a fraction of each column to zero (Martens 2010)."""
    _check(tensor, "sparse_")
    if tensor.ndim != 2:
        raise ShapeError(f"sparse_: needs a matrix. Received: shape {tensor.shape}")
    if not 0 <= as_number("sparse_", "sparsity", sparsity) <= 1:
        raise ArgumentError(f"sparse_: sparsity must lie in [0, 1]. Received: {sparsity!r}")
    normal_(tensor, 0.0, std, generator)
    order = draw.rand(tensor.shape, generator=generator).numpy().argsort(axis=0)
    zeros = order < math.ceil(sparsity * tensor.shape[0])
    return _fill(tensor, np.where(zeros, tensor.dtype.type(0), tensor.numpy()))


# -- fixed values --------------------------------------------------------------------------------


@refusing_lost_arguments
def constant_(tensor: T, val: float) -> T:
    """Fill with one number."""
    _check(tensor, "constant_")
    return _fill(tensor, as_number("constant_", "val", val))


@refusing_lost_arguments
def ones_(tensor: T) -> T:
    """Fill with ones."""
    return constant_(tensor, 1.0)


@refusing_lost_arguments
def zeros_(tensor: T) -> T:
    """Fill with zeros."""
    return constant_(tensor, 0.0)


@refusing_lost_arguments
def eye_(tensor: T) -> T:
    """Fill a matrix with the identity: a linear layer then keeps as many inputs as it can."""
    _check(tensor, "eye_")
    if tensor.ndim != 2:
        raise ShapeError(f"eye_: needs a matrix. Received: shape {tensor.shape}")
    return _fill(tensor, np.eye(tensor.shape[0], tensor.shape[1]))


@refusing_lost_arguments
def dirac_(tensor: T, groups: int = 1) -> T:
    """Fill a convolution weight so that it keeps as many channels as it can, in each group."""
    _check(tensor, "dirac_")
    groups = as_size("dirac_", "groups", groups)
    if tensor.ndim not in (3, 4, 5):
        raise ShapeError(
            f"dirac_: needs a convolution weight of 3, 4 or 5 dimensions. Received: {tensor.shape}"
        )
    outputs, inputs, *kernel = tensor.shape
    if outputs % groups:
        raise ArgumentError(
            f"dirac_: groups must divide the {outputs} output channels. Received: {groups}"
        )
    filled = np.zeros(tensor.shape)
    each = outputs // groups
    kept = np.arange(min(each, inputs))
    center: tuple[Any, ...] = tuple(k // 2 for k in kernel)
    for group in range(groups):
        where: tuple[Any, ...] = (group * each + kept, kept, *center)
        filled[where] = 1
    return _fill(tensor, filled)


# -- gains ---------------------------------------------------------------------------------------

GAINS: dict[str, Callable[[float], float]] = {
    **dict.fromkeys(("linear", "sigmoid"), lambda _: 1.0),
    **{f"conv{t}{d}d": lambda _: 1.0 for t in ("", "_transpose") for d in (1, 2, 3)},
    "tanh": lambda _: 5.0 / 3.0,
    "relu": lambda _: math.sqrt(2.0),
    "leaky_relu": lambda slope: math.sqrt(2.0 / (1.0 + slope**2)),
    "selu": lambda _: 0.75,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before a nonlinearity are scaled.

    param is the negative slope of leaky_relu (0.01 by default).

    >>> calculate_gain("relu")
    1.4142135623730951
    """
    if nonlinearity not in GAINS:
        raise ArgumentError(
            f"calculate_gain: nonlinearity must be one of {', '.join(GAINS)}. "
            f"Received: {nonlinearity!r}"
        )
    slope = 0.01 if param is None else as_number("calculate_gain", "param", param)
    return GAINS[nonlinearity](slope)


def fans(tensor: Any, what: str = "fans") -> tuple[int, int]:
    """Return how many inputs and outputs each element of a weight connects: fan_in, fan_out."""
    _check(tensor, what, least=2)
    receptive = size_of(tensor.shape[2:])
    return tensor.shape[1] * receptive, tensor.shape[0] * receptive


def _xavier_std(tensor: Tensor, gain: float, what: str) -> float:
    total = sum(fans(tensor, what))
    return as_number(what, "gain", gain) * math.sqrt(2.0 / total) if total else 0.0


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str, what: str) -> float:
    fan_in, fan_out = fans(tensor, what)
    fan = fan_in if as_choice(what, "mode", mode, ("fan_in", "fan_out")) == "fan_in" else fan_out
    return calculate_gain(nonlinearity, a) / math.sqrt(fan) if fan else 0.0


# -- writing -------------------------------------------------------------------------------------


def _fill(tensor: T, value: Any) -> T:
    with no_grad():
        tensor.copy_(value)
    return tensor


def _draw_dtype(tensor: Tensor) -> dt.DType:
    """Return the dtype to draw in: a 16-bit tensor takes rounded draws of 32 bits."""
    return dt.float64 if tensor.dtype == dt.float64 else dt.float32


def _check(tensor: Any, what: str, least: int = 0) -> None:
    if not isinstance(tensor, Tensor):
        raise ArgumentTypeError(f"{what}: expected a tensor. Received: {type(tensor).__name__}")
    if isinstance(tensor, UninitializedParameter):
        raise ArgumentError(
            f"{what}: this parameter has no shape yet; run its layer once on an example input"
        )
    if not dt.is_float(tensor.dtype):
        raise DTypeError(f"{what}: the tensor must be floating-point. Received: {tensor.dtype}")
    if tensor.ndim < least:
        raise ShapeError(
            f"{what}: needs a tensor of at least {least} dimensions, as fan_in and fan_out have "
            f"no meaning for shape {tensor.shape}"
        )
