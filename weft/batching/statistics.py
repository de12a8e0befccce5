"""What a run did: how many operations, in how many batches."""

from __future__ import annotations

from typing import Any

from .signatures import BatchSignature


class Statistics:
    """Counts of one run."""

    def __init__(self) -> None:
        self.batches: list[tuple[BatchSignature, int]] = []
        self.rounds = 0
        self.in_place = 0

    def ran(self, signature: BatchSignature, size: int) -> None:
        """Count a batch."""
        self.batches.append((signature, size))

    def closed(self, store: Any) -> None:
        """Count what a store knows when it is complete."""
        self.in_place += store.in_place
