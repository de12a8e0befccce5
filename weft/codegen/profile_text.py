"""Write the functions that run a program's kernels once more, with a clock around each of them.

They stand in a module of their own, made only when somebody asks for a profile: what runs
otherwise is not slower for it. Times go to a record, a table of words behind an entry of the
program's memory:

    record[slot] = (begin, end, thread)

A piece has a slot for its call as a whole, and if the pool runs it, one for each chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .program import Piece, Place, ProgramText, ProgramWriter
from .target import Target
from .text import FunctionText
from .values import Value

CLOCK = "weft_profile_clock"  # i64 (), in units of the runtime's choice
SLOT_WORDS = 3


@dataclass(frozen=True)
class Slots:
    """Where the times of a piece are: of the whole call, and of the first of its chunks."""

    whole: int
    chunks: range


@dataclass
class ProfiledText:
    """The module of a program's timed functions, and where their times go."""

    entry: str
    slots: list[Slots]
    count: int


def write_profiled(
    program: ProgramText, places: dict[Any, Place], target: Target, record: int
) -> ProfiledText:
    """Return the timed functions of a program; `record` is the entry of its memory to write to."""
    slots = list(_slots(program.pieces))
    writer = _TimedWriter(places, target, record)
    writer.slots = {id(piece): slot for piece, slot in zip(program.pieces, slots, strict=True)}
    last = slots[-1] if slots else Slots(-1, range(0))
    count = max(last.whole + 1, last.chunks.stop)
    return ProfiledText(writer.entry(program.stretches), slots, count)


def _slots(pieces: Sequence[Piece]) -> list[Slots]:
    found, free = [], 0
    for piece in pieces:
        chunks = piece.chunks if piece.chunks > 1 else 0
        found.append(Slots(free, range(free + 1, free + 1 + chunks)))
        free += 1 + chunks
    return found


class _TimedWriter(ProgramWriter):
    """Writes the functions that run pieces, with readings of the clock."""

    def __init__(self, places: dict[Any, Place], target: Target, record: int) -> None:
        super().__init__(places, target)
        self.record = record
        self.slots: dict[int, Slots] = {}

    def run_piece(self, run: FunctionText, piece: Piece, task: str | None, tables: Value) -> None:
        """Write the call of a kernel between two readings."""
        begin = _clock(run)
        super().run_piece(run, piece, task, tables)
        slot = run.constant("i64", self.slots[id(piece)].whole)
        self._note(run, run.parameters[1], slot, begin, run.constant("i64", 0))

    def call_kernel(
        self, f: FunctionText, tables: tuple[Value, ...], piece: Piece, begin: Any, end: Any
    ) -> None:
        """Write the call of a kernel's function; a chunk is timed by who runs it."""
        if piece.chunks == 1:
            super().call_kernel(f, tables, piece, begin, end)
            return
        _, chunk, thread = f.parameters
        start = _clock(f)
        super().call_kernel(f, tables, piece, begin, end)
        slot = f.add(chunk, self.slots[id(piece)].chunks.start)
        self._note(f, tables[1], slot, start, thread)

    def _note(
        self, f: FunctionText, memory: Value, slot: Value, begin: Value, thread: Value
    ) -> None:
        """Write the time that has passed since `begin` to a slot."""
        record = f.load("ptr", f.gep(memory, self.record, "ptr"))
        place = f.gep(record, f.mul(slot, SLOT_WORDS), "i64")
        for i, word in enumerate((begin, _clock(f), thread)):
            f.store(word, f.gep(place, i, "i64"))


def _clock(f: FunctionText) -> Value:
    return f.call(CLOCK, "i64", declare=True)
