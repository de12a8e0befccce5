"""What the network between running ranks takes, by small measurements, for predictions.

Exchanges are measured as training does them: with the comparison that precedes each, by the thread
that does them, into fresh memory. What they take of the processor is seen at a loop that computes
while they are on their way, on all ranks at once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ...core.errors import ArgumentError
from ...core.tensor import Tensor, wrap
from ..exchanges import Exchanges, ExchangeSignature, PendingExchange, take
from ..world import ProcessGroup, world
from .network import Network

SIZES: Final = (2**10, 2**20, 2**23)  # bytes: of waiting, and of two arrays that travel
WIDTH: Final = 256  # of the matrices that are multiplied meanwhile


def measure_network(*, group: ProcessGroup | None = None, repeats: int = 8) -> Network:
    """Return the network between the ranks of a group, of at least two; all of them call it.

    It takes a second or so, and gives what `wf.distributed.simulate` takes as `network`: the
    latency and the bandwidth of exchanges, and which part of the processor they occupy.
    """
    group = world() if group is None else group
    if group.size < 2:
        raise ArgumentError(
            "measure_network: there must be two ranks or more; use weft launch -n 2"
        )
    exchanges = group.exchanges
    times = [_exchange_seconds(exchanges, size, repeats) for size in SIZES]
    own = (*times, *_rates(exchanges))
    of_all = exchanges.run(lambda: exchanges.transport.objects(own))
    return _network(*np.mean(of_all, axis=0).tolist(), ranks=group.size)


def _network(
    small: float, middle: float, large: float, alone: float, together: float, *, ranks: int
) -> Network:
    """Return the network of which exchanges, and what was computed meanwhile, were measured."""
    slope = max(large - middle, 1e-12) / (SIZES[2] - SIZES[1])
    # A sum of n bytes moves 2 n (ranks - 1) / ranks of them and waits 2 log2(ranks) times.
    moved, rounds = 2 * (ranks - 1) / ranks, 2 * math.ceil(math.log2(ranks))
    latency = max(small, middle - SIZES[1] * slope) / rounds
    occupied = min(max(1.0 - together / alone, 0.0), 0.99)
    return Network(latency, moved / slope, addition=1e18, occupied=occupied, name="measured")


def _exchange_seconds(exchanges: Exchanges, size: int, repeats: int) -> float:
    """Return the least time of the sum of arrays of so many bytes."""

    def act() -> None:
        take(_begun(exchanges, size).ticket).wait()

    return min(_seconds(exchanges, act) for _ in range(repeats))


def _begun(exchanges: Exchanges, size: int) -> PendingExchange:
    array = np.ones(size // 4, np.float32)
    return exchanges.start(array, ExchangeSignature.of(array, "mean"))


def _seconds(exchanges: Exchanges, act: Callable[[], Any]) -> float:
    exchanges.check("a measurement")
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def _rates(exchanges: Exchanges, count: int = 6) -> tuple[float, float]:
    """Return how fast something computes: alone, and while exchanges are on their way."""
    x: Tensor = wrap(np.ones((WIDTH, WIDTH), np.float32))

    def multiply() -> Tensor:
        return x @ x

    exchanges.check("a measurement")
    alone, together = _rate(multiply, time.perf_counter() + 0.2), list[float]()
    for _ in range(count):
        exchanges.check("a measurement")
        begun = _begun(exchanges, SIZES[2])
        together.append(_rate(multiply, begun))
        take(begun.ticket).wait()
    return alone, float(np.median(together))


def _rate(act: Callable[[], Any], until: float | PendingExchange) -> float:
    """Return how often something can be done in a second, until a moment or an exchange's end."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() < until if isinstance(until, float) else not until.is_done:
        act()
        count += 1
    return count / (time.perf_counter() - began)
