"""Write the panels of thin products: dot products, and a vector times a matrix."""

from __future__ import annotations

from .....core.dim import Dim
from ..values import IRValue
from .dot import DotTile, write_dots
from .parts import PartWriter, RowBlock
from .plan import dot_lanes
from .sweep import Sweep, write_sweep

SWEEP_PANELS = 4  # done in one run: the longer, the better memory is read


class ThinWriter(PartWriter):
    """Writes the loop over the panels of a block of rows."""

    def panels(self, block: RowBlock, first: IRValue, stop: IRValue) -> None:
        """Write the product for a range of panels."""
        if self.plan.way == "sweep":
            self._sweep(block, first, stop)
            return
        with self.f.loop(first, stop, 1) as panel:
            self._dots(block, panel)

    def _sweep(self, block: RowBlock, first: IRValue, stop: IRValue) -> None:
        f, plan, product = self.f, self.plan, self.product
        bias = None if product.bias is None else "one" if product.swapped else "column"
        sweep = Sweep(
            self.element,
            plan.lanes,
            SWEEP_PANELS * plan.width,
            product.k,
            product.x.across,
            product.y.down,
            bias,
        )
        name = self.once(sweep, "sweep", lambda name: write_sweep(self.module, name, sweep))
        with f.loop(first, stop, SWEEP_PANELS) as panel:
            column = f.mul(panel, plan.width)
            end = f.mul(f.minimum(f.add(panel, SWEEP_PANELS), stop), plan.width)
            y, out = (self.moved(place, column, 1) for place in (block.y[0], block.out))
            along = self.moved(block.bias, column, 1) if bias == "column" else block.bias
            columns = f.sub(f.minimum(end, product.n), column)
            f.call(name, "void", block.x[0], y, out, along, columns)
            self.finish(block, column, columns)

    def _dots(self, block: RowBlock, panel: IRValue) -> None:
        f, plan, n = self.f, self.plan, self.product.n
        last_columns = n % plan.width
        if isinstance(n, Dim):
            self._any_dots(block, panel, n)
            return
        if last_columns == 0 or plan.panels == 1:
            self._dot_panel(block, panel, min(n, plan.width))
            return
        whole, last, done = f.label("wide"), f.label("narrow"), f.label("panel")
        f.branch_if(f.icmp("slt", panel, plan.panels - 1), whole, last)
        for label, columns in ((whole, plan.width), (last, last_columns)):
            f.block(label)
            self._dot_panel(block, panel, columns)
            f.branch(done)
        f.block(done)

    def _any_dots(self, block: RowBlock, panel: IRValue, n: Dim) -> None:
        """Write a panel of whole columns, and one for each number that the last may have."""
        f, width = self.f, self.plan.width
        columns = f.minimum(f.sub(n, f.mul(panel, width)), width)
        for number in range(1, width + 1):
            with f.when(f.icmp("eq", columns, number)):
                self._dot_panel(block, panel, number)

    def _dot_panel(self, block: RowBlock, panel: IRValue, columns: int) -> None:
        product, plan = self.product, self.plan
        column = self.f.mul(panel, plan.width)
        y = self.moved(block.y[0], column, product.y.across)
        out = self.moved(block.out, column, product.out.across)
        bias = block.bias
        if product.bias is not None and not product.swapped:
            bias = self.moved(bias, column, product.bias)
        tile = self._dot_tile(plan.form.rows, columns)
        name = self.once(
            tile,
            f"dots_{tile.rows}x{columns}",
            lambda name: write_dots(self.module, name, tile),
        )
        self.f.call(name, "void", block.x[0], y, out, bias, block.rows)
        self.finish(block, column, self.f.constant("i64", columns))

    def _dot_tile(self, rows: int, columns: int) -> DotTile:
        product = self.product
        along = product.bias
        return DotTile(
            element=self.element,
            lanes=dot_lanes(product.k, self.plan.lanes),
            rows=rows,
            columns=columns,
            depth=product.k,
            x_line=product.x.down,
            y_line=product.y.across,
            out_down=product.out.down,
            out_across=product.out.across,
            bias_row=None if along is None else (along if product.swapped else 0),
            bias_column=None if along is None else (0 if product.swapped else along),
            single=product.m == 1 and product.n == 1,
        )
