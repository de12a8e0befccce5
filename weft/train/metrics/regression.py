"""Metrics of regression: mean squared and absolute errors, and R2."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .inputs import Array
from .metric import Averaged, Metric, same_shape


class _ErrorMean(Averaged):
    """Base of means of an error over all elements."""

    larger_is_better = False

    def error(self, difference: Array) -> Array:
        """Return the error of each element."""
        raise NotImplementedError

    def update(self, output: Any, target: Any) -> None:
        """Add the errors of a batch."""
        x, y = same_shape(self.name, output, target)
        with np.errstate(all="ignore"):
            self.total += float(self.error(x.astype(np.float64) - y).sum())
        self.count += x.size


class MSE(_ErrorMean):
    """The mean of squared errors.

    >>> MSE()([1.0, 2.0], [1.0, 4.0])
    2.0
    """

    name = "mse"

    def error(self, difference: Array) -> Array:
        """Return squares."""
        return difference * difference


class RMSE(MSE):
    """The root of the mean of squared errors.

    >>> RMSE()([1.0, 2.0], [1.0, 4.0])
    1.4142135623730951
    """

    name = "rmse"

    def compute(self) -> float:
        """Return the root of the mean."""
        return math.sqrt(super().compute())


class MAE(_ErrorMean):
    """The mean of absolute errors.

    >>> MAE()([1.0, 2.0], [1.0, 4.0])
    1.0
    """

    name = "mae"

    def error(self, difference: Array) -> Array:
        """Return absolute values."""
        return np.abs(difference)


class R2(Metric):
    """One minus the share of the targets' variance that the outputs leave unexplained.

    Columns of a two-dimensional target are averaged. A constant target gives 1 if the outputs are
    exact and 0 if not, as in scikit-learn.

    >>> round(R2()([2.5, 0.0, 2.0, 8.0], [3.0, -0.5, 2.0, 7.0]), 4)
    0.9486
    """

    name = "r2"
    _saved = ("count", "mean", "spread", "residual")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self.count = 0
        self.mean: Array = np.zeros(())
        self.spread: Array = np.zeros(())
        self.residual: Array = np.zeros(())

    def update(self, output: Any, target: Any) -> None:
        """Merge mean and spread of a batch into those so far (Chan, Golub & LeVeque 1983)."""
        x, y = (np.asarray(a, np.float64) for a in same_shape(self.name, output, target))
        if not y.size:
            return
        x, y = (a.reshape(len(a), -1) if a.ndim > 1 else a.reshape(-1, 1) for a in (x, y))
        mean = y.mean(axis=0)
        spread, residual = ((y - mean) ** 2).sum(axis=0), ((x - y) ** 2).sum(axis=0)
        self._add(len(y), mean, spread, residual)

    def merge(self, state: Mapping[str, Any]) -> None:
        """Take in the moments of others."""
        if state["count"]:
            arrays = [np.asarray(state[name]) for name in ("mean", "spread", "residual")]
            self._add(int(state["count"]), *arrays)

    def _add(self, count: int, mean: Array, spread: Array, residual: Array) -> None:
        """Take in the moments of some samples (Chan, Golub and LeVeque 1983)."""
        total = self.count + count
        shift = mean - self.mean
        self.spread = self.spread + spread + shift**2 * (self.count * count / total)
        self.mean = self.mean + shift * (count / total)
        self.residual = self.residual + residual
        self.count = total

    def compute(self) -> float:
        """Return the coefficient; NaN for fewer than two samples."""
        if self.count < 2:
            return float("nan")
        exact = np.where(self.residual == 0, 1.0, 0.0)
        share = np.divide(self.residual, self.spread, out=1.0 - exact, where=self.spread > 0)
        return float((1.0 - share).mean())
