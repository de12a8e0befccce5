"""Write matrix products for devices that run groups of threads: tiles in local memory.

A group computes a tile of the result, every work item some rows and columns of it. Both operands go
through local memory, a few columns of one and rows of the other at a time.
"""

from __future__ import annotations

from ...core.shape import size_of
from ...lower.kernels import GemmKernel
from ..cpu.codegen.values import IRValue, element_of
from .dialect import Dialect
from .elements import write_counters
from .epilogues import EpilogueText
from .function import CFunction
from .launch import Launch, LaunchText
from .matrices import MatrixText, Source, second_operand
from .scalars import c_type

SIDE = 16  # work items of a group along either side of a tile
DEPTH = 16  # columns of x and rows of y that are in local memory at a time
ITEMS = SIDE * SIDE


def write_group_product(kernel: GemmKernel, dialect: Dialect) -> list[Launch]:
    """Return the launch of a product."""
    if not size_of(kernel.batch) * kernel.m * kernel.n:
        return []
    return [_Tile(kernel, dialect).launch()]


class _Tile:
    """The tile of a group: each work item has `each` x `each` elements, SIDE apart."""

    def __init__(self, kernel: GemmKernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.kind = c_type(kernel.out.dtype)
        self.each = 4 if min(kernel.m, kernel.n) >= 2 * SIDE else 1
        self.side = SIDE * self.each
        # One group has all rows that are combined.
        self.rows = -(-(kernel.block or 1) // self.side) * self.side
        self.text = LaunchText("gemm", dialect)

    def launch(self) -> Launch:
        """Return the function and how many groups there are."""
        kernel, f = self.kernel, self.text.f
        f.write(f"LOCAL {self.kind} xs[{DEPTH * (self.side + 1)}];")
        f.write(f"LOCAL {self.kind} ys[{DEPTH * (self.side + 1)}];")
        across, block = -(-kernel.n // self.side), kernel.block or self.side
        down = -(-kernel.m // block)
        # All groups along one axis: of the others CUDA has 65,535 at most.
        f.write(f"const i64 product = GROUP(0) / {across * down};")
        counters = write_counters(f, "product", kernel.batch)
        x = MatrixText(self.text, kernel.x, kernel.x_from, counters)
        y = second_operand(self.text, kernel, counters)
        epilogue = EpilogueText(self.text, kernel)
        f.write(f"const i64 ti = ITEM / {SIDE}, tj = ITEM % {SIDE};")
        f.write(f"const i64 left = GROUP(0) % {across} * {self.side};")
        f.write(f"const i64 top = GROUP(0) / {across} % {down} * {block};")
        f.write(f"const i64 end = top + {block} < {kernel.m} ? top + {block} : {kernel.m};")
        with f.block(f"for (i64 i0 = top; i0 < end; i0 += {self.side})"):
            self._sums(f, x, y)
            self._stored(f, epilogue, counters)
        return self.text.finished((across * down * size_of(kernel.batch),), ITEMS)

    def _sums(self, f: CFunction, x: Source, y: Source) -> None:
        """Write the loop that brings parts of the operands to local memory and multiplies them."""
        each, kind = self.each, self.kind
        f.write(f"{kind} sums[{each * each}];")
        f.write(f"for (i32 q = 0; q < {each * each}; ++q) sums[q] = 0;")
        with f.block(f"for (i64 k0 = 0; k0 < {self.kernel.k}; k0 += {DEPTH})"):
            self._fetched(f, x, "xs", "i0", "end", of_rows=True)
            self._fetched(f, y, "ys", "left", str(self.kernel.n), of_rows=False)
            f.write("BARRIER;")
            with f.block(f"for (i32 d = 0; d < {DEPTH}; ++d)"):
                self._products(f)
            f.write("BARRIER;")

    def _products(self, f: CFunction) -> None:
        each, pitch = self.each, self.side + 1
        bits = 32 if self.kind == "f32" else 64
        f.write(f"{self.kind} a[{each}], b[{each}];")
        f.write(f"for (i32 q = 0; q < {each}; ++q) a[q] = xs[d * {pitch} + ti + q * {SIDE}];")
        f.write(f"for (i32 q = 0; q < {each}; ++q) b[q] = ys[d * {pitch} + tj + q * {SIDE}];")
        sums = f"sums[q * {each} + r]"
        product = f"{sums} = FMA{bits}(a[q], b[r], {sums});"
        f.write(f"for (i32 q = 0; q < {each}; ++q) for (i32 r = 0; r < {each}; ++r) {product}")

    def _fetched(
        self, f: CFunction, source: Source, local: str, start: str, end: str, *, of_rows: bool
    ) -> None:
        """Write how work items bring elements to local memory; those beyond the ends are zeros."""
        total = DEPTH * self.side
        with f.block(f"for (i64 e = ITEM; e < {total}; e += {ITEMS})"):
            # Neighbours read what lies side by side: along k in rows of x, along a row of y.
            if of_rows:
                f.write(f"const i64 d = e % {DEPTH}, s = e / {DEPTH};")
            else:
                f.write(f"const i64 s = e % {self.side}, d = e / {self.side};")
            f.write(f"const i64 k = k0 + d, at = {start} + s;")
            f.write(f"{self.kind} found = 0;")
            with f.block(f"if (k < {self.kernel.k} && at < {end})"):
                value = source.element("at", "k") if of_rows else source.element("k", "at")
                f.write(f"found = {value};")
            f.write(f"{local}[d * {self.side + 1} + s] = found;")

    def _stored(self, f: CFunction, epilogue: EpilogueText, counters: list[str]) -> None:
        """Write what becomes of the elements that are there.

        Where rows are combined they come in their order, one for all work items at a time.
        """
        each, in_order = self.each, bool(self.kernel.block)
        total = f"sums[q * {each} + r]"
        if in_order:
            with f.block(f"for (i32 turn = 0; turn < {self.side}; ++turn)"):
                with f.block(f"if (ti == turn % {SIDE})"):
                    f.write(f"const i32 q = turn / {SIDE};")
                    self._columns(f, epilogue, counters, total)
                f.write("BARRIER;")
            return
        with f.block(f"for (i32 q = 0; q < {each}; ++q)"):
            self._columns(f, epilogue, counters, total)

    def _columns(
        self, f: CFunction, epilogue: EpilogueText, counters: list[str], total: str
    ) -> None:
        with f.block(f"for (i32 r = 0; r < {self.each}; ++r)"):
            f.write(f"const i64 row = i0 + ti + q * {SIDE}, column = left + tj + r * {SIDE};")
            with f.block(f"if (row < end && column < {self.kernel.n})"):
                value = f.define(element_of(self.kernel.out.dtype), IRValue(total, ""))
                epilogue.write(value, counters, "row", "column")
