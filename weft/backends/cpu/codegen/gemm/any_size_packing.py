"""Write the copies of products of any sizes: lines of an operand, as tiles read them."""

from __future__ import annotations

from ..text import FunctionText
from ..values import IRValue, vector_of
from .any_size_shape import Shape
from .pack import transposed

PACK = [*["ptr noalias"] * 2, *["i64"] * 4]  # source, target, lines, depth, line, step


def write_pack(f: FunctionText, shape: Shape, height: int) -> None:
    """Write a copy of up to `height` lines: first an element of each, then the next of each.

    In the place of missing lines lies anything: what is computed with it is not stored.
    """
    _, _, lines, depth, line, step = f.parameters
    square = square_of(shape, height)
    ways = (
        (f.and_(f.icmp("eq", step, 1), f.icmp("sge", depth, square)), _pack_squares),
        (f.and_(f.icmp("eq", line, 1), f.icmp("eq", lines, height)), _pack_columns),
        (f.icmp("eq", line, 1), _pack_some_columns),
    )
    for condition, write in ways:
        taken, other = f.label("taken"), f.label("other")
        f.branch_if(condition, taken, other)
        f.block(taken)
        write(f, shape, height)
        f.ret()
        f.block(other)
    _pack_elements(f, shape, height)
    f.ret()


def square_of(shape: Shape, height: int) -> int:
    """Return how many elements of as many lines are transposed at once."""
    return min(shape.lanes, 1 << (height - 1).bit_length())


def _line_starts(f: FunctionText, shape: Shape, height: int) -> list[IRValue]:
    source, _, lines, _, line, _ = f.parameters
    last = f.sub(lines, 1)
    numbers = [f.minimum(f.constant("i64", j), last) for j in range(height)]
    return [f.gep(source, f.mul(j, line), shape.element) for j in numbers]


def _pack_squares(f: FunctionText, shape: Shape, height: int) -> None:
    """Transpose squares in registers, of lines whose elements lie one behind another."""
    _, target, _, depth, _, _ = f.parameters
    square = square_of(shape, height)
    starts, last = _line_starts(f, shape, height), f.sub(depth, square)
    for at in range(0, height, square):
        with f.loop(0, depth, square) as i:
            begin = f.minimum(i, last)
            there = f.gep(target, f.add(f.mul(begin, height), at), shape.element)
            lines = [f.gep(line, begin, shape.element) for line in starts[at : at + square]]
            for j, value in enumerate(_turned(f, shape, lines, square)):
                f.store(value, f.gep(there, j * height, shape.element))


def _turned(f: FunctionText, shape: Shape, lines: list[IRValue], square: int) -> list[IRValue]:
    """Return the columns of some lines, as many as would make a square."""
    rows = [f.load(vector_of(shape.element, square), line) for line in lines]
    columns = transposed(f, rows + rows[-1:] * (square - len(rows)))
    if len(rows) == square:
        return columns
    return [f.shuffle(column, column, range(len(rows))) for column in columns]


def _pack_columns(f: FunctionText, shape: Shape, height: int) -> None:
    """Copy vectors across all lines, which lie side by side."""
    source, target, _, depth, _, step = f.parameters
    lanes = shape.lanes
    state = [source, target]
    with f.loop(0, depth, 1, carry=state) as i:
        here, there = i.carried
        for at in range(0, height, lanes):
            vector = vector_of(shape.element, min(lanes, height - at))
            value = f.load(vector, f.gep(here, at, shape.element))
            f.store(value, f.gep(there, at, shape.element))
        i.next(f.gep(here, step, shape.element), f.gep(there, height, shape.element))


def _pack_some_columns(f: FunctionText, shape: Shape, height: int) -> None:
    """Copy vectors across lines that lie side by side, with zeros for those that are missing."""
    source, target, lines, depth, _, step = f.parameters
    parts = [(at, min(shape.lanes, height - at)) for at in range(0, height, shape.lanes)]
    counts = [f.maximum(f.minimum(f.sub(lines, at), n), 0) for at, n in parts]
    with f.loop(0, depth, 1, carry=[source, target]) as i:
        here, there = i.carried
        for (at, n), count in zip(parts, counts, strict=True):
            place = f.gep_beyond(here, at, shape.element)
            value = f.load(vector_of(shape.element, n), place, count=count)
            f.store(value, f.gep(there, at, shape.element))
        i.next(f.gep(here, step, shape.element), f.gep(there, height, shape.element))


def _pack_elements(f: FunctionText, shape: Shape, height: int) -> None:
    """Copy element by element."""
    _, target, _, depth, _, step = f.parameters
    for j, start in enumerate(_line_starts(f, shape, height)):
        state = [start, f.gep(target, j, shape.element)]
        with f.loop(0, depth, 1, carry=state) as i:
            here, there = i.carried
            f.store(f.load(shape.element, here), there)
            i.next(f.gep(here, step, shape.element), f.gep(there, height, shape.element))
