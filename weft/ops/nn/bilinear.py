"""Forms of two operands, slopes drawn at random, and triplets with a distance of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dim import may_equal
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.rng import Generator
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import operand
from ..random.draw import rand
from ._arguments import check_floats, check_number, check_vector, operands, reduce_loss
from .distance import pairwise_distance


@composite()
@rounded_once
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Any:
    """Return input1 @ weight[k] @ input2 + bias[k] for each k.

    Shapes: (..., I), (..., J), (K, I, J) and (K,) -> (..., K).
    """
    fn = "bilinear"
    input1, input2, weight = operands(fn, input1=input1, input2=input2, weight=weight)
    sizes = (*input1.shape[-1:], *input2.shape[-1:])
    if weight.ndim != 3 or not may_equal(tuple(weight.shape[1:]), sizes):
        raise ShapeError(
            f"{fn}: weight must be (K, I, J) for inputs (..., I) and (..., J). Received: "
            f"{tuple(weight.shape)} for {tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    if not may_equal(tuple(input1.shape[:-1]), tuple(input2.shape[:-1])):
        raise ShapeError(
            f"{fn}: inputs must have the same leading dimensions. "
            f"Received: {tuple(input1.shape)} and {tuple(input2.shape)}"
        )
    total = F.einsum("...i,kij,...j->...k", input1, weight, input2)
    if bias is None:
        return total
    (bias,) = operands(fn, bias=bias)
    check_vector(fn, "bias", bias, weight.shape[0], "outputs")
    return total + bias


@composite()
def rrelu(
    x: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *,
    generator: Generator | None = None,
) -> Tensor:
    """Return x, where it is negative times a slope that is drawn from [lower, upper).

    Outside training the slope is (lower + upper) / 2 (Xu et al. 2015, arXiv:1505.00853).
    """
    x = operand("rrelu", "x", x)
    check_floats("rrelu", "x", x)
    low, high = check_number("rrelu", "lower", lower), check_number("rrelu", "upper", upper)
    if low > high:
        raise ArgumentError(f"rrelu: lower must not exceed upper. Received: {lower} and {upper}")
    if not training:
        result: Tensor = F.leaky_relu(x, (low + high) / 2)
        return result
    slopes = low + (high - low) * rand(tuple(x.shape), dtype=x.dtype, generator=generator)
    drawn: Tensor = F.where(x < 0, x * slopes, x)
    return drawn


@composite()
@rounded_once
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Any, Any], Any] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + d(anchor, positive) - d(anchor, negative)) for any distance d.

    distance_function   of two tensors; Euclidean between rows if it is not given
    """
    fn = "triplet_margin_with_distance_loss"
    anchor, positive, negative = operands(fn, anchor=anchor, positive=positive, negative=negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = F.minimum(far, distance(positive, negative))
    return reduce_loss(fn, F.relu(check_number(fn, "margin", margin) + near - far), reduction)
