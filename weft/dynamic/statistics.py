"""What a run did: how many operations, in how many batches, and a picture of it."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ..core.shape import TensorType
from ..viz.schedule import ScheduledBatch, draw_schedule
from .signatures import BatchSignature, SignatureTable


class BatchOfRun(NamedTuple):
    """A batch that ran: of what, how many members, and in which round."""

    signature: BatchSignature
    size: int
    round: int


class BatchPlan:
    """How one call of a batched function, or one context, was run.

    batches    what ran as one, in order
    rounds     how often everything that was put off was run: once more for each time that
               examples waited for values
    examples   how many there were, and `planned` how many of them went by plans
    differed   how many read values that led elsewhere than their plans said
    """

    def __init__(self, table: SignatureTable) -> None:
        self.table = table
        self.batches: list[BatchOfRun] = []
        self.rounds = 0
        self.examples = 0
        self.planned = 0
        self.differed = 0
        self.reason: str | None = None
        self._in_place = 0
        self._gathered = 0

    def ran(self, signature: BatchSignature, size: int) -> None:
        """Count a batch."""
        self.batches.append(BatchOfRun(signature, size, self.rounds))

    def closed(self, store: Any) -> None:
        """Count what a store knows when it is complete."""
        self._in_place += store.in_place
        self._gathered += store.gathered

    def stats(self) -> dict[str, Any]:
        """Return the counts.

        operations        that were put off; a call of a cell is one
        batches           that they ran as, and how many operations each had on average
        in place          operands of batches that were used where they lay: copies avoided
        gathered          operands of batches whose rows were brought together
        rounds            how often what was put off was run
        examples          of the call, and how many went by plans, without running Python
        differed          examples whose plans did not hold, by the values that they read
        why not planned   what keeps plans from being kept, if anything does
        """
        operations, batches = sum(b.size for b in self.batches), len(self.batches)
        return {
            "operations": operations,
            "batches": batches,
            "mean width": operations / batches if batches else 0.0,
            "in place": self._in_place,
            "gathered": self._gathered,
            "rounds": self.rounds,
            "examples": self.examples,
            "planned": self.planned,
            "differed": self.differed,
            "why not planned": self.reason,
        }

    def draw(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return a picture of the schedule as SVG, and write it if there is a path (.svg, .png).

        Batches stand from left to right as they ran, those of one signature in one row; the number
        is how many operations ran as one, and a gap stands where examples waited for values.
        """
        stats = self.stats()
        title = (
            f"{stats['operations']:,} operations in {stats['batches']:,} batches, "
            f"{stats['mean width']:.1f} on average"
        )
        shown = [
            ScheduledBatch(self._label(b.signature), b.signature.work.kind, b.size, b.round)
            for b in self.batches
        ]
        return draw_schedule(title, shown, path)

    def _label(self, signature: BatchSignature) -> str:
        types = [self._type(spec) for spec in signature.specs if spec is not None]
        return f"{signature.name}({', '.join(types)})"

    def _type(self, spec: Any) -> str:
        kind: TensorType = self.table.types[spec] if spec.__class__ is int else spec.type
        sizes = "x".join(map(str, kind.shape)) or "number"
        return sizes if spec.__class__ is int else f"shared {sizes}"

    def _repr_svg_(self) -> str:
        return self.draw()

    def __repr__(self) -> str:
        stats = self.stats()
        return f"<plan of {stats['operations']} operations in {stats['batches']} batches>"
