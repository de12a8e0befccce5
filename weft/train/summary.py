"""Summaries of observations: which values are numbers, and their means over a period."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.tensor import Tensor


def scalar_of(value: Any) -> float | None:
    """Return an observed value as a float, or None if it is not one number."""
    if type(value) is float:  # as nearly all are
        return value
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, np.ndarray):
        return float(value.item()) if value.size == 1 and value.dtype.kind in "biuf" else None
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    return None


def scalars_of(observation: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers among observed values."""
    found: dict[str, float] = {}
    for key, value in observation.items():
        number = scalar_of(value)
        if number is not None:
            found[key] = number
    return found


class Summary:
    """The means of observed numbers since the last reset.

    >>> summary = Summary()
    >>> summary.add({"loss": 1.0}), summary.add({"loss": 3.0, "lr": 0.1})
    (None, None)
    >>> summary.means()
    {'loss': 2.0, 'lr': 0.1}
    """

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, observation: Mapping[str, Any]) -> None:
        """Take the numbers of one observation into the means."""
        for key, value in scalars_of(observation).items():
            self._sums[key] = self._sums.get(key, 0.0) + value
            self._counts[key] = self._counts.get(key, 0) + 1

    def means(self) -> dict[str, float]:
        """Return the mean of each value over the observations that had it."""
        return {key: total / self._counts[key] for key, total in self._sums.items()}

    def reset(self) -> None:
        """Forget everything."""
        self._sums, self._counts = {}, {}

    def state_dict(self) -> dict[str, Any]:
        """Return sums and counts."""
        return {"sums": dict(self._sums), "counts": dict(self._counts)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self._sums, self._counts = dict(state["sums"]), dict(state["counts"])
