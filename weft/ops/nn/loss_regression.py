"""Losses between real-valued predictions and targets, and between distributions.

Input and target must have one shape: (n, 1) against (n,) is an error, never a broadcast.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import concrete, operand
from ._arguments import (
    REDUCTIONS,
    check_not_negative,
    check_number,
    check_reduction,
    pair,
    reduce_loss,
    same_dims,
)


@composite()
@rounded_once
def mse_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the squared difference of input and target, by default its mean.

    >>> import weft as wf
    >>> wf.nn.functional.mse_loss(wf.tensor([1.0, 3.0]), wf.tensor([1.0, 1.0]))
    tensor(2.)
    """
    return reduce_loss("mse_loss", F.square(_difference("mse_loss", input, target)), reduction)


@composite()
@rounded_once
def l1_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return the absolute difference of input and target, by default its mean.

    Its gradient is 0 where they are equal.
    """
    return reduce_loss("l1_loss", F.abs(_difference("l1_loss", input, target)), reduction)


@composite()
@rounded_once
def huber_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    """Return d**2 / 2 for differences |d| <= delta and delta * (|d| - delta / 2) beyond."""
    delta = check_number("huber_loss", "delta", delta, above=0)
    loss = _huber(_difference("huber_loss", input, target), delta)
    return reduce_loss("huber_loss", loss, reduction)


@composite()
@rounded_once
def smooth_l1_loss(
    input: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """Return d**2 / (2 beta) for differences |d| <= beta and |d| - beta / 2 beyond.

    beta = 0 is l1_loss.
    """
    beta = check_not_negative("smooth_l1_loss", "beta", beta)
    difference = _difference("smooth_l1_loss", input, target)
    loss = _huber(difference, beta) / beta if beta else F.abs(difference)
    return reduce_loss("smooth_l1_loss", loss, reduction)


@composite()
@rounded_once
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    *,
    log_input: bool = True,
    full: bool = False,
    eps: float = 1e-8,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-likelihood of counts under a Poisson distribution.

    input is the logarithm of the rate, or with log_input=False the rate itself (eps keeps its
    logarithm finite). `full` adds Stirling's approximation of log(target!) for targets above 1.
    """
    fn = "poisson_nll_loss"
    input, target = pair(fn, input, target)
    eps = check_not_negative(fn, "eps", eps)
    rate, log_rate = (F.exp(input), input) if log_input else (input, F.log(input + eps))
    loss = rate - target * log_rate
    if full:
        loss = loss + _log_factorial(target)
    return reduce_loss(fn, loss, reduction)


@composite()
@rounded_once
def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor,
    *,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log-likelihood of targets under normal distributions of given variance.

    var has the shape of input, or size 1 (or nothing) in place of its last dimension, or is a
    number. It is raised to eps where it is smaller. `full` adds the constant log(2 pi) / 2.
    """
    fn = "gaussian_nll_loss"
    input, target = pair(fn, input, target)
    eps = check_number(fn, "eps", eps, above=0)
    var = F.maximum(_variance(fn, input, operand(fn, "var", var)), eps)
    loss = 0.5 * (F.log(var) + F.square(input - target) / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(fn, loss, reduction)


@composite()
@rounded_once
def kl_div(
    input: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """Return target * (log(target) - input): the divergence of `target` from log-probabilities.

    With log_target the targets are log-probabilities too. The reduction "mean" averages over all
    elements; "batchmean" divides the sum by the first dimension, the divergence by definition.
    """
    check_reduction("kl_div", reduction, (*REDUCTIONS, "batchmean"))
    input, target = pair("kl_div", input, target)
    if log_target:
        loss = F.exp(target) * (target - input)
    else:
        loss = F.xlogy(target, target) - target * input
    if reduction != "batchmean":
        return reduce_loss("kl_div", loss, reduction)
    if input.ndim == 0:
        raise ShapeError("kl_div: reduction 'batchmean' needs a batch dimension. Received: ()")
    return F.sum(loss) / input.shape[0]


# -- the parts --------------------------------------------------------------------------------


def _difference(fn: str, input: Any, target: Any) -> Any:
    input, target = pair(fn, input, target)
    return input - target


def _huber(d: Any, delta: float) -> Any:
    """Return q * (d - q / 2) with q = d clipped to [-delta, delta]: both branches in one formula.

    No absolute value and no comparison, so first and second derivatives are right at d = 0 too.
    """
    q = F.clip(d, -delta, delta)
    return q * (d - 0.5 * q)


def _log_factorial(n: Any) -> Any:
    """Return Stirling's n log n - n + log(2 pi n) / 2 for n > 1, else 0."""
    safe = F.where(n > 1, n, 1.0)
    stirling = safe * F.log(safe) - safe + 0.5 * F.log(2 * math.pi * safe)
    return F.where(n > 1, stirling, 0.0)


def _variance(fn: str, input: Any, var: Any) -> Any:
    """Return the variance in a shape that broadcasts to that of input."""
    value = concrete(var)
    if value is not None and (value < 0).any():
        raise ArgumentError(f"{fn}: var must not be negative. Received: {np.min(value)}")
    shape, given = tuple(input.shape), tuple(var.shape)
    if given == () or same_dims(given, shape) or same_dims(given, (*shape[:-1], 1)):
        return var
    if same_dims(given, shape[:-1]):
        return var[..., None]
    raise ShapeError(
        f"{fn}: var must have the shape of input, {shape}, or size 1 in its last dimension. "
        f"Received: {given}"
    )
