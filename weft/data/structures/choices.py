"""Random choices one at a time, from blocks of uniform numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ...core.rng import Generator
from ..streams import fresh_seed, uniforms

T = TypeVar("T")
_BLOCK = 4096


class Choices:
    """A source of choices that follow from a seed alone."""

    def __init__(self, seed: int | None) -> None:
        self._generator = Generator(fresh_seed() if seed is None else seed)
        self._block = np.zeros(0)
        self._next = 0

    def real(self) -> float:
        """Return a number of [0, 1)."""
        if self._next == len(self._block):
            self._block = uniforms((_BLOCK,), generator=self._generator)
            self._next = 0
        self._next += 1
        return float(self._block[self._next - 1])

    def integer(self, low: int, high: int) -> int:
        """Return one of low, ..., high."""
        return low + min(int(self.real() * (high - low + 1)), high - low)

    def chance(self, probability: float) -> bool:
        """Tell whether something of that probability happens."""
        return self.real() < probability

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[self.integer(0, len(items) - 1)]
