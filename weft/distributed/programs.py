"""Which program a process runs, so that processes which run different ones are told so.

A captured step is known as a whole before it runs. Its first exchange therefore tells the others
which program it belongs to, by a checksum in the same eight bytes that say what is exchanged: it
costs nothing, and finds a difference that stands far behind the exchange. Nothing is compared with
who runs operation by operation, and of programs that differ by their nature: those which send to
single processes, and those which took one of several paths by their own values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

from ..core.effects import current_log
from ..graph.outline import OutlineLine, outline
from ..graph.run import Program
from ..ops.collective.exchange import POINTS

BITS = 31  # of a checksum of a program, in the number that processes compare


class RunningProgram:
    """A program whose exchanges other processes take part in."""

    def __init__(self, program: Program) -> None:
        self.lines = outline(program)

    @cached_property
    def number(self) -> int:
        """Return a number that differs where programs do, and is not zero."""
        return checksum("\n".join(line.text for line in self.lines)) % ((1 << BITS) - 1) + 1


_known: WeakKeyDictionary[Program, RunningProgram | None] = WeakKeyDictionary()


def running_program() -> RunningProgram | None:
    """Return the program that runs now, if it must be the same on all processes."""
    log = current_log()
    if log is None or log.running is None:
        return None
    program: Program = log.running[0]
    if program not in _known:
        _known[program] = RunningProgram(program) if _is_common(program) else None
    return _known[program]


def _is_common(program: Program) -> bool:
    exchanges = [node for node in program.order if node.op.communicates]
    points = any(node.attrs and node.attrs[0] in POINTS for node in exchanges)
    return not points and not program.takes_one_path


def difference(described: Sequence[Sequence[OutlineLine] | None]) -> str:
    """Return where the programs of processes part, for people; None runs without a program."""
    first = next(i for i, lines in enumerate(described) if lines is not None)
    mine = described[first]
    assert mine is not None
    for rank, lines in enumerate(described):
        if lines is not None and [line.text for line in lines] != [line.text for line in mine]:
            at = _parting(mine, lines)
            return (
                f"rank {first} runs {len(mine)} operations, rank {rank} {len(lines)}, and they "
                f"part at operation {at}: rank {first}: {_shown(mine, at)}; "
                f"rank {rank}: {_shown(lines, at)}"
            )
    return "the programs are the same"


def _parting(a: Sequence[OutlineLine], b: Sequence[OutlineLine]) -> int:
    same = (x.text == y.text for x, y in zip(a, b, strict=False))
    return next((i for i, equal in enumerate(same) if not equal), min(len(a), len(b)))


def _shown(lines: Sequence[OutlineLine], at: int) -> str:
    if at >= len(lines):
        return "nothing more"
    text, site = lines[at]
    return f"{text:.200}" + (f", {site}" if site else "")


def checksum(text: str) -> int:
    """Return a 63-bit number that differs where texts do."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def packed(signature: int, program: RunningProgram | None) -> int:
    """Return one number of two: of an exchange, and of the program that it belongs to."""
    low: Any = 0 if program is None else program.number
    return (signature >> BITS << BITS) | int(low)


def agree(numbers: Sequence[int]) -> tuple[bool, bool]:
    """Tell whether processes exchange the same, and whether they run the same program."""
    exchanges = {number >> BITS for number in numbers}
    programs = {number & ((1 << BITS) - 1) for number in numbers} - {0}
    return len(exchanges) == 1, len(programs) < 2
