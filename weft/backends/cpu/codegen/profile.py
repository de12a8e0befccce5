"""Write the functions that run a program's kernels once more, with a clock around each of them.

They stand in a module of their own, made only when somebody asks for a profile: what runs
otherwise is not slower for it. Times go to a record, a table of words behind an entry of the
program's memory:

    record[slot] = (begin, end, thread)        (of all calls together, from the first one on)

Each chunk of a piece has a slot, also where the piece is run as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....lower.memory import MemoryPlan
from ....lower.schedule import Piece
from .program import Part, ProgramText, ProgramWriter
from .target import Target
from .text import FunctionText
from .values import IRValue

CLOCK = "weft_profile_clock"  # i64 (), in units of the runtime's choice
SLOT_WORDS = 3


@dataclass
class ProfiledText:
    """The module of a program's timed functions, and where their times go."""

    entry: str
    slots: list[range]  # for each piece, those of its chunks
    count: int


def write_profiled(
    program: ProgramText, memory: MemoryPlan, target: Target, record: int
) -> ProfiledText:
    """Return the timed functions of a program; `record` is the entry of its memory to write to."""
    pieces = program.schedule.pieces
    slots = _slots(pieces)
    writer = _TimedWriter(program, memory, target, record)
    writer.slots = {id(piece): slot for piece, slot in zip(pieces, slots, strict=True)}
    count = slots[-1].stop if slots else 0
    return ProfiledText(writer.entry(), slots, count)


def _slots(pieces: Sequence[Piece]) -> list[range]:
    found, free = [], 0
    for piece in pieces:
        found.append(range(free, free + piece.chunks))
        free += piece.chunks
    return found


class _TimedWriter(ProgramWriter):
    """Writes the functions that run pieces, with readings of the clock."""

    def __init__(
        self, program: ProgramText, memory: MemoryPlan, target: Target, record: int
    ) -> None:
        super().__init__(program, memory, target)
        self.record = record
        self.slots: dict[int, range] = {}

    def call_kernel(
        self, f: FunctionText, tables: tuple[IRValue, ...], piece: Piece, part: Part
    ) -> None:
        """Write the call of a kernel's function between two readings."""
        begin = _clock(f)
        super().call_kernel(f, tables, piece, part)
        slot = f.add(part.chunk, self.slots[id(piece)].start)
        self._note(f, tables[1], slot, begin, part.thread)

    def _note(
        self, f: FunctionText, memory: IRValue, slot: IRValue, begin: IRValue, thread: IRValue
    ) -> None:
        """Add the time that has passed since `begin` to a slot: in a loop, all calls add up."""
        record = f.load("ptr", f.gep(memory, self.record, "ptr"))
        place = f.gep(record, f.mul(slot, SLOT_WORDS), "i64")
        past = f.load("i64", f.gep(place, 1, "i64"))
        is_first = f.icmp("eq", past, 0)
        first = f.select(is_first, begin, f.load("i64", place))
        passed = f.sub(_clock(f), begin)
        end = f.add(f.select(is_first, begin, past), passed)
        for i, word in enumerate((first, end, thread)):
            f.store(word, f.gep(place, i, "i64"))


def _clock(f: FunctionText) -> IRValue:
    return f.call(CLOCK, "i64", declare=True)
