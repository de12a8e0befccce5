"""What brings blobs into a net: batch after batch, for ever, resumable at any batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import TypeAlias

import numpy as np

from ..errors import CaffeError
from ..inputs_protocol import Array, Shape
from .ahead import Ahead

BatchStream: TypeAlias = Generator[list[Array], None, None]


class Batches(ABC):
    """All batches of a data layer: each follows from the seed and its number alone.

    So a resumed run sees what an undisturbed one sees, and a thread may make batches ahead.
    """

    shapes: list[Shape]  # of the tops
    are_at_hand = False  # whether making one takes no time that a thread could save

    def __init__(self, seed: int) -> None:
        self.seed = seed

    @abstractmethod
    def stream(self, start: int) -> BatchStream:
        """Yield the arrays of all tops, from the batch of this number on."""

    def generator(self, batch: int) -> np.random.Generator:
        """Return the random numbers of a batch."""
        return np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 1, batch]))

    def skipped(self, most: int) -> int:
        """Return how many items are passed over at the start: `rand_skip`."""
        return int(self.generator(0).integers(0, most)) if most else 0


class Input:
    """The batches of a data layer one by one, as `inputs_protocol.InputSource` has them.

    prefetch   how many a thread makes ahead
    """

    def __init__(self, batches: Batches, prefetch: int = 0) -> None:
        self._batches, self._prefetch = batches, prefetch
        self._given = 0
        self._running: Ahead | BatchStream | None = None

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the tops."""
        return tuple(self._batches.shapes)

    def next(self) -> tuple[Array, ...]:
        """Return the arrays of the next batch, one for each top."""
        if self._running is None:
            stream = self._batches.stream(self._given)
            is_ahead = self._prefetch and not self._batches.are_at_hand
            self._running = Ahead(stream, self._prefetch) if is_ahead else stream
        batch = next(self._running)
        self._given += 1
        return tuple(batch)

    def state(self) -> dict[str, int]:
        """Return where this input stands, for a snapshot."""
        return {"batch": self._given, "seed": self._batches.seed}

    def restore(self, state: Mapping[str, int]) -> None:
        """Go to where an input stood."""
        self.close()
        self._given, self._batches.seed = int(state["batch"]), int(state["seed"])

    def close(self) -> None:
        """End what runs ahead; the next batch begins it anew."""
        running, self._running = self._running, None
        if running is not None:
            running.close()


def checked_batch_size(layer: str, size: int) -> int:
    """Return the size of batches; refuse nothing at all."""
    if size < 1:
        raise CaffeError(f"layer {layer!r}: batch_size must be positive. Received: {size}")
    return size
