"""Losses for independent yes-or-no decisions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import may_equal
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import concrete, constant
from ._arguments import (
    broadcast_shapes,
    check_ndim,
    check_number,
    check_probability,
    check_reduction,
    check_same_shape,
    operands,
    pair,
    reduce_loss,
    weighted,
)

LOG_FLOOR = -100.0
VARIANCE_FLOOR = 1e-12


@op(elementwise, promote="float", method=False)
def bernoulli_nll(p: Tensor, target: Tensor) -> Tensor:
    """Return -(target * log(p) + (1 - target) * log(1 - p)) with each logarithm at least -100.

    At p = 0 and p = 1 the loss stays finite, and so does its derivative: the p * (1 - p) it is
    divided by is at least 1e-12.
    """


@bernoulli_nll.lower
def _(b, p, target):
    yes, no = b.maximum(b.log(p), LOG_FLOOR), b.maximum(b.log1p(-p), LOG_FLOOR)
    return -(target * yes + (1.0 - target) * no)


@bernoulli_nll.partial("p")
def _(p, target):
    return (p - target) / F.maximum(p * (1 - p), constant(VARIANCE_FLOOR, p))


@bernoulli_nll.partial("target")
def _(p):
    floor = constant(LOG_FLOOR, p)
    return F.maximum(F.log1p(-p), floor) - F.maximum(F.log(p), floor)


@bernoulli_nll.samples
def _(s):
    def draw(*shape):
        return s.real(*shape, low=0.1, high=0.9)

    yield from s.binary(draw)
    yield Sample(
        np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]), grad=0, label="ends"
    )
    yield Sample(draw(3), s.integers(3, high=2), grad=0, label="integer targets")


@bernoulli_nll.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(4), error=ValueError, match=r"\(3,\) and \(4,\)")
    yield ErrorSample(s.real(3), "yes", error=TypeError, match="target must be a tensor")


@composite()
@rounded_once
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return the cross entropy between probabilities and targets in [0, 1].

    Logarithms are cut off at -100, so that certainty in the wrong answer costs 100, not infinity.
    Prefer binary_cross_entropy_with_logits, which needs no cut-off.
    """
    fn = "binary_cross_entropy"
    input, target, weight = operands(fn, input=input, target=target, weight=weight)
    check_reduction(fn, reduction)
    target = check_same_shape(fn, input, target)
    _check_broadcasts(fn, "weight", weight, input)
    _check_unit_interval(fn, input)
    return reduce_loss(fn, weighted(F.bernoulli_nll(input, target), weight), reduction)


@composite()
@rounded_once
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return the cross entropy between sigmoid(input) and targets in [0, 1], for any logits.

    weight      a factor for each element, broadcast to input
    pos_weight  a factor for the positive part of each element, broadcast to input

    >>> import weft as wf
    >>> wf.nn.functional.binary_cross_entropy_with_logits(wf.tensor([1e4]), wf.tensor([1.0]))
    tensor(0.)
    """
    fn = "binary_cross_entropy_with_logits"
    input, target, weight, pos_weight = operands(
        fn, input=input, target=target, weight=weight, pos_weight=pos_weight
    )
    target = check_same_shape(fn, input, target)
    _check_broadcasts(fn, "weight", weight, input)
    _check_broadcasts(fn, "pos_weight", pos_weight, input)
    log_likelihood = F.log_sigmoid(input)
    if pos_weight is not None:
        log_likelihood = log_likelihood * (1 + (pos_weight - 1) * target)
    # -t log s(x) - (1 - t) log s(-x), with log s(-x) = log s(x) - x
    loss = (1 - target) * input - log_likelihood
    return reduce_loss(fn, weighted(loss, weight), reduction)


@composite()
@rounded_once
def sigmoid_focal_loss(
    input: Tensor,
    target: Tensor,
    *,
    alpha: float = 0.25,
    gamma: float = 2.0,
    reduction: str = "none",
) -> Tensor:
    """Return the cross entropy of logits with easy elements weighed down (Lin et al. 2017).

    Each element counts (1 - p)**gamma, with p the probability of its target; positive ones count
    alpha and negative ones 1 - alpha (a negative alpha: all count 1).
    """
    fn = "sigmoid_focal_loss"
    input, target = pair(fn, input, target)
    loss = binary_cross_entropy_with_logits(input, target, reduction="none")
    p = F.sigmoid(input)
    missed = p + target - 2 * p * target  # 1 - p where the target is 1, p where it is 0
    loss = loss * missed ** check_number(fn, "gamma", gamma)
    if check_number(fn, "alpha", alpha) >= 0:
        alpha = check_probability(fn, alpha, "alpha")
        loss = loss * (alpha * target + (1 - alpha) * (1 - target))
    return reduce_loss(fn, loss, reduction)


@composite()
@rounded_once
def soft_margin_loss(input: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Return log(1 + exp(-target * input)) for targets 1 and -1."""
    input, target = pair("soft_margin_loss", input, target)
    return reduce_loss("soft_margin_loss", -F.log_sigmoid(target * input), reduction)


@composite()
@rounded_once
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean"
) -> Tensor:
    """Return the cross entropy of logits averaged over the last axis, the classes."""
    fn = "multilabel_soft_margin_loss"
    input, target, weight = operands(fn, input=input, target=target, weight=weight)
    check_ndim(fn, "input", input, 1, "(..., C)")
    target = check_same_shape(fn, input, target)
    _check_broadcasts(fn, "weight", weight, input)
    loss = binary_cross_entropy_with_logits(input, target, weight, reduction="none")
    return reduce_loss(fn, F.mean(loss, axis=-1), reduction)


def _check_broadcasts(fn: str, name: str, x: Any, input: Any) -> None:
    """Raise unless an optional operand broadcasts to the shape of input."""
    if x is None or x.shape == input.shape:
        return
    shape = broadcast_shapes(f"{fn}: {name} and input", x, input)
    if not may_equal(shape, tuple(input.shape)):
        raise ShapeError(
            f"{fn}: {name} must broadcast to the shape of input, {input.shape}. Received: {x.shape}"
        )


def _check_unit_interval(fn: str, input: Any) -> None:
    value = concrete(input)
    if value is None or value.size == 0:
        return
    low, high = value.min(), value.max()
    if low < 0 or high > 1:
        raise ArgumentError(
            f"{fn}: input must hold probabilities in [0, 1]. Received: values from {low} to "
            f"{high}; apply sigmoid first, or use binary_cross_entropy_with_logits"
        )
