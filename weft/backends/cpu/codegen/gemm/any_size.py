"""Write matrix products of any sizes: code that is made once, for operands that lie in any way.

    void product(ptr table, ptr context)

takes a table of addresses: x (m, k), y (k, n), out (m, n), a record of sizes and strides (`RECORD`)
and scratch memory with an area for each thread. It divides the result into parts, which the threads
of the pool compute:

    for each block of the inner dimension
        for each block of rows: pack it in stacks of a tile's rows    (second-level cache)
            for each panel of columns: pack it                        (first-level cache)
                for each stack: multiply and store a tile             (registers)

Where columns of y lie side by side, the first tile packs a panel while it computes: it has to read
it anyway. A product of few rows whose y lies along the inner dimension (x @ w.T, a layer on a small
batch) is computed as (y.T @ x.T).T, so that y, the larger one, is not packed at all.

The order in which an element's products are added follows from the sizes and the target alone, not
from the division: results do not depend on the number of threads. gemm.py writes products of known
sizes, which are faster where they are small or thin, and have to be compiled for each of them.
"""

from __future__ import annotations

from ..target import Target
from ..text import FunctionText, ModuleText
from ..values import IRValue
from .any_size_packing import PACK, write_pack
from .any_size_shape import VECTORS, Shape
from .any_size_tiles import write_tiles
from .pack import INTERNAL

# Words of 64 bits; strides in elements. `depth` is what a block of the inner dimension has,
# `row_part` and `column_part` are what a part has, `parts` counts those of a matrix, `span` is how
# much of the inner dimension a panel takes. `turned` says that the operands are y.T, whose rows lie
# in sequence, and x.T, and that `out_row` is the stride of the columns of the result.
RECORD = (
    *("m", "n", "k", "depth", "row_part", "column_part", "column_parts", "parts", "chunks"),
    *("x_row", "x_column", "y_row", "y_column", "out_row"),
    *("x_matrix", "y_matrix", "out_matrix", "areas", "turned", "span"),
)
TABLE = ("x", "y", "out", "record", "scratch")
Block = tuple[IRValue, IRValue, IRValue]  # of the inner dimension: begin, depth, is it the first


def product_text(target: Target, shape: Shape) -> str:
    """Return the module of `product`."""
    module = ModuleText(target, "product")
    for name, height in (("pack_rows", shape.rows), ("pack_columns", shape.columns)):
        write_pack(module.function(name, PACK, INTERNAL), shape, height)
    write_tiles(module, shape)
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
        """Write the loops: those of a product that is turned, or those of one that is not."""
        f, size = self.f, self.size
        turned = f.icmp("ne", size["turned"], 0)
        with f.loop(0, size["k"], size["span"]) as begin:
            depth = f.minimum(size["span"], f.sub(size["k"], begin))
            first = f.zext(f.icmp("eq", begin, 0), "i64")
            with f.when(turned):
                self._write_turned(rows, columns, (begin, depth, first))
            with f.when(f.not_(turned)), f.loop(*rows, self.shape.block_rows) as row:
                count = f.minimum(f.sub(rows[1], row), self.shape.block_rows)
                self._pack_block(row, count, begin, depth)
                with f.loop(*columns, self.shape.columns) as column:
                    left = f.minimum(f.sub(columns[1], column), self.shape.columns)
                    self._write_panel((row, count), (column, left), (begin, depth, first))

    def _write_turned(
        self, rows: tuple[IRValue, IRValue], columns: tuple[IRValue, IRValue], block: Block
    ) -> None:
        """Write the product of all rows, which are not packed, with one panel after another."""
        f, shape, size = self.f, self.shape, self.size
        begin, depth, first = block
        with f.loop(*columns, shape.columns) as column:
            left = f.minimum(f.sub(columns[1], column), shape.columns)
            self._pack_panel(column, left, begin, depth)
            for vectors, taken in self._widths(left):
                with f.when(taken), f.loop(*rows, shape.rows) as row:
                    x = self._at(self.x, (row, size["x_row"]), (begin, size["x_column"]))
                    out = f.gep(self._at(self.out, (column, size["out_row"])), row, shape.element)
                    sizes = (depth, size["out_row"], f.sub(rows[1], row), left, first)
                    name = f"turned_tile_{vectors}"
                    f.call(name, "void", x, self.panel, out, *sizes, size["x_row"], size["depth"])

    def _widths(self, left: IRValue) -> list[tuple[int, IRValue]]:
        """Return tiles, by their vectors, and when each is taken: a narrow one where it will do."""
        narrow = self.f.icmp("sle", left, self.shape.lanes)
        return [(1, narrow), (VECTORS, self.f.not_(narrow))]

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

    def _write_panel(
        self, rows: tuple[IRValue, IRValue], columns: tuple[IRValue, IRValue], block: Block
    ) -> None:
        """Multiply all stacks with a panel; the first packs it where lines are lines of y."""
        f, size = self.f, self.size
        (column, left), (begin, depth, _) = columns, block
        whole = f.icmp("eq", left, self.shape.columns)
        filled = f.and_(f.icmp("eq", size["y_column"], 1), whole)
        with f.when(filled):
            source = self._at(self.y, (begin, size["y_row"]), (column, size["y_column"]))
            self._tile("filling_tile", f.constant("i64", 0), rows, columns, block, source)
            self._tiles(VECTORS, self.shape.rows, rows, columns, block)
        with f.when(f.not_(filled)):
            self._pack_panel(column, left, begin, depth)
            for vectors, taken in self._widths(left):
                with f.when(taken):
                    self._tiles(vectors, 0, rows, columns, block)

    def _tiles(
        self,
        vectors: int,
        start: int,
        rows: tuple[IRValue, IRValue],
        columns: tuple[IRValue, IRValue],
        block: Block,
    ) -> None:
        with self.f.loop(start, rows[1], self.shape.rows) as i:
            self._tile(f"tile_{vectors}", i, rows, columns, block)

    def _tile(
        self,
        name: str,
        i: IRValue,
        rows: tuple[IRValue, IRValue],
        columns: tuple[IRValue, IRValue],
        block: Block,
        source: IRValue | None = None,
    ) -> None:
        f, size = self.f, self.size
        (row, count), (column, left), (_, depth, first) = rows, columns, block
        stack = self._at(self.block, (i, depth))
        out = self._at(self.out, (f.add(row, i), size["out_row"]))
        out = f.gep(out, column, self.shape.element)
        sizes = (depth, size["out_row"], f.sub(count, i), left, first)
        further = () if source is None else (source, size["y_row"])
        f.call(name, "void", stack, self.panel, out, *sizes, *further)
