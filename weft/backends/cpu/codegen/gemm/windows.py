"""Read windows of images: what a convolution multiplies its weights with; copy them to panels.

    void copy(ptr source, ptr target, ptr offsets, i64 lines, i64 column)

The operand has a row for each element of a window and a column for each window. A row begins at an
offset from a table; from column to column it goes on as the axes of the result do, which jumps at
the end of each line of an image. So a vector of columns is made of pieces, one for each line that
it touches: each piece is read so that its elements come to lie in the right lanes, and the others
are replaced. What is read beyond a line is never used, but memory is there (lower/convolutions.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from .....core.shape import size_of
from ..text import FunctionText, ModuleText
from ..values import IRValue, bits_of, vector_of
from .pack import INTERNAL, each_line

Piece = tuple[
    IRValue, IRValue | None
]  # how far behind its row, and which lanes those before it keep


@dataclass(frozen=True)
class WindowPanel:
    """A panel of so many vectors, and sizes and strides of the axes of columns."""

    element: str
    lanes: int
    vectors: int
    columns: tuple[tuple[int, int], ...]

    @property
    def pieces(self) -> int:
        """Return of how many pieces a vector may be made; panels begin at whole vectors."""
        line = self.columns[-1][0]
        if line % self.lanes == 0 or size_of(n for n, _ in self.columns) == line:
            return 1
        return 1 - (1 - self.lanes) // line


def write_window_panel(module: ModuleText, name: str, panel: WindowPanel) -> None:
    """Add the function that copies rows of one panel to a module."""
    f = module.function(name, ["ptr noalias"] * 3 + ["i64"] * 2, INTERNAL)
    source, target, offsets, lines, column = f.parameters
    vectors = pieces_of(f, panel, column)
    for number in each_line(f, lines, panel.vectors * panel.pieces):
        values = read_row(f, panel, source, f.gep(offsets, number, "i64"), vectors)
        there = f.gep(target, f.mul(number, panel.vectors * panel.lanes), panel.element)
        for v, value in enumerate(values):
            f.store(value, f.gep(there, v * panel.lanes, panel.element), aligned=True)
    f.ret()


def read_row(
    f: FunctionText,
    panel: WindowPanel,
    source: IRValue,
    offset: IRValue,
    vectors: list[list[Piece]],
) -> list[IRValue]:
    """Return the vectors of a row of a panel, which begins so far behind as a word says."""
    type = vector_of(panel.element, panel.lanes)
    row = f.gep(source, f.load("i64", offset), panel.element)
    values = []
    for (first, _), *others in vectors:
        value = f.load(type, f.gep(row, first, panel.element))
        for place, kept in others:
            assert kept is not None
            value = f.select(kept, value, f.load(type, f.gep(row, place, panel.element)))
        values.append(value)
    return values


def pieces_of(f: FunctionText, panel: WindowPanel, column: IRValue) -> list[list[Piece]]:
    """Return the pieces of each vector of a panel that begins with a column, for all its rows."""
    return [_pieces(f, panel, f.add(column, v * panel.lanes)) for v in range(panel.vectors)]


def _pieces(f: FunctionText, panel: WindowPanel, column: IRValue) -> list[Piece]:
    """Return the pieces of the vector that begins with a column."""
    line = panel.columns[-1][0]
    last = size_of(n for n, _ in panel.columns) - 1
    pieces: list[Piece] = [(_place(f, panel, f.minimum(column, last)), None)]
    within = f.urem(column, line)
    for p in range(1, panel.pieces):
        lane = f.sub(f.constant("i64", p * line), within)  # where the piece begins
        place = _place(f, panel, f.minimum(f.add(column, lane), last))
        kept = f.first_lanes(lane, panel.lanes, bits_of(panel.element))
        pieces.append((f.sub(place, lane), kept))
    return pieces


def _place(f: FunctionText, panel: WindowPanel, column: IRValue) -> IRValue:
    """Return how far behind the first column one lies."""
    place, rest = f.constant("i64", 0), column
    for i, (size, stride) in reversed(list(enumerate(panel.columns))):
        index = f.urem(rest, size) if i else rest
        rest = f.udiv(rest, size) if i else rest
        place = f.add(place, f.mul(index, stride))
    return place
