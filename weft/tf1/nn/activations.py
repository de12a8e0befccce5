"""Activations, dropout and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...ops.random import draw
from ..array_ops import shape_tensor
from ..environment import whole_numbers
from ..math_ops import _unary, sigmoid, tanh
from ..random_ops import random_operation
from ..recording import Tensor, convert_to_tensor, is_tensor, record
from ..reductions import axes_of

__all__ = ["sigmoid", "tanh"]

relu = _unary("relu", "Relu", "relu")
relu6 = _unary("relu6", "Relu6", "relu6")
elu = _unary("elu", "Elu", "elu")
selu = _unary("selu", "Selu", "selu")
softplus = _unary("softplus", "Softplus", "softplus")
softsign = _unary("softsign", "Softsign", "softsign")
swish = _unary("swish", "Swish", "silu")


def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """Return x where it is positive, else alpha x."""
    made: Tensor = record(
        "LeakyRelu",
        lambda x: F.maximum(x, x * alpha) if alpha <= 1 else F.leaky_relu(x, alpha),
        [features],
        name=name,
    )
    return made


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """Return the positive and the negative part of x side by side."""
    made: Tensor = record(
        "CRelu", lambda x: F.concat([F.relu(x), F.relu(-x)], axis), [features], name=name
    )
    return made


def softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Return probabilities from logits."""
    place = axes_of(axis, dim, "dim")
    made: Tensor = record(
        "Softmax", lambda x: F.softmax(x, -1 if place is None else place), [logits], name=name
    )
    return made


def log_softmax(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Return the logarithms of probabilities from logits."""
    place = axes_of(axis, dim, "dim")
    made: Tensor = record(
        "LogSoftmax",
        lambda x: F.log_softmax(x, -1 if place is None else place),
        [logits],
        name=name,
    )
    return made


def dropout(
    x: Any,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: Any = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Return x with elements at random set to 0, the others divided by the probability to stay."""
    if keep_prob is None and rate is None:
        raise ValueError("Missing argument: You must specify keep_prob or rate")
    if keep_prob is not None and rate is not None:
        raise ValueError("Cannot specify both 'keep_prob' and 'rate'")
    keep = keep_prob if rate is None else 1 - rate
    value = convert_to_tensor(x)
    if not value.dtype.is_floating:
        raise ValueError(
            "x has to be a floating point tensor since it's going to be scaled. Got a "
            f"{value.dtype} tensor instead."
        )
    if not is_tensor(keep):
        if not 0 < keep <= 1:
            raise ValueError(
                f"keep_prob must be a scalar tensor or a float in the range (0, 1], got {keep}"
            )
        if keep == 1:
            return value
    inputs = [value, convert_to_tensor(keep, None if is_tensor(keep) else value.dtype)]
    if noise_shape is not None:
        inputs.append(shape_tensor(noise_shape))

    def draws(x: Any, p: Any, *noise: Any, generator: Any) -> Any:
        sizes = x.shape if not noise else _noise(x.shape, whole_numbers(noise[0]))
        u = draw.rand(sizes, dtype=x.dtype, generator=generator)
        return F.where(F.broadcast_to(u < p, x.shape), x / p, F.zeros_like(x))

    return random_operation(
        "Dropout",
        draws,
        inputs,
        seed=seed,
        dtype=value.dtype,
        name=name or "dropout",
        static=[2] if noise_shape is not None else [],
        differentiable=True,
    )


def _noise(shape: Any, noise: Any) -> Any:
    return tuple(s if n == -1 else n for s, n in zip(shape, noise, strict=True))


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Return half the sum of squares."""
    made: Tensor = record("L2Loss", lambda x: F.sum(F.square(x)) / 2, [t], name=name)
    return made


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Return x divided by its norm along axes."""
    axes = axes_of(axis, dim, "dim")

    def compute(x: Any) -> Any:
        return x * F.rsqrt(F.maximum(F.sum(F.square(x), axis=axes, keepdims=True), epsilon))

    made: Tensor = record("L2Normalize", compute, [x], name=name)
    return made


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1.0,
    alpha: float = 1.0,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Return x divided by a power of the sum of squares of channels nearby; channels are last."""

    def compute(x: Any) -> Any:
        width = 2 * depth_radius + 1
        made = F.local_response_norm(F.moveaxis(x, -1, 1), width, alpha * width, beta, bias)
        return F.moveaxis(made, 1, -1)

    made: Tensor = record("LRN", compute, [input], name=name)
    return made


lrn = local_response_normalization


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: Any = None,
    keepdims: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over axes."""
    places = axes_of(axes, None, "axes")
    keep = bool(keepdims if keep_dims is None else keep_dims)

    def compute(x: Any) -> Any:
        return F.mean(x, places, keepdims=keep), F.var(x, places, keepdims=keep)

    mean, variance = record("Moments", compute, [x], outputs=2, name=name or "moments")
    return mean, variance


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: Any,
    name: str | None = None,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + epsilon) * scale + offset."""
    value = convert_to_tensor(x)
    given = {"scale": scale, "offset": offset}
    parts = {
        k: convert_to_tensor(v, None if is_tensor(v) else value.dtype)
        for k, v in given.items()
        if v is not None
    }

    def compute(x: Any, mean: Any, variance: Any, *rest: Any) -> Any:
        found = dict(zip(parts, rest, strict=True))
        factor = F.rsqrt(variance + variance_epsilon)
        factor = factor * found["scale"] if "scale" in found else factor
        moved = x * factor - mean * factor
        return moved + found["offset"] if "offset" in found else moved

    made: Tensor = record(
        "BatchNorm", compute, [value, mean, variance, *parts.values()], name=name or "batchnorm"
    )
    return made


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return normalised images, and the mean and (unbiased) variance of the batch."""
    if data_format != "NHWC":
        raise ValueError("fused_batch_norm: use data_format='NHWC'")
    if not is_training:
        return batch_normalization(x, mean, variance, offset, scale, epsilon, name), mean, variance
    middle, spread = moments(x, [0, 1, 2])
    made = batch_normalization(x, middle, spread, offset, scale, epsilon, name)
    value = convert_to_tensor(x)
    unbiased = record("Unbiased", _unbiased, [spread, value])
    return made, middle, unbiased


def _unbiased(variance: Any, x: Any) -> Any:
    count = x.numel() // x.shape[-1]
    return variance * (count / (count - 1)) if isinstance(count, int) and count > 1 else variance


def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """Return a value with a bias added to its channels."""
    if data_format is not None and data_format.startswith("NC"):

        def compute(x: Any, b: Any) -> Any:
            return x + F.reshape(b, (-1, *(1,) * (x.ndim - 2)))
    else:

        def compute(x: Any, b: Any) -> Any:
            if b.ndim != 1:
                raise ValueError(f"Shape must be rank 1 but is rank {b.ndim}")
            if x.shape[-1] != b.shape[0]:
                raise ValueError(
                    f"Dimensions must be equal, but are {x.shape[-1]} and {b.shape[0]}"
                )
            return x + b

    made: Tensor = record("BiasAdd", compute, [value, bias], name=name)
    return made


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Return x weights + biases."""
    made: Tensor = record(
        "XWPlusB",
        lambda x, w, b: F.matmul(x, w) + b,
        [x, weights, biases],
        name=name or "xw_plus_b",
    )
    return made


def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """Return relu(x weights + biases)."""
    return relu(xw_plus_b(x, weights, biases), name or "relu_layer")


def zero_fraction(value: Any, name: str | None = None) -> Tensor:
    """Return which part of the elements is 0."""
    made: Tensor = record(
        "ZeroFraction",
        lambda x: F.mean(F.cast(x == 0, np.float32)),
        [value],
        name=name,
        dtype="float32",
    )
    return made
