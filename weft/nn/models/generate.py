"""Drawing tokens from the scores of a language model."""

from __future__ import annotations

import numpy as np

from ...core.errors import ArgumentError
from ...core.tensor import Tensor, wrap
from ...ops.random.draw import categorical


def next_tokens(scores: Tensor, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
    """Draw one token (N, 1) for each row of scores (N, V).

    temperature   below 1 prefers likely tokens; 0 always takes the likeliest
    top_k         draw only among so many of the likeliest
    """
    if not temperature >= 0:
        raise ArgumentError(f"temperature must not be negative. Received: {temperature!r}")
    if top_k is not None and top_k < 1:
        raise ArgumentError(f"top_k must be at least 1. Received: {top_k!r}")
    values = scores.detach().numpy().astype(np.float64)
    if temperature == 0:
        return wrap(values.argmax(-1).reshape(-1, 1))
    values = values / temperature
    if top_k is not None and top_k < values.shape[-1]:
        least = np.sort(values, -1)[:, -top_k, None]
        values = np.where(values < least, -np.inf, values)
    return categorical(wrap(values), 1)
