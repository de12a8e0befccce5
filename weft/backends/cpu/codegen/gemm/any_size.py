"""Write matrix products of any sizes: code that is made once, for operands that lie in any way.

    void product(ptr table, ptr context)

takes a table of addresses: x (m, k), y (k, n), out (m, n), a record of sizes and strides (`RECORD`)
and scratch memory with an area for each thread. It divides the result into parts, which the threads
of the pool compute:

    for each block of the inner dimension
        for each block of rows: pack it in stacks of a tile's rows    (second-level cache)
            for each panel of columns: pack it                        (first-level cache)
                for each stack: multiply and store a tile             (registers)

The order in which an element's products are added follows from the sizes and the target alone, not
from the division: results do not depend on the number of threads. gemm.py writes products of known
sizes, which are faster where they are small or thin, and have to be compiled for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .....plan.arena import align
from ..target import Target
from ..text import FunctionText, ModuleText
from ..values import IRValue, element_of, vector_of
from .pack import INTERNAL, transposed

# Words of 64 bits; strides in elements. `depth` is what a block of the inner dimension has,
# `row_part` and `column_part` are what a part has, `parts` counts those of one matrix.
RECORD = (
    *("m", "n", "k", "depth", "row_part", "column_part", "column_parts", "parts", "chunks"),
    *("x_row", "x_column", "y_row", "y_column", "out_row"),
    *("x_matrix", "y_matrix", "out_matrix", "areas"),
)
TABLE = ("x", "y", "out", "record", "scratch")

VECTORS = 2
UNROLL = 4
ROWS_OF_BLOCK = 128
L1_PART = 0.75  # of the first-level cache is for a panel


@dataclass(frozen=True)
class Shape:
    """The sizes that code for a target has: of its tiles, its blocks and its scratch memory."""

    element: str
    itemsize: int
    lanes: int
    rows: int
    block_rows: int
    block_depth: int

    @property
    def columns(self) -> int:
        """Return the columns of a panel."""
        return VECTORS * self.lanes

    @property
    def panel_bytes(self) -> int:
        """Return the room that a packed panel takes."""
        return align(self.columns * self.block_depth * self.itemsize)

    @property
    def area_bytes(self) -> int:
        """Return the scratch memory of a thread: a panel and a block."""
        return self.panel_bytes + align(self.block_rows * self.block_depth * self.itemsize)


def shape_for(target: Target, dtype: np.dtype[Any]) -> Shape:
    """Return the sizes of a product's code."""
    lanes = target.lanes(dtype)
    rows = 8 if target.registers >= 32 else 6
    depth = int(target.l1_bytes * L1_PART) // (VECTORS * lanes * dtype.itemsize)
    depth = max(64, min(384, depth // UNROLL * UNROLL))
    block_rows = ROWS_OF_BLOCK // rows * rows
    return Shape(element_of(dtype), dtype.itemsize, lanes, rows, block_rows, depth)


def product_text(target: Target, shape: Shape) -> str:
    """Return the module of `product`."""
    module = ModuleText(target, "product")
    for name, height in (("pack_rows", shape.rows), ("pack_columns", shape.columns)):
        _write_pack(module.function(name, _PACK, INTERNAL), shape, height)
    for vectors in range(1, VECTORS + 1):
        _write_tile(module.function(f"tile_{vectors}", _TILE, INTERNAL), shape, vectors)
    _write_part(module.function("part", ["ptr", "i64", "i64"], INTERNAL), shape)
    _write_entry(module)
    return module.text()


def _write_entry(module: ModuleText) -> None:
    module.declare("weft_parallel_for_up_to", ["ptr", "ptr", "i64", "i64"])
    f = module.function("product", ["ptr", "ptr"])
    record = f.load("ptr", f.gep(f.parameters[0], 8 * TABLE.index("record")))
    chunks, areas = (_word(f, record, name) for name in ("chunks", "areas"))
    part = IRValue("@part", "ptr")
    f.call("weft_parallel_for_up_to", "void", part, f.parameters[0], chunks, areas)
    f.ret()


def _word(f: FunctionText, record: IRValue, name: str) -> IRValue:
    return f.load("i64", f.gep(record, 8 * RECORD.index(name)))


# -- parts -----------------------------------------------------------------------------------------


def _write_part(f: FunctionText, shape: Shape) -> None:
    """Write void part(ptr table, i64 chunk, i64 thread)."""
    table, chunk, thread = f.parameters
    places = {name: f.load("ptr", f.gep(table, 8 * i)) for i, name in enumerate(TABLE)}
    size = {name: _word(f, places["record"], name) for name in RECORD}
    scratch = f.gep(places["scratch"], f.mul(thread, shape.area_bytes))
    matrix, part = f.udiv(chunk, size["parts"]), f.urem(chunk, size["parts"])
    across = f.urem(part, size["column_parts"])
    down = f.udiv(part, size["column_parts"])
    x, y, out = (
        f.gep(places[name], f.mul(matrix, size[f"{name}_matrix"]), shape.element)
        for name in ("x", "y", "out")
    )
    _Part(f, shape, size, x, y, out, scratch).write(
        _range(f, down, size["row_part"], size["m"]),
        _range(f, across, size["column_part"], size["n"]),
    )
    f.ret()


def _range(
    f: FunctionText, number: IRValue, step: IRValue, size: IRValue
) -> tuple[IRValue, IRValue]:
    start = f.mul(number, step)
    return start, f.minimum(f.add(start, step), size)


class _Part:
    """Writes the loops over blocks and panels."""

    def __init__(
        self,
        f: FunctionText,
        shape: Shape,
        size: dict[str, IRValue],
        x: IRValue,
        y: IRValue,
        out: IRValue,
        scratch: IRValue,
    ) -> None:
        self.f, self.shape, self.size = f, shape, size
        self.x, self.y, self.out = x, y, out
        self.panel, self.block = scratch, f.gep(scratch, shape.panel_bytes)

    def write(self, rows: tuple[IRValue, IRValue], columns: tuple[IRValue, IRValue]) -> None:
        f, size = self.f, self.size
        with f.loop(0, size["k"], size["depth"]) as begin:
            depth = f.minimum(size["depth"], f.sub(size["k"], begin))
            first = f.icmp("eq", begin, 0)
            with f.loop(rows[0], rows[1], self.shape.block_rows) as row:
                count = f.minimum(f.sub(rows[1], row), self.shape.block_rows)
                self._pack_block(row, count, begin, depth)
                with f.loop(columns[0], columns[1], self.shape.columns) as column:
                    left = f.minimum(f.sub(columns[1], column), self.shape.columns)
                    self._pack_panel(column, left, begin, depth)
                    self._tiles((row, count), (column, left), depth, first)

    def _at(self, start: IRValue, *steps: tuple[IRValue, IRValue]) -> IRValue:
        f = self.f
        for index, stride in steps:
            start = f.gep(start, f.mul(index, stride), self.shape.element)
        return start

    def _pack_block(self, row: IRValue, count: IRValue, begin: IRValue, depth: IRValue) -> None:
        f, size = self.f, self.size
        with f.loop(0, count, self.shape.rows) as i:
            lines = f.minimum(f.sub(count, i), self.shape.rows)
            here = self._at(self.x, (f.add(row, i), size["x_row"]), (begin, size["x_column"]))
            there = self._at(self.block, (i, depth))
            strides = (size["x_row"], size["x_column"])
            f.call("pack_rows", "void", here, there, lines, depth, *strides)

    def _pack_panel(self, column: IRValue, left: IRValue, begin: IRValue, depth: IRValue) -> None:
        size = self.size
        here = self._at(self.y, (begin, size["y_row"]), (column, size["y_column"]))
        strides = (size["y_column"], size["y_row"])
        self.f.call("pack_columns", "void", here, self.panel, left, depth, *strides)

    def _tiles(
        self,
        rows: tuple[IRValue, IRValue],
        columns: tuple[IRValue, IRValue],
        depth: IRValue,
        first: IRValue,
    ) -> None:
        """Multiply all stacks with a panel, by a narrower tile where the panel is narrow."""
        f, shape, size = self.f, self.shape, self.size
        (row, count), (column, left) = rows, columns
        narrow = f.icmp("sle", left, shape.lanes)
        first = f.zext(first, "i64")
        for vectors, taken in ((1, narrow), (VECTORS, f.not_(narrow))):
            with f.when(taken), f.loop(0, count, shape.rows) as i:
                stack = self._at(self.block, (i, depth))
                out = self._at(self.out, (f.add(row, i), size["out_row"]))
                out = f.gep(out, column, shape.element)
                sizes = (depth, size["out_row"], f.sub(count, i), left, first)
                f.call(f"tile_{vectors}", "void", stack, self.panel, out, *sizes)


# -- packing ---------------------------------------------------------------------------------------

_PACK = [*["ptr noalias"] * 2, *["i64"] * 4]  # source, target, lines, depth, line, step


def _write_pack(f: FunctionText, shape: Shape, height: int) -> None:
    """Write a copy of up to `height` lines: first an element of each, then the next of each.

    In the place of missing lines lies anything: what is computed with it is not stored.
    """
    _, _, lines, depth, line, step = f.parameters
    square = _square_of(shape, height)
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


def _square_of(shape: Shape, height: int) -> int:
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
    square = _square_of(shape, height)
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


# -- tiles -----------------------------------------------------------------------------------------

# stack, panel, out, depth, stride of rows of out, rows and columns left, whether it is the first
_TILE = [*["ptr noalias"] * 3, *["i64"] * 5]


def _write_tile(f: FunctionText, shape: Shape, vectors: int) -> None:
    """Write a tile: products of a stack and the first vectors of a panel, added to the result."""
    sums = _tile_sums(f, shape, vectors)
    _, _, _, _, _, rows, columns, first = f.parameters
    whole = f.and_(f.icmp("sge", rows, shape.rows), f.icmp("sge", columns, vectors * shape.lanes))
    fast, slow = f.label("whole"), f.label("edge")
    f.branch_if(whole, fast, slow)
    f.block(fast)
    fresh, more = f.label("fresh"), f.label("more")
    f.branch_if(f.icmp("ne", first, 0), fresh, more)
    for label, adds in ((fresh, False), (more, True)):
        f.block(label)
        for value, place in _places(f, shape, vectors, sums):
            total = f.fadd(f.load(value.type, place), value) if adds else value
            f.store(total, place)
        f.ret()
    f.block(slow)
    _store_edge(f, shape, vectors, sums)
    f.ret()


def _tile_sums(f: FunctionText, shape: Shape, vectors: int) -> list[IRValue]:
    stack, panel, _, depth, *_ = f.parameters
    vector = vector_of(shape.element, shape.lanes)
    state = [stack, panel, *[f.constant(vector, 0)] * (shape.rows * vectors)]
    unrolled = f.and_(depth, -UNROLL)
    for start, stop, step in ((f.constant("i64", 0), unrolled, UNROLL), (unrolled, depth, 1)):
        with f.loop(start, stop, step, carry=state) as i:
            x, y, *sums = i.carried
            for u in range(step):
                here = f.gep(x, u * shape.rows, shape.element)
                line = f.gep(y, u * shape.columns, shape.element)
                sums = _step(f, shape, vector, here, line, sums)
            i.next(
                f.gep(x, step * shape.rows, shape.element),
                f.gep(y, step * shape.columns, shape.element),
                *sums,
            )
        state = list(i.results)
    return state[2:]


def _step(
    f: FunctionText, shape: Shape, vector: str, x: IRValue, y: IRValue, sums: list[IRValue]
) -> list[IRValue]:
    vectors = len(sums) // shape.rows
    ys = [
        f.load(vector, f.gep(y, v * shape.lanes, shape.element), aligned=True)
        for v in range(vectors)
    ]
    result = []
    for i in range(shape.rows):
        one = f.splat(f.load(shape.element, f.gep(x, i, shape.element)), shape.lanes)
        line = sums[i * vectors : (i + 1) * vectors]
        result += [f.multiply_add(one, y, total) for y, total in zip(ys, line, strict=True)]
    return result


def _places(
    f: FunctionText, shape: Shape, vectors: int, sums: list[IRValue]
) -> list[tuple[IRValue, IRValue]]:
    out, down = f.parameters[2], f.parameters[4]
    lines = [f.gep(out, f.mul(down, i), shape.element) for i in range(shape.rows)]
    places = [f.gep(line, v * shape.lanes, shape.element) for line in lines for v in range(vectors)]
    return list(zip(sums, places, strict=True))


def _store_edge(f: FunctionText, shape: Shape, vectors: int, sums: list[IRValue]) -> None:
    """Store the rows and columns that there are."""
    out, down, rows, columns, first = f.parameters[2], *f.parameters[4:]
    fresh = f.icmp("ne", first, 0)
    counts = [
        f.maximum(f.minimum(f.sub(columns, v * shape.lanes), shape.lanes), 0)
        for v in range(vectors)
    ]
    for i in range(shape.rows):
        with f.when(f.icmp("sgt", rows, i)):
            line = f.gep(out, f.mul(down, i), shape.element)
            for v, count in enumerate(counts):
                place = f.gep_beyond(line, v * shape.lanes, shape.element)
                value = sums[i * vectors + v]
                before = f.load(value.type, place, count=count)
                total = f.select(fresh, value, f.fadd(before, value))
                f.store(total, place, count=count)
