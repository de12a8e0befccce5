"""What state that is made while a graph is built starts with: a value, where others are symbols."""

from __future__ import annotations

from typing import Any

from ..core.device import AUTO
from ..core.errors import ArgumentTypeError, GraphError
from ..core.modes import eagerly
from ..core.placing import place
from ..core.tensor import Tensor, wrap
from ..graph.session import Session
from ..graph.symbol import Symbol
from ..ops.creation import tensor


@eagerly
def starting_value(data: Any, what: str) -> Tensor:
    """Return data as a tensor with a value; a symbol is computed once, as things are now."""
    if not isinstance(data, Tensor):
        return tensor(data)
    if data.batched:
        raise ArgumentTypeError(
            f"{what} needs one value, and inside vmap there is one for each example; make it "
            "outside, and pass it to the function"
        )
    return _computed(data, what) if isinstance(data, Symbol) else data


def _computed(symbol: Symbol, what: str) -> Tensor:
    try:
        value = wrap(Session(symbol.graph, compiled=False).run(symbol))
    except GraphError as error:
        raise GraphError(
            f"{what} needs a value now, and {symbol.name} has none before a run ({error}); "
            "give numbers, an array, or a tensor made outside of the graph"
        ) from None
    return value if symbol.device == AUTO else place(value, symbol.device)
