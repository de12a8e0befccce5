"""Functions that draw random numbers."""

from __future__ import annotations

from typing import Any

from ...core.op import F
from ...core.tensor import Tensor
from ...ops.random.draw import rand, randn
from ..configuration import config
from ..variable import as_tensor, wrapped
from ._common import function


@function
def dropout(x: Tensor, ratio: float = 0.5, **_: Any) -> Tensor:
    """Return x with some elements set to zero and the others enlarged, in training."""
    if not 0.0 <= ratio < 1.0:
        raise ValueError(f"dropout ratio must be in the range [0, 1). Received: {ratio}")
    return F.dropout(x, ratio, bool(config.train))


def gaussian(mean: Any, ln_var: Any, *, eps: Any = None, return_eps: bool = False) -> Any:
    """Return a draw from Gaussians, through which gradients reach mean and variance."""
    centre, spread = as_tensor(mean), as_tensor(ln_var)
    noise = randn(*centre.shape, dtype=centre.dtype) if eps is None else as_tensor(eps)
    drawn = wrapped(centre + F.exp(spread * 0.5) * noise)
    return (drawn, noise.numpy()) if return_eps else drawn


@function
def gumbel_softmax(log_pi: Tensor, tau: float = 0.1, axis: int = 1) -> Tensor:
    """Return draws from a relaxed categorical distribution."""
    noise = -F.log(-F.log(rand(*log_pi.shape, dtype=log_pi.dtype) + 1e-20) + 1e-20)
    return F.softmax((log_pi + noise) / tau, axis)


@function
def zoneout(h: Tensor, x: Tensor, ratio: float = 0.5, **_: Any) -> Tensor:
    """Return x with some elements of the last state h in their place, in training."""
    if not config.train:
        return h * ratio + x * (1 - ratio)
    return F.where(rand(*x.shape) < ratio, h, x)


@function
def simplified_dropconnect(
    x: Tensor, W: Tensor, b: Tensor | None = None, ratio: float = 0.5, **_: Any
) -> Tensor:
    """Return a linear map with some of its weights set to zero, in training."""
    return F.linear(x, F.dropout(W, ratio, bool(config.train)), b)
