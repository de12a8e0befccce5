"""Random draws in compiled loops: the bits of an element, for the formulas of core/random."""

from __future__ import annotations

from math import ceil
from typing import Any

from ...core.dtype import DType, int64, uint32, uint64
from ...core.random.lanes import lane_bits


def lanes(b: Any, state: Any, bits: int) -> Any:
    """Return the random bits of the element."""
    words = tuple(state.at(i) for i in range(3))
    return b.random(words, b.flat.expr, uint32 if bits == 32 else uint64)


def lanes_for(b: Any, state: Any, dtype: DType) -> Any:
    """Return the random bits of an element of a dtype."""
    return lanes(b, state, lane_bits(dtype))


def is_below(b: Any, drawn: Any, probability: float) -> Any:
    """Tell whether the uniform number that lanes of 32 bits stand for is below a constant."""
    limit = ceil(probability * 2**32)  # exact: a power of two only moves the exponent
    if limit >= 2**32:
        return b.eq(drawn, drawn)
    return drawn < limit


def required(b: Any, condition: Any) -> Any:
    """Return what is true, or give the run up: the reference kernel then says why."""
    wrong = b.select(condition, b.constant(0, int64), b.constant(1, int64))
    return b.eq(b.index(wrong, 1, wraps=False), 0)
