"""Relatives of softmax."""

from __future__ import annotations

from typing import Any

from ...core.op import F, composite
from ...core.rng import Generator
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import chosen_axis, operand
from ..random.draw import exponential
from ..reduce.softmax import softmax
from ._arguments import check_floats, check_number


@composite()
def softmin(x: Tensor, axis: int = -1, *, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return softmax(-x): the smallest element gets the largest share."""
    x = operand("softmin", "x", x)
    return softmax(-x, chosen_axis("softmin", x, axis, dim), dtype=dtype)


@composite()
@rounded_once
def gumbel_softmax(
    logits: Tensor,
    tau: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    *,
    dim: int | None = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw from a categorical distribution, relaxed so that gradients reach the logits.

    softmax((logits + Gumbel noise) / tau), Jang et al. 2017 (arXiv:1611.01144). With `hard` the
    result is one-hot while the gradient stays that of the relaxed draw (straight-through).
    """
    logits = operand("gumbel_softmax", "logits", logits)
    check_floats("gumbel_softmax", "logits", logits)
    tau = check_number("gumbel_softmax", "tau", tau, above=0)
    axis = chosen_axis("gumbel_softmax", logits, axis, dim)
    clocks = exponential(1.0, logits.shape, dtype=logits.dtype, generator=generator)
    soft = softmax((logits - F.log(clocks)) / tau, axis)
    return _straight_through(soft, axis) if hard else soft


def _straight_through(soft: Tensor, axis: int) -> Tensor:
    """Return the one-hot of the largest element, with the gradient of `soft`."""
    constant = F.stop_gradient(soft)
    hot = F.one_hot(F.argmax(constant, axis=axis), soft.shape[axis])
    hard = F.cast(F.moveaxis(hot, -1, axis), soft.dtype)
    return soft + (hard - constant)
