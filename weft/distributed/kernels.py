"""What nodes of a graph do when they run: they exchange arrays in the group that they name."""

from __future__ import annotations

from .exchanges import ExchangeSignature, PendingExchange, take
from .transport import Array
from .world import group_numbered


def run_exchange(x: Array, how: str, group: int, size: int, axis: int, place: int) -> Array:
    """Return what becomes of the arrays of all processes."""
    return group_numbered(group).exchanges.exchange(x, _signature(x, how, axis, place))


def start_exchange(
    x: Array, how: str, group: int, size: int, axis: int, place: int
) -> PendingExchange:
    """Begin the same; return what will have the result."""
    return group_numbered(group).exchanges.start(x, _signature(x, how, axis, place))


def take_exchange(ticket: int) -> PendingExchange:
    """Return what was begun, by its ticket, which is good for once."""
    return take(ticket)


def _signature(x: Array, how: str, axis: int, place: int) -> ExchangeSignature:
    return ExchangeSignature(how, x.shape, x.dtype.name, axis, place)
