"""Solutions of second-order differential equations, as a polynomial for each piece of an interval.

No table of constants is kept: where a solution is first asked for, its value and slope in the
middle of each piece come from its power series at 70 digits, and its further Taylor coefficients
from the equation. The polynomials are so long that rounding alone is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Any

import numpy as np

from ._kernel import Array, Block
from .abstract import AbstractBlock

DIGITS = 70
WIDTH = 0.5  # of a piece; middles are exact, and so is the distance of an element from one

# The Taylor coefficients of a solution around a point, so many of them.
Expansion = Callable[[Decimal, int], list[Decimal]]


class Pieces:
    """A function on [low, high) as polynomials around the middles of its pieces."""

    def __init__(self, low: float, high: float, terms: int, expand: Expansion) -> None:
        self.low = low
        self.count = round((high - low) / WIDTH)
        self.terms = terms
        self.expand = expand
        self._table: Array | None = None

    def value(self, x: Block) -> Block:
        """Return the function at each element, which must lie in the interval."""
        return self._polynomial(x, self.table)

    def slope(self, x: Block) -> Block:
        """Return its derivative."""
        powers = np.arange(1, self.terms)[:, None]
        return self._polynomial(x, self.table[1:] * powers)

    @property
    def table(self) -> Array:
        """Return the coefficients by power and piece."""
        if self._table is None:
            with localcontext() as context:
                context.prec = DIGITS
                rows = [self.expand(self._middle(i), self.terms) for i in range(self.count)]
            self._table = np.array([[float(c) for c in row] for row in rows]).T
        return self._table

    def _middle(self, piece: int) -> Decimal:
        return Decimal(self.low + (piece + 0.5) * WIDTH)

    def _polynomial(self, x: Block, table: Array) -> Block:
        piece = np.clip((x - self.low) / WIDTH, 0, self.count - 1).astype(np.intp)
        t = x - (self.low + (piece + 0.5) * WIDTH)
        y = _looked_up(table[-1], piece)
        for row in table[-2::-1]:
            y = y * t + _looked_up(row, piece)
        return y


def _looked_up(row: Array, piece: Any) -> Block:
    found: Block = piece.looked_up(row) if isinstance(piece, AbstractBlock) else row[piece]
    return found


def sum_of_powers(x: Decimal, coefficients: Sequence[Decimal]) -> Decimal:
    """Return a polynomial, the constant term first."""
    y = Decimal(0)
    for c in reversed(coefficients):
        y = y * x + c
    return y
