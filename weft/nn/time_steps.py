"""The walk of a recurrent net over time, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..core.large import fused
from ..core.tensor import Tensor
from .calls import F
from .rnn_cells import KINDS, CellKind, CellWeights, State, zeros_beside
from .time_scan import builds_graph, scan_over_time, time_first


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


def first_state(kind: CellKind, share: Tensor, weights: CellWeights) -> State:
    """Return the state before the first step where none is given: zeros."""
    hidden = weights.weight_hh.shape[0] // kind.gates
    output = hidden if weights.weight_hr is None else weights.weight_hr.shape[0]
    return tuple(zeros_beside(share, size) for size in (output, hidden)[: kind.states])


def _layer_over_time(
    mode: str, x: Tensor, *operands: Tensor | None, axis: int, backward: bool
) -> tuple[Tensor, ...]:
    """Return the outputs at all times, and the last state, of a layer in one direction.

    The operands are those of CellWeights, then the first state, or nothing for zeros.
    """
    kind, (weights, state) = KINDS[mode], _divided(operands)
    share = kind.input_share(x, weights)
    if builds_graph():
        return _scanned(kind, time_first(share, axis), weights, state, axis, backward)
    timeline = Timeline(axis)
    shares = timeline.split(share)
    walk = backward_in_time if backward else forward_in_time
    steps, final = walk(kind.step, shares, state or first_state(kind, shares[0], weights), weights)
    return timeline.join(steps), *final


def _layer_for_programs(
    mode: str, x: Tensor, *operands: Tensor | None, axis: int, backward: bool
) -> tuple[Tensor, ...]:
    """Return the same, with the rows of x in the order of time before they are multiplied.

    Gradients of the gates come out of the loop in that order, and are several times as large as x:
    for the gradient of weight_ih, x is turned instead of them.
    """
    kind, (weights, state) = KINDS[mode], _divided(operands)
    x = time_first(x, axis)
    time, batch, features = x.shape
    share = kind.input_share(F.reshape(x, (time * batch, features)), weights)
    shares = F.reshape(share, (time, batch, share.shape[-1]))
    return _scanned(kind, shares, weights, state, axis, backward)


def _divided(operands: tuple[Any, ...]) -> tuple[CellWeights, State]:
    count = len(CellWeights._fields)
    return CellWeights(*operands[:count]), operands[count:]


def _scanned(
    kind: CellKind, shares: Tensor, weights: CellWeights, state: State, axis: int, backward: bool
) -> tuple[Tensor, ...]:
    """Return the results of a layer, from the input's shares with time first, by one loop."""
    start = state or first_state(kind, shares[0], weights)
    outputs, final = scan_over_time(kind.step, shares, start, weights, backward)
    return time_first(outputs, axis), *final


layer_over_time = fused(
    "recurrent layer", _layer_over_time, for_programs=_layer_for_programs, multiplies_rows=True
)
