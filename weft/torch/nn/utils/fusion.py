"""Batch normalisation in evaluation as part of the layer before it."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

from ....core.op import F
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution that computes what a convolution and its batch norm compute.

    >>> from weft import torch
    >>> conv, norm = torch.nn.Conv1d(2, 3, 1).eval(), torch.nn.BatchNorm1d(3).eval()
    >>> x = torch.ones(1, 2, 4)
    >>> torch.allclose(fuse_conv_bn_eval(conv, norm)(x), norm(conv(x)))
    True
    """
    return _fused(conv, bn, partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_conv_bn_weights(
    conv_w: Any,
    conv_b: Any,
    bn_rm: Any,
    bn_rv: Any,
    bn_eps: float,
    bn_w: Any,
    bn_b: Any,
    transpose: bool = False,
) -> tuple[Any, Any]:
    """Return weight and bias of a convolution with its batch norm; transposed ones by a flag."""
    channels = 1 if transpose else 0
    return _fused_weights(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, channels)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer that computes what a linear layer and its batch norm compute."""
    if bn.num_features not in (1, linear.out_features):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """Return weight and bias of a linear layer with its batch norm."""
    return _fused_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer: Any, bn: Any, weights: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = weights(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def _fused_weights(
    weight: Any,
    bias: Any,
    mean: Any,
    variance: Any,
    eps: float,
    scale: Any,
    shift: Any,
    channels: int,
) -> tuple[Any, Any]:
    """Return weight and bias scaled by channel; `channels` is the axis of the weight's."""
    factor = F.rsqrt(variance + eps)
    if scale is not None:
        factor = factor * scale
    moved = (-mean if bias is None else bias - mean) * factor
    if shift is not None:
        moved = moved + shift
    shape = [1] * weight.ndim
    shape[channels] = -1
    return (
        _parameter(weight * F.reshape(factor, tuple(shape)), weight),
        _parameter(moved, weight if bias is None else bias, trained=bias is not None),
    )


def _parameter(value: Any, like: Any, trained: bool = True) -> Any:
    """Return a value as a parameter of the dtype of another, trained as that is."""
    return Parameter(F.cast(value, like.dtype), trained and like.requires_grad)
