"""The walk of a recurrent net over time, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.tensor import Tensor
from .calls import F
from .rnn_cells import CellWeights, State
from .time_scan import time_first


class Timeline(NamedTuple):
    """How time steps lie in a tensor: along an axis, or packed one after the other."""

    axis: int
    sizes: tuple[int, ...] | None = None

    def split(self, x: Tensor) -> Sequence[Tensor]:
        """Return the time steps of a tensor, each (batch, features)."""
        if self.sizes is None:
            return tuple(F.unbind(time_first(x, self.axis)))
        return tuple(F.split(x, self.sizes, 0))

    def join(self, steps: Sequence[Tensor]) -> Tensor:
        """Return time steps as one tensor."""
        if self.sizes is None:
            return time_first(F.stack(steps), self.axis)
        return F.concat(steps, 0)


def forward_in_time(
    step: Any, inputs: Sequence[Tensor], state: State, weights: CellWeights
) -> tuple[list[Tensor], State]:
    """Walk from the first input to the last; sequences that have ended leave the batch."""
    outputs, ended = [], []
    batch = inputs[0].shape[0]
    for x in inputs:
        if x.shape[0] != batch:
            batch = x.shape[0]
            ended.append(tuple(s[batch:] for s in state))
            state = tuple(s[:batch] for s in state)
        state = step(x, state, weights)
        outputs.append(state[0])
    if ended:  # the shortest sequences stand last and ended first
        parts = zip(state, *reversed(ended), strict=True)
        state = tuple(F.concat(part, 0) for part in parts)
    return outputs, state


def backward_in_time(
    step: Any, inputs: Sequence[Tensor], first: State, weights: CellWeights
) -> tuple[list[Tensor], State]:
    """Walk from the last input to the first; a sequence joins the batch at its own end."""
    outputs = []
    batch = inputs[-1].shape[0]
    grows = batch != inputs[0].shape[0]
    state = tuple(s[:batch] for s in first) if grows else first
    for x in reversed(inputs):
        if x.shape[0] != batch:
            joining = slice(batch, x.shape[0])
            batch = x.shape[0]
            state = tuple(F.concat((s, f[joining]), 0) for s, f in zip(state, first, strict=True))
        state = step(x, state, weights)
        outputs.append(state[0])
    return outputs[::-1], state
