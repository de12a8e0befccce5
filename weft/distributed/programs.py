"""Which program a process runs, so that processes which run different ones are told so.

A captured step is known as a whole before it runs. Its first exchange therefore tells the others
which program it belongs to, by a checksum in the same eight bytes that say what is exchanged: it
costs nothing, and finds a difference that stands far behind the exchange. Nothing is compared with
who runs operation by operation, and of programs that differ by their nature: those which send to
single processes, and those which took one of several paths by their own values.

Real numbers in a program (a weight of a loss, a probability) may differ because they are meant to,
or because somebody edited a file on one machine: they have a checksum of their own, and where they
differ though all sizes are the same, that is a warning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ..core.cached_property import cached_property
from ..core.effects import current_log
from ..graph.outline import OutlineLine, outline, real_numbers, sizes_of
from ..graph.run import Program
from ..ops.collective.exchange import POINTS

BITS = 31  # of checksums of a program, in the number that processes compare
OF_NUMBERS = 11  # of these for the real numbers in it


class RunningProgram:
    """A program whose exchanges other processes take part in."""

    def __init__(self, program: Program) -> None:
        self.lines = outline(program)
        self.numbers = real_numbers(program)
        self.sizes = checksum(sizes_of(program))

    @cached_property
    def number(self) -> int:
        """Return a number that differs where programs do, and is not zero; behind it their own."""
        operations = _short("\n".join(line.text for line in self.lines), BITS - OF_NUMBERS)
        numbers = _short("\n".join(line.text for line in self.numbers), OF_NUMBERS)
        return operations << OF_NUMBERS | numbers


def _short(text: str, bits: int) -> int:
    return checksum(text) % ((1 << bits) - 1) + 1


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


Numbers = tuple[int, Sequence[OutlineLine]]  # a checksum of all sizes, and operations with numbers


def differing_numbers(described: Sequence[Numbers | None]) -> str | None:
    """Return which real numbers differ in programs of the same sizes, for people; None if none."""
    known = [(rank, one) for rank, one in enumerate(described) if one is not None]
    if len({sizes for _, (sizes, _) in known}) > 1:
        return None  # numbers may follow from sizes, and these may differ
    first, (_, mine) = known[0]
    for rank, (_, lines) in known[1:]:
        for a, b in zip_longest(mine, lines, fillvalue=OutlineLine("nothing more", "")):
            if a.text != b.text:
                return f"rank {first}: {_told(a)}; rank {rank}: {_told(b)}"
    return None


def _told(line: OutlineLine) -> str:
    return f"{line.text:.200}" + (f", {line.site}" if line.site else "")


def _parting(a: Sequence[OutlineLine], b: Sequence[OutlineLine]) -> int:
    same = (x.text == y.text for x, y in zip(a, b, strict=False))
    return next((i for i, equal in enumerate(same) if not equal), min(len(a), len(b)))


def _shown(lines: Sequence[OutlineLine], at: int) -> str:
    if at >= len(lines):
        return "nothing more"
    return _told(lines[at])


def checksum(text: str) -> int:
    """Return a 63-bit number that differs where texts do."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def packed(signature: int, program: RunningProgram | None) -> int:
    """Return one number of two: of an exchange, and of the program that it belongs to."""
    low: Any = 0 if program is None else program.number
    return (signature >> BITS << BITS) | int(low)


class Agreement(NamedTuple):
    """What processes have in common that are about to exchange something."""

    exchange: bool
    program: bool
    numbers: bool


def agree(numbers: Sequence[int]) -> Agreement:
    """Tell whether processes exchange the same, in the same program, with the same numbers."""
    exchanges = {number >> BITS for number in numbers}
    programs = {number & ((1 << BITS) - 1) for number in numbers} - {0}
    operations = {number >> OF_NUMBERS for number in programs}
    return Agreement(len(exchanges) == 1, len(operations) < 2, len(programs) < 2)
