"""Sample inputs: each operator brings its own, and one conformance suite runs over all of them.

A sample rule receives a Sampler (a seeded source of arrays) and yields Samples; an error rule
yields ErrorSamples. Rules run only in tests, so importing Weft draws no samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .dtype import Array


class Sample:
    """Arguments for one call of an operator; float64 arrays are differentiated.

    grad    highest order of derivative to check (0 = none: a kink, an integer function ...)
    label   shown in test names
    """

    def __init__(self, *args: Any, grad: int = 2, label: str = "", **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.grad = grad
        self.label = label

    def __repr__(self) -> str:
        shown = [_describe(a) for a in self.args]
        shown += [f"{k}={_describe(v)}" for k, v in self.kwargs.items()]
        return f"{self.label + ' ' if self.label else ''}({', '.join(shown)})"


class ErrorSample:
    """Arguments that must raise `error` with a message that matches the pattern `match`."""

    def __init__(self, *args: Any, error: type[Exception], match: str, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.error = error
        self.match = match

    __repr__ = Sample.__repr__
    label = ""


class Sampler:
    """A seeded source of sample arrays (float64 unless said otherwise)."""

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    def real(self, *shape: int, low: float = -2.0, high: float = 2.0) -> Array:
        """Return uniform reals from [low, high)."""
        return self.rng.uniform(low, high, shape)

    def positive(self, *shape: int, low: float = 0.3, high: float = 3.0) -> Array:
        """Return reals well above zero."""
        return self.rng.uniform(low, high, shape)

    def away(self, *shape: int, points: tuple[float, ...] = (0.0,), margin: float = 0.1) -> Array:
        """Return reals in (-2, 2) at least `margin` away from the given points (kinks, poles)."""
        x = self.real(*shape)
        for point in points:
            close = np.abs(x - point) < margin
            x = np.where(close, x + np.where(x < point, -margin, margin), x)
        return x

    def distinct(self, *shape: int) -> Array:
        """Return reals that all differ by at least 0.1: no ties for max, sort, median ..."""
        size = int(np.prod(shape))
        spaced = (np.arange(size) - size / 2) * 0.2 + self.rng.uniform(0.0, 0.1, size)
        return self.rng.permutation(spaced).reshape(shape)

    def strided(self, *shape: int) -> Array:
        """Return a non-contiguous array: transposed, every second element, reversed."""
        big = self.real(*(2 * dim for dim in reversed(shape)))
        return big[tuple(slice(None, None, -2) for _ in shape)].transpose()

    def integers(self, *shape: int, low: int = 0, high: int = 5, dtype: Any = np.int64) -> Array:
        """Return integers from [low, high)."""
        return self.rng.integers(low, high, shape).astype(dtype)

    def booleans(self, *shape: int) -> Array:
        """Return truth values."""
        return self.rng.random(shape) < 0.5

    def unary(self, draw: Any = None, **options: Any) -> list[Sample]:
        """Return samples of a one-input function over the usual shapes.

        `draw(*shape)` makes the values (default: `real`); options go to each Sample.
        """
        draw = draw or self.real
        shapes = ((), (1,), (3,), (2, 3), (0,), (2, 0, 3), (2, 1, 3))
        samples = [Sample(draw(*shape), **options) for shape in shapes]
        turned = draw(4, 6)[::2, ::-1].T
        return [*samples, Sample(turned, label="non-contiguous", **options)]

    def binary(self, draw: Any = None, draw2: Any = None, **options: Any) -> list[Sample]:
        """Return samples of a two-input function over the usual broadcasts."""
        draw = draw or self.real
        draw2 = draw2 or draw
        pairs = (
            ((), ()),
            ((3,), (3,)),
            ((2, 3), (2, 3)),
            ((2, 3), (3,)),
            ((2, 1), (1, 3)),
            ((), (2, 3)),
            ((1,), (3,)),
            ((0, 3), (3,)),
            ((4, 1, 3), (2, 1)),
        )
        samples = [Sample(draw(*a), draw2(*b), **options) for a, b in pairs]
        turned = Sample(draw(3, 4).T, draw2(8, 3)[::-2], label="non-contiguous", **options)
        return [*samples, turned]


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_describe, value))}]"
    return repr(value)
