"""Read operands that lie turned: rows of the kernel are columns of theirs in memory.

Element by element each of them would be in another line of the cache. A kernel with such operands
goes through its rows by tiles: a few rows, and so many columns that what is turned of them stays in
the first cache. The turned operands of a tile are copied there by squares, which are transposed in
registers; the rows of the tile then read them in sequence, as they read all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....core.dim import is_known
from ....lower.kernels import RowKernel
from ....lower.transposed import LONG_ROW
from .memory import CACHE_LINE
from .phases import Phases
from .target import Target
from .text import FunctionText
from .turning import SQUARES, WIDTHS, Matrices, turn_square
from .values import IRValue, element_of

TILE_BYTES = 1 << 14  # half of a usual first cache


@dataclass(frozen=True)
class Tiling:
    """How a kernel is divided.

    turned    the operands that are copied
    lanes     elements of a vector of each of them
    rows      of a tile
    columns   of a tile
    """

    turned: tuple[int, ...]
    lanes: int
    rows: int
    columns: int


def tiling_of(kernel: RowKernel, phases: Phases, target: Target) -> Tiling | None:
    """Return how to divide a kernel; None if it has no turned operands, or too long rows."""
    turned = _turned_operands(kernel, phases, target)
    if not turned:
        return None
    size = kernel.operands[turned[0]].view.dtype.itemsize
    lanes = target.vector_bytes // size
    for rows in (SQUARES * lanes, lanes):
        room = target.vector_bytes * LONG_ROW  # of whole rows: threads have small stacks
        columns = _columns_of_tile(kernel, phases, rows * size * len(turned), lanes, room)
        if columns and rows <= kernel.loops[-2]:
            return Tiling(turned, lanes, rows, columns)
    return None


def _turned_operands(kernel: RowKernel, phases: Phases, target: Target) -> tuple[int, ...]:
    """Return the operands, all of one width, that lie in sequence along the loop over rows."""
    if len(kernel.loops) < 2 or not is_known(kernel.loops[-2:]):
        return ()
    loaded = {e.data for e in phases.order if e.kind == "load"}
    placed = {e.data[0] for e in phases.order if e.kind == "load_at"}
    written = {output.operand for output in kernel.outputs}
    found = [i for i in sorted(loaded - placed - written) if _is_turned(kernel, i, target)]
    widths = {i: kernel.operands[i].view.dtype.itemsize for i in found}
    return tuple(i for i in found if widths[i] == widths[found[0]])


def _is_turned(kernel: RowKernel, number: int, target: Target) -> bool:
    operand = kernel.operands[number]
    down, across = operand.strides[-2:]
    size = operand.view.dtype.itemsize
    fills = min(kernel.loops[-2:]) >= target.vector_bytes // size
    return size in WIDTHS and down == 1 and abs(across) > 1 and fills


def _columns_of_tile(
    kernel: RowKernel, phases: Phases, column_bytes: int, lanes: int, room: int
) -> int:
    """Return how many columns a tile has; 0 if it would have to have more than there is room."""
    once = phases.count == 1 and not phases.reductions
    if once and all(phases.per_element(output) for output in kernel.outputs):
        return int(min(kernel.columns, TILE_BYTES // column_bytes // (4 * lanes) * 4 * lanes))
    return kernel.columns if kernel.columns * column_bytes <= room else 0


class Tiles:
    """Writes the loops over tiles, and what is copied for each.

    left      the first column of the current tile
    columns   how many it has
    """

    def __init__(self, f: FunctionText, kernel: RowKernel, tiling: Tiling) -> None:
        self.f, self.kernel, self.tiling = f, kernel, tiling
        self.left = self.top = f.constant("i64", 0)
        self.columns = tiling.columns
        dtype = kernel.operands[tiling.turned[0]].view.dtype
        # A vector of room before each row; rows begin in different sets of the cache.
        lines = -(-(tiling.columns + tiling.lanes) * dtype.itemsize // CACHE_LINE) | 1
        self.width = lines * CACHE_LINE // dtype.itemsize
        self.elements = {i: element_of(kernel.operands[i].view.dtype) for i in tiling.turned}
        size = tiling.rows * self.width
        self.places = {i: f.alloca(e, size) for i, e in self.elements.items()}

    def each(
        self, pointers: list[IRValue], begin: IRValue, end: IRValue
    ) -> Iterator[tuple[IRValue, IRValue]]:
        """Yield the first row of a tile and that behind its last one, all being copied."""
        f, height = self.f, self.kernel.loops[-2]
        matrices = Matrices(f, self.kernel.loops)
        with matrices.between(begin, end) as (matrix, start, stop):
            before = f.mul(matrix, height)
            with f.loop(start, stop, self.tiling.rows) as row:
                last = f.add(before, f.minimum(f.add(row, self.tiling.rows), stop))
                top = f.minimum(row, height - self.tiling.rows)
                self.top = f.add(before, top)
                sources = {
                    i: self._source(i, pointers[i], matrices, matrix, top) for i in self.places
                }
                for left, columns in self._pieces():
                    self.left, self.columns = left, columns
                    self._copy(sources)
                    yield f.add(before, row), last

    def _pieces(self) -> Iterator[tuple[IRValue, int]]:
        """Yield where tiles begin in a row and how wide they are: within a loop, and the rest."""
        f, all_columns, piece = self.f, self.kernel.columns, self.tiling.columns
        whole = all_columns // piece * piece
        if whole > piece:
            with f.loop(0, whole, piece) as left:
                yield left, piece
        elif whole:
            yield f.constant("i64", 0), piece
        if whole < all_columns:
            yield f.constant("i64", whole), all_columns - whole

    def _source(
        self, number: int, pointer: IRValue, matrices: Matrices, matrix: IRValue, top: IRValue
    ) -> IRValue:
        strides, element = self.kernel.operands[number].strides, self.elements[number]
        return self.f.gep(matrices.place(pointer, matrix, strides, element), top, element)

    def _copy(self, sources: dict[int, IRValue]) -> None:
        """Copy the turned operands of a tile, by squares; the last ones may overlap."""
        f, lanes, all_columns = self.f, self.tiling.lanes, self.kernel.columns
        for number, source in sources.items():
            element, across = self.elements[number], self.kernel.operands[number].strides[-1]
            with f.loop(0, self.columns, lanes) as i:
                column = f.add(self.left, i)
                if all_columns % lanes:
                    column = f.minimum(column, all_columns - lanes)
                here = f.gep(source, f.mul(column, across), element)
                start = f.add(f.sub(column, self.left), lanes)
                there = f.gep(self.places[number], start, element)
                for row in range(0, self.tiling.rows, lanes):
                    square = f.gep(there, row * self.width, element)
                    turn_square(f, f.gep(here, row, element), square, element, across, self.width)

    def row_of(self, number: int, row: IRValue) -> IRValue:
        """Return where the elements of a row of a turned operand lie that belong to the tile."""
        offset = self.f.mul(self.f.sub(row, self.top), self.width)
        return self.f.gep(
            self.places[number], self.f.add(offset, self.tiling.lanes), self.elements[number]
        )
