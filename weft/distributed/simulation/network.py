"""What moving bytes among ranks takes: the alpha-beta model.

A message of n bytes takes alpha + n * beta seconds. Collective operations are those of the usual
algorithms (Thakur, Rabenseifner and Gropp, 2005): rings, which move least, and recursive halving
and doubling, which send fewest messages; a library takes whichever is faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

from ...core.errors import ArgumentError, ArgumentTypeError


@dataclass(frozen=True)
class Network:
    """A network among ranks.

    latency     seconds of a message, whatever its size (alpha)
    bandwidth   bytes per second of one rank's link (1 / beta)
    addition    bytes per second at which a processor adds what has arrived
    occupied    which part of the time of an exchange a rank's processor cannot compute: near 0
                where the network card moves bytes, up to 1 where the processor copies them

    >>> f"{Network(latency=1e-5, bandwidth=1.25e9).all_reduce(25e6, 8):.3f}"
    '0.039'
    """

    latency: float
    bandwidth: float
    addition: float = 5e9
    occupied: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        for name in ("latency", "bandwidth", "addition"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ArgumentError(f"Network: {name} must be positive. Received: {value!r}")
        if not 0 <= self.occupied <= 1:
            raise ArgumentError(
                f"Network: occupied must lie between 0 and 1. Received: {self.occupied!r}"
            )

    def all_reduce(self, size: float, ranks: int) -> float:
        """Return the seconds of the sum of arrays of `size` bytes, to all."""
        return self.reduce_scatter(size, ranks) + self.all_gather(size, ranks)

    def reduce_scatter(self, size: float, ranks: int) -> float:
        """Return the seconds of a sum of which each rank gets a part."""
        moved = size * (ranks - 1) / ranks
        return self.waits(ranks) + moved / self.bandwidth + moved / self.addition

    def all_gather(self, size: float, ranks: int) -> float:
        """Return the seconds in which each rank gets the parts of all, `size` bytes together."""
        return self.waits(ranks) + size * (ranks - 1) / ranks / self.bandwidth

    def exchange(self, how: str, size: float, ranks: int) -> float:
        """Return the seconds of an exchange of arrays of `size` bytes, by what becomes of them."""
        kind = _KINDS.get(how, "all_reduce")
        found: float = getattr(self, kind)(size, ranks)
        return found

    def latency_of(self, how: str, ranks: int) -> float:
        """Return the seconds of an exchange that are latency, not bytes."""
        rounds = 2 if _KINDS.get(how, "all_reduce") == "all_reduce" else 1
        return rounds * self.waits(ranks)

    def waits(self, ranks: int) -> float:
        """Return the seconds of latency of a scatter or gather among ranks."""
        return math.ceil(math.log2(ranks)) * self.latency if ranks > 1 else 0.0


_KINDS: Final = {  # of exchanges; others are sums and the like, to all
    "scatter": "reduce_scatter",
    "mean_part": "reduce_scatter",
    "gather": "all_gather",
    "collect": "all_gather",
    "whole": "all_gather",
}
NETWORKS: Final = {
    "1gbit": Network(50e-6, 0.118e9, name="1 Gbit/s"),
    "10gbit": Network(20e-6, 1.18e9, name="10 Gbit/s"),
    "25gbit": Network(10e-6, 2.95e9, name="25 Gbit/s"),
    "100gbit": Network(3e-6, 11.8e9, name="100 Gbit/s"),
    "400gbit": Network(2e-6, 47e9, name="400 Gbit/s"),
}


def as_network(network: Any) -> Network:
    """Return a network by its name, or itself."""
    if isinstance(network, Network):
        return network
    if not isinstance(network, str):
        raise ArgumentTypeError(
            f"a network is a name or wf.distributed.Network. Received: {network!r:.60}"
        )
    if network not in NETWORKS:
        known = ", ".join(map(repr, NETWORKS))
        raise ArgumentError(f"there is no network {network!r}; there are {known}, or Network(...)")
    return NETWORKS[network]
