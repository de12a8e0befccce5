"""Write functions that copy a block of a matrix, so that tiles can read it in sequence.

    void copy(ptr source, ptr target, i64 lines, i64 length, ptr further_operand...)

A line is a row or a column of the source, whichever is called so by the strides. What is copied may
be computed from what lies there and in other operands (gemm_source.py). Targets have room
for lines and lengths rounded up to whole vectors; what is written there is never used.
"""

from __future__ import annotations

from dataclasses import dataclass

from .gemm_source import Reader, Source
from .text import FunctionText, ModuleText
from .values import Value, bits_of

INTERNAL = "internal void"  # a linkage is written where the return type is
PARAMETERS = ["ptr noalias", "ptr noalias", "i64", "i64"]
UNROLL = 4
LINES_AHEAD = 4


@dataclass(frozen=True)
class Copy:
    """A copy of lines: strides of the target, from line to line and within a line.

    lengths   the lengths that occur
    """

    element: str
    lanes: int
    source: Source
    target_line: int
    target_step: int
    lengths: tuple[int, ...]

    @property
    def by_vectors(self) -> bool:
        """Tell whether every line can be copied by whole vectors, the last perhaps overlapping."""
        return self.source.by_vectors and min(self.lengths) >= self.lanes

    def function(self, module: ModuleText, name: str) -> FunctionText:
        """Start the function of the copy."""
        further = ["ptr noalias"] * (len(self.source.operands) - 1)
        return module.function(name, [*PARAMETERS, *further], INTERNAL)

    def reader(self, f: FunctionText, line: Value, lanes: int) -> Reader:
        """Return what reads a line of the source."""
        source, _, _, _, *further = f.parameters
        return Reader(f, self.source, (source, *further), line, lanes)

    def target(self, f: FunctionText, line: Value) -> Value:
        """Return where a line goes."""
        return f.gep(f.parameters[1], f.mul(line, self.target_line), self.element)


def write_copy(module: ModuleText, name: str, copy: Copy) -> None:
    """Add the function of a copy to a module."""
    f = copy.function(module, name)
    if copy.by_vectors and copy.target_step == 1:
        _write_straight(f, copy)
    elif copy.by_vectors and copy.target_line == 1:
        _write_transposing(f, copy)
    else:
        _write_strided(f, copy)
    f.ret()


def _write_straight(f: FunctionText, copy: Copy) -> None:
    _, _, lines, length, *_ = f.parameters
    with f.loop(0, lines, 1) as line:
        reader, there = copy.reader(f, line, copy.lanes), copy.target(f, line)
        with f.loop(0, length, copy.lanes) as i:
            at = _within(f, copy, i)
            if copy.source.value is not None:  # several streams of short runs outwit the processor
                reader.prefetch(at, LINES_AHEAD)
            f.store(reader.read(at), f.gep(there, at, copy.element))


def _within(f: FunctionText, copy: Copy, i: Value) -> Value:
    """Return where the vector at i begins, so that it ends within the line."""
    if all(length % copy.lanes == 0 for length in copy.lengths):
        return i
    return f.minimum(i, f.sub(f.parameters[3], copy.lanes))


def _write_transposing(f: FunctionText, copy: Copy) -> None:
    """Transpose squares of elements in registers; lines beyond the last repeat it."""
    _, _, lines, length, *_ = f.parameters
    with f.loop(0, lines, copy.lanes) as line:
        readers = _line_readers(f, copy, line)
        with f.loop(0, length, copy.lanes) as i:
            _square(f, copy, readers, line, _within(f, copy, i))


def _line_readers(f: FunctionText, copy: Copy, line: Value) -> list[Reader]:
    final = f.sub(f.parameters[2], 1)
    return [copy.reader(f, f.minimum(f.add(line, j), final), copy.lanes) for j in range(copy.lanes)]


def _square(f: FunctionText, copy: Copy, readers: list[Reader], line: Value, i: Value) -> None:
    rows = [reader.read(i) for reader in readers]
    there = f.gep(f.parameters[1], f.add(line, f.mul(i, copy.target_step)), copy.element)
    for j, value in enumerate(transposed(f, rows)):
        f.store(value, f.gep(there, j * copy.target_step, copy.element))


def _write_strided(f: FunctionText, copy: Copy) -> None:
    _, _, lines, length, *_ = f.parameters
    with f.loop(0, lines, 1) as line:
        reader, there = copy.reader(f, line, 1), copy.target(f, line)
        with f.loop(0, length, 1) as i:
            f.store(reader.read(i), f.gep(there, f.mul(i, copy.target_step), copy.element))


def write_strip_copy(module: ModuleText, name: str, copy: Copy, room: int) -> None:
    """Add a copy of whole lines to several panels, which begin `room` elements apart.

    `length` counts panels. Lines are read in sequence, some lines ahead of what is wanted.
    """
    f = copy.function(module, name)
    _, _, lines, panels, *_ = f.parameters
    ahead = LINES_AHEAD * copy.source.operands[0].line
    with f.loop(0, lines, 1) as line:
        reader, there = copy.reader(f, line, copy.lanes), copy.target(f, line)
        with f.loop(0, panels, 1) as panel:
            start = f.mul(panel, copy.target_line)
            f.prefetch(reader.place(f.add(start, ahead)))
            end = f.gep(there, f.mul(panel, room), copy.element)
            for at in range(0, copy.target_line, copy.lanes):
                f.store(reader.read(f.add(start, at)), f.gep(end, at, copy.element), aligned=True)
    f.ret()


def write_panel_copy(
    module: ModuleText, name: str, copy: Copy, columns: int, *, prefetch: int = 0
) -> None:
    """Add a copy of lines of fixed length, rounded up to vectors with zeros.

    `prefetch` is the distance in elements of what will be wanted next.
    """
    f = copy.function(module, name)
    lines = f.parameters[2]
    unrolled = f.and_(lines, -UNROLL)
    for start, stop, step in ((f.constant("i64", 0), unrolled, UNROLL), (unrolled, lines, 1)):
        with f.loop(start, stop, step) as line:
            for u in range(step):
                _panel_line(f, copy, f.add(line, u), columns, prefetch)
    f.ret()


def _panel_line(f: FunctionText, copy: Copy, line: Value, columns: int, prefetch: int) -> None:
    reader, there = copy.reader(f, line, copy.lanes), copy.target(f, line)
    for at in range(0, columns, copy.lanes):
        left = columns - at
        count = None if left >= copy.lanes else f.constant("i64", left)
        f.store(reader.read(at, count=count), f.gep(there, at, copy.element), aligned=True)
    if prefetch:
        f.prefetch(reader.place(prefetch))


def transposed(f: FunctionText, rows: list[Value]) -> list[Value]:
    """Return the columns of a square of values, one vector each, by log2 rounds of shuffles.

    A round exchanges one bit of the row's number with the same bit of the lane's. For 32-bit
    elements the first two rounds are made of interleavings, which x86 does in one instruction.
    """
    n, step = len(rows), 1
    if n >= 4 and bits_of(rows[0].type) == 32:
        rows = _fours_transposed(f, rows)
        step = 4
    while step < n:
        low = [lane if lane & step == 0 else n + lane - step for lane in range(n)]
        high = [lane + step if lane & step == 0 else n + lane for lane in range(n)]
        rows = _paired(f, rows, step, low, high)
        step *= 2
    return rows


def _fours_transposed(f: FunctionText, rows: list[Value]) -> list[Value]:
    """Transpose each square of four by four."""
    n = len(rows)
    fours = range(0, n, 4)

    def lanes(*order: int) -> list[int]:
        return [four + (i if i < 4 else n + i - 4) for four in fours for i in order]

    rows = _paired(f, rows, 1, lanes(0, 4, 1, 5), lanes(2, 6, 3, 7))
    rows = _paired(f, rows, 2, lanes(0, 1, 4, 5), lanes(2, 3, 6, 7))
    return [rows[four + i] for four in fours for i in (0, 2, 1, 3)]


def _paired(
    f: FunctionText, rows: list[Value], step: int, low: list[int], high: list[int]
) -> list[Value]:
    """Shuffle rows whose numbers differ by `step` with each other."""
    result = list(rows)
    for i in (i for i in range(len(rows)) if i & step == 0):
        result[i] = f.shuffle(rows[i], rows[i + step], low)
        result[i + step] = f.shuffle(rows[i], rows[i + step], high)
    return result
