"""What nodes of a graph do when they run: they exchange arrays in the group that they name."""

from __future__ import annotations

import numpy as np

from .errors import MismatchError
from .exchanges import ExchangeSignature, PendingExchange, take
from .lockstep import current_shard
from .programs import running_program
from .transport import Array
from .world import group_numbered


def run_exchange(
    x: Array, how: str, group: int, size: int, axis: int, place: int, note: str
) -> Array:
    """Return what becomes of the arrays of all processes."""
    signature = _signature(x, how, axis, place, note)
    members = group_numbered(group)
    shard = current_shard()
    if shard is not None:
        return shard.exchange(x, signature, members)
    return members.exchanges.exchange(x, signature, running_program())


def start_exchange(
    x: Array, how: str, group: int, size: int, axis: int, place: int, note: str
) -> PendingExchange:
    """Begin the same; return what will have the result."""
    if current_shard() is not None:
        raise MismatchError(
            f"a compiled program asks for {how} of all processes inside of a virtual shard "
            "(parallel(shards=...)), which has to wait for the other shards there: compile parts "
            "without exchanges, or leave it to eager code"
        )
    signature = _signature(x, how, axis, place, note)
    own = np.array(x, order="C")
    return group_numbered(group).exchanges.start(own, signature, running_program())


def _signature(x: Array, how: str, axis: int, place: int, note: str) -> ExchangeSignature:
    # What must be the same on all processes: which part is one's own is not.
    return ExchangeSignature.of(x, how, axis, 0 if how == "whole" else place, note)


def take_exchange(ticket: int) -> PendingExchange:
    """Return what was begun, by its ticket, which is good for once."""
    return take(ticket)
