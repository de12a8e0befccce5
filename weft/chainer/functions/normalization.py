"""Normalisation over batches, channels and examples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F
from ...core.tensor import Tensor
from ..variable import as_tensor
from ._common import function


def _axes(x: Tensor, gamma: Tensor, axis: Any) -> tuple[int, ...]:
    """Return the axes over which statistics are taken: all that gamma does not have."""
    if axis is not None:
        return (axis,) if isinstance(axis, int) else tuple(axis)
    return (0, *range(gamma.ndim + 1, x.ndim))


def _spread(x: Tensor, value: Any, axes: tuple[int, ...]) -> Tensor:
    """Return statistics in a shape that broadcasts with x."""
    return F.reshape(value, tuple(1 if i in axes else x.shape[i] for i in range(x.ndim)))


def batch_normalization(
    x: Any,
    gamma: Any,
    beta: Any,
    eps: float = 2e-5,
    running_mean: Any = None,
    running_var: Any = None,
    decay: float = 0.9,
    axis: Any = None,
) -> Any:
    """Return x normalised by the mean and variance of the batch, then scaled and moved.

    Arrays of running statistics are moved towards those of the batch, in place.
    """
    if running_mean is not None or running_var is not None:
        given = as_tensor(x).detach()
        axes = _axes(given, as_tensor(gamma), axis)
        _follow(running_mean, F.mean(given, axes), decay)
        _follow(running_var, F.var(given, axes) * _unbiased(given, axes), decay)
    return _batch_normalization(x, gamma, beta, eps, axis)


@function
def _batch_normalization(x: Tensor, gamma: Tensor, beta: Tensor, eps: float, axis: Any) -> Tensor:
    axes = _axes(x, gamma, axis)
    if axes == (0, *range(2, x.ndim)):
        return F.batch_norm(x, None, None, gamma, beta, True, 0.1, eps)
    mean, var = F.mean(x, axes), F.var(x, axes)
    scale = gamma / F.sqrt(var + eps)
    return (x - _spread(x, mean, axes)) * _spread(x, scale, axes) + _spread(x, beta, axes)


def _unbiased(x: Tensor, axes: tuple[int, ...]) -> float:
    count = int(np.prod([x.shape[i] for i in axes]))
    return count / max(count - 1, 1)


def _follow(running: Any, value: Tensor, decay: float) -> None:
    """Move an array of running statistics towards those of a batch."""
    if running is not None:
        running *= decay
        running += (1 - decay) * value.numpy()


@function
def fixed_batch_normalization(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    mean: Tensor,
    var: Tensor,
    eps: float = 2e-5,
    axis: Any = None,
) -> Tensor:
    """Return x normalised by given statistics."""
    axes = _axes(x, gamma, axis)
    scale = gamma / F.sqrt(var + eps)
    return (x - _spread(x, mean, axes)) * _spread(x, scale, axes) + _spread(x, beta, axes)


@function
def group_normalization(
    x: Tensor, groups: int, gamma: Tensor, beta: Tensor, eps: float = 1e-5
) -> Tensor:
    """Return x normalised over groups of channels of each example."""
    return F.group_norm(x, groups, gamma, beta, eps)


@function
def layer_normalization(x: Tensor, gamma: Tensor, beta: Tensor, eps: float = 1e-5) -> Tensor:
    """Return x normalised over the units of each example."""
    return F.layer_norm(x, gamma.shape, gamma, beta, eps)


@function
def local_response_normalization(
    x: Tensor, n: int = 5, k: float = 2, alpha: float = 1e-4, beta: float = 0.75
) -> Tensor:
    """Return x divided by the activity of neighbouring channels; alpha counts for each of them."""
    return F.local_response_norm(x, n, alpha * n, beta, k)


@function
def normalize(x: Tensor, eps: float = 1e-5, axis: Any = 1) -> Tensor:
    """Return x divided by its length along an axis, which grows by eps."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    return x / (F.sqrt(F.sum(F.square(x), axes, True)) + eps)
