"""Metric: a value that is gathered batch by batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..saved import Saved
from .inputs import Array, as_array


class Metric(Saved, ABC):
    """Base of metrics: `update` with each batch, `compute` the value so far, `reset` to start anew.

    A subclass lists in `_saved` the attributes that hold what it has gathered; sums are kept in
    double precision, whatever the dtype of the data. `larger_is_better` is False for errors.
    """

    name: str = ""
    larger_is_better: ClassVar[bool] = True

    @abstractmethod
    def reset(self) -> None:
        """Forget all batches."""

    @abstractmethod
    def update(self, output: Any, target: Any) -> None:
        """Take in a batch."""

    @abstractmethod
    def compute(self) -> Any:
        """Return the value over all batches since the last reset; NaN if there were none."""

    def merge(self, state: Mapping[str, Any]) -> None:
        """Take in what another such metric has gathered, by its `state_dict`: of other batches.

        Processes that share an evaluation need it.
        """
        raise ArgumentError(
            f"the metric {self.name or type(self).__name__!r} does not say how what several "
            "processes have gathered comes together: define merge(state), or let each process "
            "evaluate everything by Evaluator(..., shard=False)"
        )

    def __call__(self, output: Any, target: Any) -> Any:
        """Return the value for one batch alone; what was gathered stays as it is."""
        kept = self.state_dict()
        try:
            self.reset()
            self.update(output, target)
            return self.compute()
        finally:
            self.load_state_dict(kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Averaged(Metric):
    """Base of metrics that are a total over a count, of samples or elements."""

    _saved = ("total", "count")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self.total, self.count = 0.0, 0

    def compute(self) -> float:
        """Return the mean."""
        return self.total / self.count if self.count else float("nan")

    def merge(self, state: Mapping[str, Any]) -> None:
        """Add the total and the count of others."""
        self.total += float(state["total"])
        self.count += int(state["count"])


class Mean(Averaged):
    """The mean of the numbers it is given as outputs; targets are ignored.

    >>> mean = Mean()
    >>> mean.update([1.0, 2.0], None), mean.update(6.0, None)
    (None, None)
    >>> mean.compute()
    3.0
    """

    name = "mean"

    def update(self, output: Any, target: Any = None) -> None:
        """Take in a number or an array of them."""
        values = as_array(output)
        self.total += float(values.sum(dtype=np.float64))
        self.count += values.size

    def add(self, value: float, weight: int) -> None:
        """Take in the mean of a number of values."""
        if weight:  # an empty batch has the mean NaN and counts for nothing
            self.total += value * weight
            self.count += weight


class FunctionMetric(Mean):
    """The mean of a function of output and target over the samples.

    The function returns a number for each sample, or one for the batch, which then counts as often
    as the batch has samples.
    """

    def __init__(self, function: Callable[[Any, Any], Any], name: str | None = None) -> None:
        if not callable(function):
            raise ArgumentTypeError(f"a metric must be callable. Received: {function!r:.60}")
        self.function = function
        self.name = str(name or getattr(function, "__name__", "metric"))
        super().__init__()

    def update(self, output: Any, target: Any = None) -> None:
        """Apply the function to a batch."""
        values = as_array(self.function(output, target)).astype(np.float64)
        samples = as_array(target).shape[:1] if target is not None else ()
        if values.size == 1 and samples:
            self.add(float(values.reshape(())), samples[0])
        else:
            super().update(values)


def same_shape(name: str, output: Any, target: Any) -> tuple[Array, Array]:
    """Return both as arrays of one shape; a (n, 1) beside (n,) is a mistake, not a broadcast."""
    x, y = as_array(output), as_array(target)
    if x.shape != y.shape:
        raise ShapeError(
            f"{name}: output and target must have one shape. Received: {x.shape} and {y.shape}"
        )
    return x, y
