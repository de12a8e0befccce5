"""Gated linear units."""

from __future__ import annotations

from ...core.errors import ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import chosen_axis, operand


@composite()
@rounded_once
def glu(x: Tensor, axis: int = -1, *, dim: int | None = None) -> Tensor:
    """Return a * sigmoid(b), a and b being the halves of x along an axis (Dauphin et al. 2017)."""
    x = operand("glu", "x", x)
    axis = chosen_axis("glu", x, axis, dim)
    half, odd = divmod(x.shape[axis], 2)
    if odd != 0:
        raise ShapeError(f"glu: the size of axis {axis} must be even. Received: {x.shape}")
    before = (slice(None),) * axis
    return x[(*before, slice(half))] * F.sigmoid(x[(*before, slice(half, None))])
