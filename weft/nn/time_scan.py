"""The walk of a recurrent net over time as one loop of a graph.

Eager calls on large tensors build that graph too, and run it compiled, forward and backward.
"""

from __future__ import annotations

from typing import Any

from ..core.modes import current_tracer
from ..core.tensor import Tensor
from ..graph.control import scan
from .calls import F
from .rnn_cells import CellWeights, State


def builds_graph() -> bool:
    """Tell whether operations become nodes, so that a loop over time should be one node."""
    return current_tracer() is not None


def time_first(x: Tensor, axis: int) -> Tensor:
    """Return (batch, time, features) as (time, batch, features), or the other way round."""
    return x if axis == 0 else F.permute_dims(x, (1, 0, 2))


def scan_over_time(
    step: Any, shares: Tensor, state: State, weights: CellWeights, backward: bool
) -> tuple[Tensor, State]:
    """Return the outputs (time, batch, features) of steps over the input's shares; the last state.

    The number of time steps need not be known when the graph is built.
    """

    def body(carry: State, share: Tensor) -> tuple[State, Tensor]:
        after = step(share, carry, weights)
        return after, after[0]

    final, outputs = scan(body, state, shares, reverse=backward)
    return outputs, final
