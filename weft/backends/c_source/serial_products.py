"""Write matrix products for processors: register tiles in vector types, without barriers.

The second operand is packed into panels, as many columns as a tile has, one row behind another; a
first operand that is computed is packed as a whole. A work item then takes some rows of a panel,
tile by tile. Products too small for that are sums, element by element.
"""

from __future__ import annotations

from ...core.shape import size_of
from ...lower.kernels import GemmKernel
from ...lower.storage import View
from ..cpu.codegen.values import IRValue, element_of
from .dialect import Dialect
from .elements import write_counters
from .epilogues import EpilogueText
from .function import CFunction
from .launch import Launch, LaunchText, Room
from .matrices import MatrixText, Source, WindowMatrix, second_operand, varies_with_batch
from .scalars import c_type

ROWS = 6  # of a tile
VECTORS = 2  # of a row of a tile
STRIP = 96  # rows that a work item takes, if no block of rows is longer
SMALL = 1 << 13  # multiplications: fewer are not worth packing
DEPTH = 256  # rows that a work item packs
LANES = 8  # accumulators of a sum


def write_serial_product(kernel: GemmKernel, dialect: Dialect) -> list[Launch]:
    """Return the launches of a product: those that pack, then that of the tiles."""
    batch, m, n, k = size_of(kernel.batch), kernel.m, kernel.n, kernel.k
    if not batch * m * n:
        return []
    if m * n * k <= SMALL or m < ROWS // 2 or not k:
        return [_small(kernel, dialect)]
    writer = _Tiles(kernel, dialect)
    return [*writer.packing(), writer.tiles()]


class _Tiles:
    """A product by tiles."""

    def __init__(self, kernel: GemmKernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.dtype = kernel.out.dtype
        self.lanes = dialect.vector_bytes // self.dtype.itemsize
        self.width = VECTORS * self.lanes
        self.panels = -(-kernel.n // self.width)
        self.batch = size_of(kernel.batch)
        self.packed = self.batch if varies_with_batch(kernel) else 1
        self.y = Room(self.dtype, self.packed * self.panels * kernel.k * self.width)
        self.x: View | Room = kernel.x
        if kernel.x_from is not None:
            self.x = Room(self.dtype, self.batch * kernel.m * kernel.k, self.y.end)

    # -- packing -----------------------------------------------------------------------------------

    def packing(self) -> list[Launch]:
        """Return the launches that bring operands to where tiles read them."""
        launches = [self._pack_y()]
        if isinstance(self.x, Room):
            launches.append(self._pack_x(self.x))
        return launches

    def _pack_y(self) -> Launch:
        kernel, text = self.kernel, LaunchText("pack", self.dialect)
        f, width = text.f, self.width
        target = text.take(self.y)
        counters = write_counters(f, "GROUP(2)", kernel.batch)
        source = second_operand(text, kernel, counters)
        f.write(f"const i64 panel = GROUP(0), first = GROUP(1) * {DEPTH};")
        f.write(f"const i64 last = first + {DEPTH} < {kernel.k} ? first + {DEPTH} : {kernel.k};")
        f.write(f"const i64 j0 = panel * {width};")
        f.write(f"const i64 there = {kernel.n} - j0 < {width} ? {kernel.n} - j0 : {width};")
        f.write(f"{target} += (GROUP(2) * {self.panels} + panel) * {kernel.k * width};")
        _find_columns(f, source, width)
        with f.block("for (i64 k = first; k < last; ++k)"):
            if isinstance(source, WindowMatrix):
                f.write(f"const i64 row = {source.of_row('k')};")
            with f.vectors("APART", min(kernel.n, width), "for (i64 j = 0; j < there; ++j)"):
                f.write(f"{target}[k * {width} + j] = {_panel_element(f, source)};")
            f.write(f"for (i64 j = there; j < {width}; ++j) {target}[k * {width} + j] = 0;")
        return text.finished((self.panels, -(-kernel.k // DEPTH), self.packed))

    def _pack_x(self, room: Room) -> Launch:
        kernel, text = self.kernel, LaunchText("pack", self.dialect)
        f = text.f
        target = text.take(room)
        counters = write_counters(f, "GROUP(1)", kernel.batch)
        source = MatrixText(text, kernel.x, kernel.x_from, counters)
        f.write(f"{target} += (GROUP(1) * {kernel.m} + GROUP(0)) * {kernel.k};")
        f.write("const i64 i = GROUP(0);")
        with f.vectors("APART", kernel.k, f"for (i64 k = 0; k < {kernel.k}; ++k)"):
            f.write(f"{target}[k] = {source.element('i', 'k')};")
        return text.finished((kernel.m, self.batch))

    # -- tiles -------------------------------------------------------------------------------------

    def tiles(self) -> Launch:
        """Return the launch in which each work item takes some rows of a panel."""
        kernel, text = self.kernel, LaunchText("gemm", self.dialect)
        f = text.f
        y, x = text.take(self.y), text.take(self.x)
        epilogue = EpilogueText(text, kernel)
        strip = STRIP if not kernel.block else max(1, STRIP // kernel.block) * kernel.block
        counters = write_counters(f, "GROUP(2)", kernel.batch)
        f.write(f"const i64 panel = GROUP(0), first = GROUP(1) * {strip};")
        f.write(f"const i64 last = first + {strip} < {kernel.m} ? first + {strip} : {kernel.m};")
        which = "GROUP(2) * " if self.packed > 1 else "0 * "
        f.write(f"{y} += ({which}{self.panels} + panel) * {kernel.k * self.width};")
        down, along = self._start_of_x(f, x, counters)
        with f.block(f"for (i64 i0 = first; i0 < last; i0 += {ROWS})"):
            self._tile(f, x, y, down, along)
            self._stored(f, epilogue, counters)
        groups = (self.panels, -(-kernel.m // strip), self.batch)
        return text.finished(groups)

    def _start_of_x(self, f: CFunction, x: str, counters: list[str]) -> tuple[int, int]:
        if isinstance(self.x, Room):
            f.write(f"{x} += GROUP(2) * {self.kernel.m * self.kernel.k};")
            return self.kernel.k, 1
        *batch, down, along = self.x.strides
        terms = [f"{c} * {s}" for c, s in zip(counters, batch, strict=True) if s and c != "0"]
        if terms:
            f.write(f"{x} += {' + '.join(terms)};")
        return down, along

    def _tile(self, f: CFunction, x: str, y: str, down: int, along: int) -> None:
        """Write the sums of a tile, which stay in registers; rows beyond the last are repeated."""
        kind = f"{_VECTOR_TYPES[c_type(self.dtype)]}{self.lanes}"
        element = c_type(self.dtype)
        f.write(f"{kind} tile[{ROWS * VECTORS}];")
        with f.block(""):
            f.write("CONTRACTED")
            for i in range(ROWS):
                row = "i0" if i == 0 else f"(i0 + {i} < last ? i0 + {i} : last - 1)"
                f.write(f"GLOBAL const {element} *x{i} = {x} + {row} * {down};")
                sums = ", ".join(f"c{i}_{v} = 0" for v in range(VECTORS))
                f.write(f"{kind} {sums};")
            f.write(f"GLOBAL const {kind} *p = (GLOBAL const {kind} *){y};")
            with f.block(f"for (i64 k = 0; k < {self.kernel.k}; ++k, p += {VECTORS})"):
                loads = ", ".join(f"y{v} = p[{v}]" for v in range(VECTORS))
                f.write(f"const {kind} {loads};")
                for i in range(ROWS):
                    with f.block(""):
                        f.write(f"const {element} a = x{i}[k * {along}];")
                        for v in range(VECTORS):
                            f.write(f"c{i}_{v} = a * y{v} + c{i}_{v};")
            for i in range(ROWS):
                for v in range(VECTORS):
                    f.write(f"tile[{i * VECTORS + v}] = c{i}_{v};")

    def _stored(self, f: CFunction, epilogue: EpilogueText, counters: list[str]) -> None:
        """Write what becomes of the tile's elements that are there."""
        element = c_type(self.dtype)
        n, width = self.kernel.n, self.width
        f.write(f"const {element} *sums = (const {element} *)tile;")
        f.write(f"const i64 there = last - i0 < {ROWS} ? last - i0 : {ROWS};")
        f.write(
            f"const i64 across = {n} - panel * {width} < {width} ? {n} - panel * {width} : {width};"
        )
        with f.block("for (i64 i = 0; i < there; ++i)"):
            f.write("const i64 row = i0 + i;")
            with f.vectors("APART", min(n, width), "for (i64 j = 0; j < across; ++j)"):
                f.write(f"const i64 column = panel * {width} + j;")
                total = IRValue(f"sums[i * {width} + j]", element_of(self.dtype))
                epilogue.write(f.define(total.type, total), counters, "row", "column")


_VECTOR_TYPES = {"f32": "float", "f64": "double"}


def _find_columns(f: CFunction, source: Source, width: int) -> None:
    """Write where the columns of a panel lie in windows: once, and not for every row."""
    if isinstance(source, WindowMatrix):
        f.write(f"i64 places[{width}];")
        with f.block("for (i64 j = 0; j < there; ++j)"):
            f.write("const i64 column = j0 + j;")
            f.write(f"places[j] = {source.of_column('column')};")


def _panel_element(f: CFunction, source: Source) -> IRValue:
    """Return the element of a panel's row k and column j."""
    if isinstance(source, WindowMatrix):
        return source.element_at("row", "places[j]")
    f.write("const i64 column = j0 + j;")
    return source.element("k", "column")


def _small(kernel: GemmKernel, dialect: Dialect) -> Launch:
    """Return the launch of a product whose elements are summed up one by one."""
    text = LaunchText("dot", dialect)
    f = text.f
    batch = size_of(kernel.batch)
    counters = write_counters(f, "GROUP(1)", kernel.batch)
    x = MatrixText(text, kernel.x, kernel.x_from, counters)
    y = second_operand(text, kernel, counters)
    epilogue = EpilogueText(text, kernel)
    kind = c_type(kernel.out.dtype)
    block = kernel.block or 1
    stretch = max(1, SMALL // max(1, kernel.k))
    f.write(f"const i64 i0 = GROUP(0) * {block};")
    f.write(f"const i64 last = i0 + {block} < {kernel.m} ? i0 + {block} : {kernel.m};")
    f.write(f"const i64 j0 = GROUP(2) * {stretch};")
    f.write(f"const i64 j1 = j0 + {stretch} < {kernel.n} ? j0 + {stretch} : {kernel.n};")
    with (
        f.block("for (i64 row = i0; row < last; ++row)"),
        f.block("for (i64 column = j0; column < j1; ++column)"),
    ):
        f.write(f"{kind} sums[{LANES}];")
        f.write(f"for (i32 l = 0; l < {LANES}; ++l) sums[l] = 0;")
        whole = kernel.k // LANES * LANES
        for head, lane in (
            (
                f"for (i64 d = 0; d < {whole}; d += {LANES}) for (i64 l = 0; l < {LANES}; ++l)",
                "d + l",
            ),
            (f"for (i64 l = 0; l < {kernel.k - whole}; ++l)", f"{whole} + l"),
        ):
            with f.block(head):
                f.write(f"const i64 k = {lane};")
                product = f.fma(
                    x.element("row", "k"),
                    y.element("k", "column"),
                    IRValue("sums[l]", element_of(kernel.out.dtype)),
                )
                f.write(f"sums[l] = {product};")
        halves = f"for (i32 n = {LANES // 2}; n > 0; n >>= 1)"
        f.write(f"{halves} for (i32 l = 0; l < n; ++l) sums[l] += sums[l + n];")
        total = f.define(element_of(kernel.out.dtype), "sums[0]")
        epilogue.write(total, counters, "row", "column")
    return text.finished((-(-kernel.m // block), batch, -(-kernel.n // stretch)))
