"""How a bucket of gradients travels: as it is, in bfloat16, or its largest elements alone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..core import dtype as dtypes
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import current_recorder, current_tracer
from ..core.op import F
from ..ops.collective.exchange import exchanged
from .errors import DistributedError
from .exchanges import ExchangeSignature, PendingExchange, take
from .transport import Array
from .world import ProcessGroup


class Travel(Protocol):
    """How flat arrays of all processes become their mean."""

    def start(self, group: ProcessGroup, flat: Array, note: str) -> Any:
        """Begin with an array that is given away."""

    def finish(self, begun: Any) -> Array:
        """Return the mean, when it is there."""

    def in_graph(self, group: ProcessGroup, flat: Any, note: str) -> Any:
        """Return the mean as operations."""


class Plain:
    """Gradients as they are.

    how      "mean", or "pairwise" with a `factor` for the sum
    """

    def __init__(self, how: str = "mean", factor: float = 1.0) -> None:
        self.how, self.factor = how, factor

    def start(self, group: ProcessGroup, flat: Array, note: str) -> PendingExchange:
        """Begin with an array that is given away."""
        return _begun(group, flat, self.how, note)

    def finish(self, begun: PendingExchange) -> Array:
        """Return the mean, when it is there."""
        total = begun.wait()
        return total if self.factor == 1.0 else total * total.dtype.type(self.factor)

    def in_graph(self, group: ProcessGroup, flat: Any, note: str) -> Any:
        """Return the mean as operations."""
        total = exchanged(flat, self.how, group.number, group.size, note=note)
        return total if self.factor == 1.0 else total * self.factor


class Bfloat16:
    """Gradients rounded to bfloat16 on their way: half of the bytes of float32."""

    def start(self, group: ProcessGroup, flat: Array, note: str) -> tuple[PendingExchange, Any]:
        """Begin with an array that is given away."""
        return _begun(group, flat.astype(dtypes.bfloat16()), "mean", note), flat.dtype

    def finish(self, begun: tuple[PendingExchange, Any]) -> Array:
        """Return the mean, when it is there."""
        pending, dtype = begun
        return pending.wait().astype(dtype)

    def in_graph(self, group: ProcessGroup, flat: Any, note: str) -> Any:
        """Return the mean as operations."""
        half = F.cast(flat, dtypes.bfloat16())
        mean = exchanged(half, "mean", group.number, group.size, note=note)
        return F.cast(mean, flat.dtype)


class TopK:
    """The largest elements of gradients; what is not sent is added to the next ones.

    fraction   how many of all elements are sent (Lin et al. 2018, deep gradient compression)
    """

    def __init__(self, fraction: float = 0.01) -> None:
        if not 0 < fraction <= 1:
            raise ArgumentError(f"TopK: fraction must lie in (0, 1]. Received: {fraction}")
        self.fraction = fraction
        self._left: dict[str, Array] = {}

    def start(self, group: ProcessGroup, flat: Array, note: str) -> Any:
        """Begin with an array that is given away."""
        flat += self._left.get(note, 0)
        count = max(1, int(flat.size * self.fraction))
        places = np.sort(np.argpartition(np.abs(flat), -count)[-count:])
        values = flat[places]
        flat[places] = 0
        self._left[note] = flat
        parts = places.astype(np.int64), values
        return [_begun(group, part, "gather", note) for part in parts], flat, group.size

    def finish(self, begun: Any) -> Array:
        """Return the mean, when it is there."""
        (places, values), like, size = begun
        total: Array = np.zeros_like(like)
        np.add.at(total, places.wait(), values.wait())
        total /= size
        return total

    def in_graph(self, group: ProcessGroup, flat: Any, note: str) -> Any:
        """Refuse: what is left is kept in Python. A jitted function runs eagerly then."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.refuse("gradients are compressed to their largest elements, in Python")
        assert current_tracer() is not None
        raise DistributedError(
            'compression="topk" keeps what is not sent in Python, and cannot be part of a graph; '
            'use compression="bfloat16"'
        )


def _begun(group: ProcessGroup, own: Array, how: str, note: str) -> PendingExchange:
    signature = ExchangeSignature.of(own, how, note=note)
    return take(group.exchanges.start(own, signature).ticket)


NAMED = {"bfloat16": Bfloat16, "topk": TopK}


def as_travel(compression: Any) -> Travel:
    """Return how gradients travel: by name, or something of the user's own."""
    if compression is None:
        return Plain()
    if isinstance(compression, str):
        if compression not in NAMED:
            raise ArgumentError(
                f"compression must be None, {', '.join(map(repr, NAMED))}. "
                f"Received: {compression!r}"
            )
        named: Travel = NAMED[compression]()
        return named
    if not all(hasattr(compression, name) for name in ("start", "finish", "in_graph")):
        raise ArgumentTypeError(
            "compression must be a name or have start, finish and in_graph. "
            f"Received: {compression!r:.60}"
        )
    travel: Travel = compression
    return travel
