"""How much a server takes on: sizes of batches and bodies, lengths of queues, times."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True, kw_only=True)
class ServeLimits:
    """What a server allows; times are in seconds.

    max_batch         most items of a batch; 1: no batching
    max_wait          how long an item waits for others to share a batch with
    max_body          most bytes of a request's body
    max_queue         most items that wait; more are refused with status 503
    timeout           for a request to arrive, and for its answer to be computed
    max_connections   most clients at a time
    grace             for requests in flight when the server is told to end
    """

    max_batch: int = 32
    max_wait: float = 0.002
    max_body: int = 16 * 2**20
    max_queue: int = 1024
    timeout: float = 30.0
    max_connections: int = 1024
    grace: float = 10.0

    def __post_init__(self) -> None:
        for name in ("max_batch", "max_body", "max_queue", "max_connections"):
            _check_count(name, getattr(self, name))
        for name in ("max_wait", "timeout", "grace"):
            _check_seconds(name, getattr(self, name), positive=name == "timeout")
        if self.max_queue < self.max_batch:
            raise ArgumentError(
                "max_queue must be at least max_batch, or no batch could ever fill. "
                f"Received: max_queue={self.max_queue}, max_batch={self.max_batch}"
            )


def chosen_limits(limits: Any) -> ServeLimits:
    """Return limits that were given, or the usual ones for None."""
    if limits is None:
        return ServeLimits()
    if not isinstance(limits, ServeLimits):
        raise ArgumentTypeError(
            "serve: limits must be wf.serve.ServeLimits(max_batch=..., ...). "
            f"Received: {limits!r:.60}"
        )
    return limits


def _check_count(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an integer. Received: {value!r:.60}")
    if value < 1:
        raise ArgumentError(f"{name} must be at least 1. Received: {value}")


def _check_seconds(name: str, value: Any, *, positive: bool) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be a number of seconds. Received: {value!r:.60}")
    if not math.isfinite(value) or value < 0 or (positive and value == 0):
        least = "above 0" if positive else "0 or more"
        raise ArgumentError(f"{name} must be finite and {least}. Received: {value}")
