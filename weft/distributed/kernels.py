"""What nodes of a graph do when they run: they exchange arrays in the group that they name."""

from __future__ import annotations

import numpy as np

from .exchanges import ExchangeSignature, PendingExchange, take
from .transport import Array
from .world import group_numbered


def run_exchange(
    x: Array, how: str, group: int, size: int, axis: int, place: int, note: str
) -> Array:
    """Return what becomes of the arrays of all processes."""
    return group_numbered(group).exchanges.exchange(x, _signature(x, how, axis, place, note))


def start_exchange(
    x: Array, how: str, group: int, size: int, axis: int, place: int, note: str
) -> PendingExchange:
    """Begin the same; return what will have the result."""
    signature = _signature(x, how, axis, place, note)
    return group_numbered(group).exchanges.start(np.array(x, order="C"), signature)


def _signature(x: Array, how: str, axis: int, place: int, note: str) -> ExchangeSignature:
    # What must be the same on all processes: which part is one's own is not.
    return ExchangeSignature.of(x, how, axis, 0 if how == "whole" else place, note)


def take_exchange(ticket: int) -> PendingExchange:
    """Return what was begun, by its ticket, which is good for once."""
    return take(ticket)
