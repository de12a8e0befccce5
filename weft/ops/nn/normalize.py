"""Normalisation: by layer, group, instance, batch, root mean square, norm, and across channels.

Statistics are computed in two passes (mean, then mean of squared deviations), which loses no digits
where the mean is large. The biased variance normalises.
"""

from __future__ import annotations

from typing import Any

from ...core.dim import size_max
from ...core.dtype import float32, float_limits, is_float
from ...core.errors import ArgumentError, ShapeError
from ...core.large import fused
from ...core.modes import no_grad
from ...core.op import F, composite
from ...core.shape import as_shape, size_of
from ...core.tensor import Tensor
from .._halves import common_float, rounded, rounded_once, widened
from .._operands import chosen_axis, operand
from ._arguments import (
    along_channels,
    check_ndim,
    check_not_negative,
    check_number,
    check_positive_int,
    check_vector,
    operands,
    same_dims,
)

CHANNELS = "(N, C, ...)"


@composite(fused=True)
@rounded_once
def layer_norm(
    x: Tensor,
    normalized_shape: int | tuple[int, ...],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the trailing dimensions `normalized_shape` (Ba et al. 2016).

    weight and bias, of that shape, scale and shift the result.
    """
    x, weight, bias = operands("layer_norm", x=x, weight=weight, bias=bias)
    axes = _trailing_axes("layer_norm", x, normalized_shape, weight, bias)
    return _affine(_standardized(x, axes, eps), weight, bias)


@composite(fused=True)
def rms_norm(
    x: Tensor,
    normalized_shape: int | tuple[int, ...],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Divide by the root mean square over the trailing dimensions (Zhang and Sennrich 2019).

    eps is added to the mean square; None takes the machine epsilon of the dtype.
    """
    x, weight = operands("rms_norm", x=x, weight=weight)
    axes = _trailing_axes("rms_norm", x, normalized_shape, weight, None)
    eps = _machine_epsilon(x) if eps is None else check_not_negative("rms_norm", "eps", eps)
    return _over_root_mean_square(x, axes, weight, eps)


@rounded_once
def _over_root_mean_square(x: Any, axes: tuple[int, ...], weight: Any, eps: float) -> Tensor:
    scale = F.rsqrt(F.mean(F.square(x), axis=axes, keepdims=True) + eps)
    return _affine(x * scale, weight, None)


@composite()
@rounded_once
def group_norm(
    x: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each sample over groups of channels (Wu and He 2018); x has shape (N, C, ...)."""
    x, weight, bias = operands("group_norm", x=x, weight=weight, bias=bias)
    check_ndim("group_norm", "x", x, 2, CHANNELS)
    _check_channel_vectors("group_norm", x, weight=weight, bias=bias)
    groups = check_positive_int("group_norm", "num_groups", num_groups)
    channels = x.shape[1]
    if channels % groups != 0:
        raise ArgumentError(
            f"group_norm: num_groups must divide the channels. "
            f"Received: {groups} groups for {channels} channels"
        )
    grouped = F.reshape(x, (x.shape[0], groups, channels // groups, *x.shape[2:]))
    normal = _standardized(grouped, tuple(range(2, grouped.ndim)), eps)
    return _channel_affine(F.reshape(normal, x.shape), weight, bias)


@composite()
def instance_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each sample over its positions (Ulyanov et al. 2016).

    x has shape (N, C, d1, ...). Running statistics, if given, follow the averages over samples;
    without use_input_stats they normalise in place of the sample's own.
    """
    fn = "instance_norm"
    x, running_mean, running_var, weight, bias = operands(
        fn, x=x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    check_ndim(fn, "x", x, 3, "(N, C, d1, ...)")
    _check_running(fn, x, running_mean, running_var, use_input_stats)
    _check_channel_vectors(fn, x, weight=weight, bias=bias)
    if not use_input_stats:
        return _with_running(fn, x, running_mean, running_var, weight, bias, eps)
    axes = tuple(range(2, x.ndim))
    _check_enough(fn, x, axes)
    normal, mean, var = normalized(x, weight, bias, axes, _checked_eps(fn, eps))
    if running_mean is not None:
        rows, columns = F.mean(mean, axis=0), F.mean(var, axis=0)
        _update_running(x, axes, running_mean, running_var, rows, columns, momentum)
    return normal


@composite()
def batch_norm(
    x: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel over the batch (Ioffe and Szegedy 2015); x has shape (N, C, ...).

    In training the batch's own statistics are used and, if running statistics are given, these are
    moved towards them in place: running = (1 - momentum) * running + momentum * batch, with the
    unbiased variance. Otherwise the running statistics normalise.
    """
    fn = "batch_norm"
    x, running_mean, running_var, weight, bias = operands(
        fn, x=x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias
    )
    check_ndim(fn, "x", x, 2, CHANNELS)
    _check_running(fn, x, running_mean, running_var, training)
    _check_channel_vectors(fn, x, weight=weight, bias=bias)
    if not training:
        return _with_running(fn, x, running_mean, running_var, weight, bias, eps)
    axes = (0, *range(2, x.ndim))
    _check_enough(fn, x, axes)
    normal, mean, var = normalized(x, weight, bias, axes, _checked_eps(fn, eps))
    if running_mean is not None:
        _update_running(x, axes, running_mean, running_var, mean, var, momentum)
    return normal


@composite()
@rounded_once
def normalize(
    x: Tensor, p: float = 2.0, axis: int = 1, eps: float = 1e-12, *, dim: int | None = None
) -> Tensor:
    """Divide by the p-norm along an axis, or by eps where the norm is smaller.

    >>> import weft as wf
    >>> wf.nn.functional.normalize(wf.tensor([[3.0, 4.0], [0.0, 0.0]]))
    tensor([[0.6, 0.8],
            [0. , 0. ]])
    """
    x = operand("normalize", "x", x)
    axis = chosen_axis("normalize", x, axis, dim)
    eps = check_not_negative("normalize", "eps", eps)
    norm = F.vector_norm(x, check_number("normalize", "p", p), axis, True)
    return x / F.maximum(norm, eps)


@composite()
@rounded_once
def local_response_norm(
    x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Divide by (k + alpha * mean of squares over `size` neighbouring channels) ** beta.

    Krizhevsky et al. 2012, section 3.3, with the mean in place of the sum; x has shape (N, C, ...).
    """
    fn = "local_response_norm"
    x = operand(fn, "x", x)
    check_ndim(fn, "x", x, 2, CHANNELS)
    size = check_positive_int(fn, "size", size)
    around = ((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (x.ndim - 2))
    squares, channels = F.pad(F.square(x), around), x.shape[1]
    total = squares[:, :channels]
    for offset in range(1, size):
        total = total + squares[:, offset : offset + channels]
    alpha, beta = check_number(fn, "alpha", alpha), check_number(fn, "beta", beta)
    return x / (total * (alpha / size) + check_number(fn, "k", k)) ** beta


# -- the parts --------------------------------------------------------------------------------


def _moments(x: Any, axes: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Return the mean, x minus the mean, and the biased variance, with reduced axes kept."""
    mean = F.mean(x, axis=axes, keepdims=True)
    centered = x - mean
    return mean, centered, F.mean(F.square(centered), axis=axes, keepdims=True)


def _standardized(x: Any, axes: tuple[int, ...], eps: float) -> Any:
    _, centered, var = _moments(x, axes)
    return centered * F.rsqrt(var + eps)


def _affine(x: Any, weight: Any, bias: Any) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _channel_affine(x: Any, weight: Any, bias: Any) -> Tensor:
    return _affine(x, along_channels(weight, x), along_channels(bias, x))


def _normalized(
    x: Any, weight: Any, bias: Any, axes: tuple[int, ...], eps: float
) -> tuple[Tensor, Any, Any]:
    """Return x normalised by its own statistics, and these, which are not rounded to halves."""
    mean, centered, var = _moments(widened(x), axes)
    wide = _channel_affine(centered * F.rsqrt(var + eps), widened(weight), widened(bias))
    return rounded(wide, common_float(x, weight, bias)), mean, var


def _normalized_in_few_passes(
    x: Any, weight: Any, bias: Any, axes: tuple[int, ...], eps: float
) -> tuple[Tensor, Any, Any]:
    """Return the same by a formula whose first derivative takes two passes over x.

    The variance does not change with the mean that deviations are taken from, so that mean counts
    as a number; where the result depends on the mean, that is said by a term of each channel. The
    derivative is then a sum of g, one of g times the deviations, and a pass that uses both.
    """
    wide = widened(x)
    mean = F.mean(wide, axis=axes, keepdims=True)
    fixed = F.stop_gradient(mean)
    centered = wide - fixed
    var = F.mean(F.square(centered), axis=axes, keepdims=True)
    scale = F.rsqrt(var + eps)
    scale = scale if weight is None else scale * along_channels(widened(weight), x)
    shift = (fixed - mean) * scale  # zero, but for its derivative
    shift = shift if bias is None else shift + along_channels(widened(bias), x)
    return rounded(centered * scale + shift, common_float(x, weight, bias)), mean, var


normalized = fused("normalized", _normalized, for_programs=_normalized_in_few_passes)


@rounded_once
def _with_running(
    fn: str, x: Any, mean: Any, var: Any, weight: Any, bias: Any, eps: float
) -> Tensor:
    """Normalise by running statistics: all factors are folded into one per channel."""
    scale = F.rsqrt(var + _checked_eps(fn, eps))
    scale = scale if weight is None else scale * weight
    shift = -mean * scale if bias is None else bias - mean * scale
    return _channel_affine(x, scale, shift)


def _update_running(
    x: Any,
    axes: tuple[int, ...],
    running_mean: Any,
    running_var: Any,
    mean: Any,
    var: Any,
    momentum: float,
) -> None:
    """Move the running statistics towards those of the batch, outside of any gradient."""
    if not getattr(momentum, "weak", False):  # not one of a recording, which counts batches
        momentum = check_number("batch_norm", "momentum", momentum)
    count = size_of(x.shape[i] for i in axes)
    unbiased = momentum * count / size_max(count - 1, 1)
    with no_grad():
        for running, batch, factor in (
            (running_mean, mean, momentum),
            (running_var, var, unbiased),
        ):
            new = F.reshape(F.stop_gradient(batch), running.shape) * factor
            running.copy_(rounded(widened(running) * (1 - momentum) + new, running.dtype))


# -- checks -----------------------------------------------------------------------------------


def _trailing_axes(
    fn: str, x: Any, normalized_shape: Any, weight: Any, bias: Any
) -> tuple[int, ...]:
    """Return the axes of the trailing dimensions `normalized_shape`, which must match."""
    shape = as_shape(normalized_shape, f"{fn}: normalized_shape")
    if not shape or not same_dims(tuple(x.shape[-len(shape) :]), shape):
        raise ShapeError(
            f"{fn}: x must end in the dimensions normalized_shape={shape}. Received: {x.shape}"
        )
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and not same_dims(tuple(vector.shape), shape):
            raise ShapeError(f"{fn}: {name} must have shape {shape}. Received: {vector.shape}")
    return tuple(range(x.ndim - len(shape), x.ndim))


def _check_channel_vectors(fn: str, x: Any, **vectors: Any) -> None:
    for name, vector in vectors.items():
        check_vector(fn, name, vector, x.shape[1])


def _check_running(fn: str, x: Any, mean: Any, var: Any, from_input: bool) -> None:
    if (mean is None) != (var is None):
        raise ArgumentError(f"{fn}: give both running_mean and running_var, or neither")
    if mean is None and not from_input:
        raise ArgumentError(
            f"{fn}: without statistics of the input, running_mean and running_var are needed"
        )
    _check_channel_vectors(fn, x, running_mean=mean, running_var=var)


def _check_enough(fn: str, x: Any, axes: tuple[int, ...]) -> None:
    if size_of(x.shape[i] for i in axes) == 1:
        raise ShapeError(
            f"{fn}: needs more than one value per channel to take statistics of. "
            f"Received: {x.shape}"
        )


def _checked_eps(fn: str, eps: Any) -> float:
    return check_not_negative(fn, "eps", eps)


def _machine_epsilon(x: Any) -> float:
    return float(float_limits(x.dtype if is_float(x.dtype) else float32).eps)
