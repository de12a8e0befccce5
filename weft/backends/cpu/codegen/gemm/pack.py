"""Write functions that copy a block of a matrix, so that tiles can read it in sequence.

    void copy(ptr source, ptr target, i64 lines, i64 length, ptr further_operand...)

A line is a row or a column of the source, whichever is called so by the strides. What is copied may
be computed from what lies there and in other operands (gemm_source.py). Targets have room
for lines and lengths rounded up to whole vectors; what is written there is never used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .....core.dim import is_known
from .....core.shape import Size
from ..text import FunctionText, ModuleText
from ..values import IRValue, bits_of
from .source import PanelReader, PanelSource

INTERNAL = "internal void"  # a linkage is written where the return type is
PARAMETERS = ["ptr noalias", "ptr noalias", "i64", "i64"]
UNROLL = 8  # vectors in a turn of a loop that copies
LINES_AHEAD = 4


@dataclass(frozen=True)
class Copy:
    """A copy of lines: strides of the target, from line to line and within a line.

    lengths   the lengths that occur
    """

    element: str
    lanes: int
    source: PanelSource
    target_line: Size
    target_step: Size
    lengths: tuple[int, ...]

    @property
    def by_vectors(self) -> bool:
        """Tell whether every line can be copied by whole vectors, the last perhaps overlapping."""
        return self.source.by_vectors and min(self.lengths) >= self.lanes

    def function(self, module: ModuleText, name: str) -> FunctionText:
        """Start the function of the copy."""
        further = ["ptr noalias"] * (len(self.source.operands) - 1)
        return module.function(name, [*PARAMETERS, *further], INTERNAL)

    def reader(self, f: FunctionText, line: IRValue, lanes: int) -> PanelReader:
        """Return what reads a line of the source."""
        source, _, _, _, *further = f.parameters
        return PanelReader(f, self.source, (source, *further), line, lanes)

    def target(self, f: FunctionText, line: IRValue) -> IRValue:
        """Return where a line goes."""
        return f.gep(f.parameters[1], f.mul(line, self.target_line), self.element)


def write_copy(module: ModuleText, name: str, copy: Copy) -> None:
    """Add the function of a copy to a module."""
    f = copy.function(module, name)
    if copy.by_vectors and copy.target_line == 1:
        _write_transposing(f, copy)
    else:
        _write_strided(f, copy)
    f.ret()


def _within(
    f: FunctionText, i: IRValue, length: IRValue, lanes: int, lengths: tuple[int, ...]
) -> IRValue:
    """Return where the vector at i begins, so that it ends within a line; lengths that occur."""
    if all(known % lanes == 0 for known in lengths):
        return i
    return f.minimum(i, f.sub(length, lanes))


def _write_transposing(f: FunctionText, copy: Copy) -> None:
    """Transpose squares of elements in registers; lines beyond the last repeat it."""
    _, _, lines, length, *_ = f.parameters
    with f.loop(0, lines, copy.lanes) as line:
        readers = _line_readers(f, copy, line)
        with f.loop(0, length, copy.lanes) as i:
            _square(f, copy, readers, line, _within(f, i, length, copy.lanes, copy.lengths))


def _line_readers(f: FunctionText, copy: Copy, line: IRValue) -> list[PanelReader]:
    final = f.sub(f.parameters[2], 1)
    return [copy.reader(f, f.minimum(f.add(line, j), final), copy.lanes) for j in range(copy.lanes)]


def _square(
    f: FunctionText, copy: Copy, readers: list[PanelReader], line: IRValue, i: IRValue
) -> None:
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


def write_strip_copy(module: ModuleText, name: str, copy: Copy, room: Size) -> None:
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


@dataclass(frozen=True)
class Stacks:
    """A copy of rows of the inner dimension to stacks, each of as many rows as a tile has.

        void copy(ptr source, ptr target, i64 rows, i64 depth, ptr further_operand...)

    In a stack, elements of one column lie one behind another, then those of the next. The last
    stack begins so much higher that it ends with the rows.

    height   rows of a stack
    room     columns that it has room for; behind the last stack there is room for a vector
    by_row   whether lines of the source are rows
    depths   the numbers of columns that occur
    """

    element: str
    lanes: int
    source: PanelSource
    height: int
    room: Size
    by_row: bool
    depths: tuple[int, ...]


def write_stacks(module: ModuleText, name: str, stacks: Stacks) -> None:
    """Add a copy to stacks to a module."""
    further = ["ptr noalias"] * (len(stacks.source.operands) - 1)
    _StackWriter(module.function(name, [*PARAMETERS, *further], INTERNAL), stacks).write()


class _StackWriter:
    """Writes whole vectors even where a stack is lower: what is too much is overwritten next."""

    def __init__(self, f: FunctionText, stacks: Stacks) -> None:
        self.f = f
        self.stacks = stacks
        source, self.target, self.rows, self.depth, *further = f.parameters
        self.pointers = (source, *further)

    def write(self) -> None:
        """Write the function."""
        f, stacks = self.f, self.stacks
        if not stacks.source.by_vectors or (stacks.by_row and min(stacks.depths) < stacks.lanes):
            self._by_elements()
        elif stacks.by_row:
            self._by_squares()
        else:
            self._by_columns()
        f.ret()

    def _reader(self, line: IRValue, lanes: int) -> PanelReader:
        return PanelReader(self.f, self.stacks.source, self.pointers, line, lanes)

    def _place(self, row: IRValue, column: IRValue, at: int) -> IRValue:
        """Return where an element of the stack goes that begins with a row."""
        f, stacks = self.f, self.stacks
        offset = f.add(f.mul(row, stacks.room), f.mul(column, stacks.height))
        return f.gep(self.target, f.add(offset, at), stacks.element)

    def _start(self, row: IRValue) -> IRValue:
        """Return the row that a stack begins with in the source."""
        return self.f.minimum(row, self.f.sub(self.rows, self.stacks.height))

    def _by_squares(self) -> None:
        """Transpose squares of elements in registers, while the next stack is on its way."""
        f, stacks = self.f, self.stacks
        height, lanes = stacks.height, stacks.lanes
        with f.loop(0, self.rows, height) as row:
            start = self._start(row)
            readers = [self._reader(f.add(start, j), lanes) for j in range(height)]
            with f.loop(0, self.depth, lanes) as i:
                column = _within(f, i, self.depth, lanes, stacks.depths)
                for reader in readers:
                    reader.prefetch(column, height)
                lines = [reader.read(column) for reader in readers]
                lines += lines[-1:] * (-height % lanes)
                for at in reversed(range(0, height, lanes)):
                    there = self._place(row, column, at)
                    for j, value in enumerate(transposed(f, lines[at : at + lanes])):
                        f.store(value, f.gep(there, j * height, stacks.element))

    def _by_columns(self) -> None:
        """Copy the parts of one column after another, by whole vectors where these exist."""
        f, stacks = self.f, self.stacks
        height, lanes = stacks.height, stacks.lanes
        whole = [(at, lanes) for at in range(0, height, lanes)]
        # The first stack that begins so low that vectors would reach beyond the last row.
        beyond = f.maximum(f.sub(self.rows, len(whole) * lanes - height), 0)
        first = f.sub(beyond, f.urem(beyond, height))
        with f.loop(0, self.depth, 1) as column:
            for begin, end, parts in (
                (f.constant("i64", 0), first, whole),
                (first, self.rows, pieces(height, lanes)),
            ):
                readers = [(at, self._reader(column, n)) for at, n in parts]
                with f.loop(begin, end, height) as row:
                    self._copy_part(row, column, readers)

    def _copy_part(
        self, row: IRValue, column: IRValue, readers: list[tuple[int, PanelReader]]
    ) -> None:
        """Copy the part of a column that belongs to the stack at a row."""
        f, start = self.f, self._start(row)
        readers[0][1].prefetch(start, LINES_AHEAD)
        for at, reader in readers:
            f.store(reader.read(f.add(start, at)), self._place(row, column, at))

    def _by_elements(self) -> None:
        f, stacks = self.f, self.stacks
        with f.loop(0, self.rows, stacks.height) as row:
            start = self._start(row)
            for at in range(stacks.height):
                line = f.add(start, at)
                along = self._reader(line, 1) if stacks.by_row else None
                with f.loop(0, self.depth, 1) as column:
                    value = along.read(column) if along else self._reader(column, 1).read(line)
                    f.store(value, self._place(row, column, at))


def write_panel_copy(
    module: ModuleText, name: str, copy: Copy, columns: Size, *, prefetch: int = 0
) -> None:
    """Add a copy of lines of one length, rounded up to vectors with zeros.

    `prefetch` is the distance in elements of what will be wanted next.
    """
    f = copy.function(module, name)
    vectors = -(-(columns if isinstance(columns, int) else copy.target_line) // copy.lanes)
    for line in each_line(f, f.parameters[2], vectors):
        _panel_line(f, copy, line, columns, prefetch)
    f.ret()


def each_line(f: FunctionText, lines: IRValue, vectors: int) -> Iterator[IRValue]:
    """Write a loop over lines of so many vectors, several in a turn if they are short."""
    together = max(1, min(4, UNROLL // vectors))
    first = f.constant("i64", 0)
    if together > 1:
        whole = f.and_(lines, -together)
        with f.loop(first, whole, together) as line:
            for u in range(together):
                yield f.add(line, u)
        first = whole
    with f.loop(first, lines, 1) as line:
        yield line


def _panel_line(f: FunctionText, copy: Copy, line: IRValue, columns: Size, prefetch: int) -> None:
    reader, there = copy.reader(f, line, copy.lanes), copy.target(f, line)
    known = is_known([columns])
    for at in range(0, columns if known else copy.target_line, copy.lanes):
        left = columns - at
        whole = known and left >= copy.lanes
        count = None if whole else f.constant("i64", left)
        f.store(reader.read(at, count=count), f.gep(there, at, copy.element), aligned=True)
    if prefetch:
        f.prefetch(reader.place(prefetch))


def transposed(f: FunctionText, rows: list[IRValue]) -> list[IRValue]:
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


def _fours_transposed(f: FunctionText, rows: list[IRValue]) -> list[IRValue]:
    """Transpose each square of four by four."""
    n = len(rows)
    fours = range(0, n, 4)

    def lanes(*order: int) -> list[int]:
        return [four + (i if i < 4 else n + i - 4) for four in fours for i in order]

    rows = _paired(f, rows, 1, lanes(0, 4, 1, 5), lanes(2, 6, 3, 7))
    rows = _paired(f, rows, 2, lanes(0, 1, 4, 5), lanes(2, 3, 6, 7))
    return [rows[four + i] for four in fours for i in (0, 2, 1, 3)]


def _paired(
    f: FunctionText, rows: list[IRValue], step: int, low: list[int], high: list[int]
) -> list[IRValue]:
    """Shuffle rows whose numbers differ by `step` with each other."""
    result = list(rows)
    for i in (i for i in range(len(rows)) if i & step == 0):
        result[i] = f.shuffle(rows[i], rows[i + step], low)
        result[i + step] = f.shuffle(rows[i], rows[i + step], high)
    return result


def pieces(columns: int, lanes: int) -> list[tuple[int, int]]:
    """Return columns as (start, lanes) of whole vectors, then of halves, quarters ... of one.

    >>> pieces(11, 8)
    [(0, 8), (8, 2), (10, 1)]
    """
    parts, at = [], 0
    while at < columns:
        while lanes > columns - at:
            lanes //= 2
        parts.append((at, lanes))
        at += lanes
    return parts
