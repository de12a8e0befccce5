"""A linear-chain conditional random field."""

from __future__ import annotations

from typing import Any

from ..functions import array, loss
from ..link import Link
from ..variable import Parameter, Variable


class CRF1d(Link):
    """Scores of transitions between labels, with the loss and the best path."""

    def __init__(self, n_label: int, initial_cost: Any = None, transpose: bool = False) -> None:
        super().__init__()
        self._transpose = transpose
        with self.init_scope():
            self.cost = Parameter(0.0 if initial_cost is None else initial_cost, (n_label, n_label))

    def forward(
        self, xs: Any, ys: Any, reduce: str = "mean", transpose: bool | None = None
    ) -> Variable:
        """Return the loss of scores and labels by time, or by example with `transpose`."""
        if self._transpose if transpose is None else transpose:
            xs, ys = array.transpose_sequence(xs), array.transpose_sequence(ys)
        return loss.crf1d(self.cost, list(xs), list(ys), reduce)

    def argmax(self, xs: Any, transpose: bool | None = None) -> Any:
        """Return the best score and labels."""
        if self._transpose if transpose is None else transpose:
            xs = array.transpose_sequence(xs)
        return loss.argmax_crf1d(self.cost, xs)
