"""Write the panels of products whose vectors run along columns: what is packed, and the tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from .....core.dim import Dim, is_known, size_max, typical
from .....core.shape import Size, size_of
from ..text import FunctionText, ModuleText
from ..values import IRValue, bytes_of
from .pack import Copy, Stacks, write_copy, write_panel_copy, write_stacks, write_strip_copy
from .parts import Epilogue, PartWriter, RowBlock
from .plan import Form, GemmPlan
from .product import Strides
from .side import Places, Side
from .tile import Tile, low_rows, unrolling, write_tiles
from .windows import WindowPanel, write_window_panel

CACHE_LINE = 64
PREFETCH_PANELS = 3
HALVED_BYTES = 64  # vectors that some processors compute half by half, and halves in half the time
MOST_PIECES = 5  # of a vector that tiles read out of windows: each more is a mask in a register


class Rooms:
    """How much memory packed blocks take, in elements."""

    def __init__(self, plan: GemmPlan, itemsize: int) -> None:
        line = CACHE_LINE // itemsize
        # A line more than needed: equal places of rows lie in different sets of a cache.
        self.depth = -(-plan.depth // line) * line + line
        self.panel = plan.width * self.depth
        one = is_known([plan.row_blocks]) and plan.row_blocks == 1
        most = plan.last_rows if one else size_max(plan.last_rows, plan.row_block)
        stacks = -(-most // plan.form.rows) * plan.form.rows
        self.x = stacks * self.depth + line if plan.pack_x else 0
        self.y = plan.strip * self.panel if plan.pack_y else 0
        self.bytes = (self.x + self.y) * itemsize


@dataclass(frozen=True)
class _Part:
    """What the panels of a block of rows and of the inner dimension have in common.

    x, y     where the block begins; x is perhaps packed, y perhaps computed from several
    packed   where the panel in work is packed
    packs    whether that is to be done; None if it always is
    first    whether this is the first inner block, as a number
    """

    block: RowBlock
    x: IRValue
    y: Places
    packed: IRValue
    packs: IRValue | None
    depth: IRValue
    first: IRValue


class OuterWriter(PartWriter):
    """Writes the loops over inner blocks and panels."""

    def __init__(
        self,
        module: ModuleText,
        f: FunctionText,
        plan: GemmPlan,
        sides: tuple[Side, Side],
        epilogue: Epilogue,
        element: str,
        scratch: IRValue | None,
        depth_room: int,
    ) -> None:
        super().__init__(module, f, plan, sides, epilogue, element)
        self.stack_depth = (
            depth_room  # what packed panels have room for where they lie on the stack
        )
        rooms = Rooms(plan, bytes_of(element))
        self.depth_room, self.panel_room = rooms.depth, rooms.panel
        self.packed_x, self.packed_y = self._packed(rooms, scratch)
        if self.product.bias not in (None, 1) and not self.product.swapped:
            self.packed_bias = f.alloca(element, plan.width)

    def _packed(self, rooms: Rooms, scratch: IRValue | None) -> tuple[IRValue, IRValue]:
        """Return where packed blocks of x and panels of y lie: on the stack, unless told."""
        if scratch is not None:
            return scratch, self.f.gep(scratch, rooms.x, self.element)
        none = self.f.parameters[0]
        if isinstance(rooms.y, Dim):
            rooms = Rooms(replace(self.plan, depth=self.stack_depth), bytes_of(self.element))
        x = self.f.alloca(self.element, rooms.x) if self.plan.pack_x else none
        return x, self.f.alloca(self.element, rooms.y) if self.plan.pack_y else none

    def panels(self, block: RowBlock, first: IRValue, stop: IRValue) -> None:
        """Write the product for a range of panels of one block of rows."""
        with self._inner_blocks() as (k, depth):
            self._panels(block, first, stop, k, depth, None)
        self._finish(block, first, stop)

    def strips(
        self,
        y: Places,
        block_at: Callable[[IRValue], RowBlock],
        blocks: tuple[IRValue, IRValue],
        first: IRValue,
        stop: IRValue,
    ) -> None:
        """Write the product for a range of panels of several blocks of rows.

        A strip of panels is packed with the first of the blocks and used by all of them.
        """
        f, plan = self.f, self.plan
        count = f.sub(stop, first)
        strips = f.udiv(f.add(count, plan.strip - 1), plan.strip)
        step = f.udiv(f.sub(f.add(count, strips), 1), strips)
        with f.loop(first, stop, step) as strip:
            end = f.minimum(f.add(strip, step), stop)
            with self._inner_blocks() as (k, depth):
                self._pack_strip(y, strip, end, k, depth)
                with f.loop(*blocks, 1) as number:
                    packs = f.icmp("eq", number, blocks[0])
                    block = block_at(number)
                    self._panels(block, strip, end, k, depth, packs)
                    with f.when(self._is_last(k, depth)):
                        self._finish(block, strip, end)

    def _finish(self, block: RowBlock, first: IRValue, stop: IRValue) -> None:
        """Apply the epilogue to a range of panels."""
        f, width = self.f, self.plan.width
        column = f.mul(first, width)
        end = f.minimum(f.mul(stop, width), self.product.n)
        self.finish(block, column, f.sub(end, column))

    def _is_last(self, k: IRValue, depth: IRValue) -> IRValue:
        return self.f.icmp("sge", self.f.add(k, depth), self.product.k)

    @contextmanager
    def _inner_blocks(self) -> Iterator[tuple[IRValue, IRValue]]:
        """Loop over blocks of the inner dimension: where one begins, and its depth."""
        f, plan, k = self.f, self.plan, self.product.k
        if plan.inner_blocks.__class__ is int and plan.inner_blocks == 1:
            yield f.constant("i64", 0), f.constant("i64", k)
            return
        with f.loop(0, k, plan.depth) as start:
            yield start, f.minimum(f.sub(f.constant("i64", k), start), plan.depth)

    def _pack_strip(
        self, y: Places, first: IRValue, stop: IRValue, k: IRValue, depth: IRValue
    ) -> None:
        """Copy the whole panels of a strip, if y lies along rows."""
        f, plan = self.f, self.plan
        lines = self.y.source(by_row=True)
        if not lines.by_vectors:
            return
        copy = Copy(self.element, plan.lanes, lines, plan.width, 1, ())
        name = self.once(
            ("strip", copy),
            "pack_strip",
            lambda name: write_strip_copy(self.module, name, copy, self.panel_room),
        )
        panels = f.sub(f.minimum(stop, self.product.n // plan.width), first)
        rows = self.y.down(f, y, k)
        source, *further = self.y.across(f, rows, f.mul(first, plan.width))
        f.call(name, "void", source, self.packed_y, depth, panels, *further)

    def _panels(
        self,
        block: RowBlock,
        first: IRValue,
        stop: IRValue,
        k: IRValue,
        depth: IRValue,
        packs: IRValue | None,
    ) -> None:
        """Write the loop over panels; `packs` tells whether to pack them, None that it is so."""
        f, plan = self.f, self.plan
        from_x = self.x.across(f, block.x, k)
        y = self.y.down(f, block.y, k)
        x = self.packed_x if plan.pack_x else from_x[0]
        if plan.pack_x:
            self._pack_x(from_x, block.rows, depth)
        is_first = f.zext(f.icmp("eq", k, 0), "i64")
        with f.loop(first, stop, 1) as panel:
            place = self.packed_y if plan.pack_y else y[0]
            if plan.group.__class__ is not int or plan.group > 1:
                place = self.moved(place, f.sub(panel, first), self.panel_room)
            part = _Part(block, x, y, place, packs, depth, is_first)
            self._panel(part, panel)

    def _pack_x(self, x: Places, rows: IRValue, depth: IRValue) -> None:
        """Copy a block of x to stacks of as many rows as a tile has."""
        plan = self.plan
        by_row = self.product.x.across == 1
        source = self.x.source(by_row=by_row)
        place, *further = x
        for depths in self._each_kind_of_depth(depth):
            stacks = Stacks(
                self.element, plan.lanes, source, plan.form.rows, self.depth_room, by_row, depths
            )
            name = self.once(stacks, "pack_x", partial(self._write_stacks, stacks))
            self.f.call(name, "void", place, self.packed_x, rows, depth, *further)

    def _write_stacks(self, stacks: Stacks, name: str) -> None:
        write_stacks(self.module, name, stacks)

    def _each_kind_of_depth(self, depth: IRValue) -> Iterator[tuple[int, ...]]:
        """Yield the depths that occur, as far as they matter to copies.

        Those that only a run knows are less than a vector or not: what follows is written for each.
        """
        f, lanes = self.f, self.plan.lanes
        if is_known([self.plan.depth, self.product.k]):
            yield self.plan.depths
            return
        short = f.icmp("slt", depth, lanes)
        with f.when(short):
            yield (1,)
        with f.when(f.not_(short)):
            yield (lanes + 1,)

    def _call_copy(
        self,
        hint: str,
        copy: Copy,
        places: Places,
        target: IRValue,
        lines: IRValue,
        length: IRValue,
    ) -> None:
        name = self.once((hint, copy), hint, lambda name: write_copy(self.module, name, copy))
        source, *further = places
        self.f.call(name, "void", source, target, lines, length, *further)

    def _panel(self, part: _Part, panel: IRValue) -> None:
        """Write the tiles of a panel: whole ones, and the last if it is narrower."""
        f, plan = self.f, self.plan
        column = f.mul(panel, plan.width)
        last_columns = self.product.n % plan.width
        if isinstance(self.product.n, Dim):
            self._any_panel(part, panel, column, last_columns)
        elif last_columns == 0:
            self._tiles(part, column, plan.form, plan.width, f.constant("i64", 1))
        elif plan.panels == 1:
            self._tiles(part, column, plan.form, last_columns, f.constant("i64", 0))
        else:
            whole, last, done = f.label("wide"), f.label("narrow"), f.label("panel")
            f.branch_if(f.icmp("slt", panel, plan.panels - 1), whole, last)
            f.block(whole)
            self._tiles(part, column, plan.form, plan.width, f.constant("i64", 1))
            f.branch(done)
            f.block(last)
            self._tiles(part, column, plan.last or plan.form, last_columns, f.constant("i64", 0))
            f.branch(done)
            f.block(done)

    def _any_panel(self, part: _Part, panel: IRValue, column: IRValue, last_columns: Size) -> None:
        """Write a panel that is whole, or the last of columns that only a run knows."""
        f, plan = self.f, self.plan
        whole, last, done = f.label("wide"), f.label("narrow"), f.label("panel")
        end = f.add(column, plan.width)
        f.branch_if(f.icmp("sle", end, self.product.n), whole, last)
        f.block(whole)
        self._tiles(part, column, plan.form, plan.width, f.constant("i64", 1))
        f.branch(done)
        f.block(last)
        self._tiles(part, column, plan.form, last_columns, f.constant("i64", 0))
        f.branch(done)
        f.block(done)

    def _tiles(
        self, part: _Part, column: IRValue, form: Form, columns: Size, whole: IRValue
    ) -> None:
        """Write the tiles of a panel, after packing it if that is due."""
        f, product = self.f, self.product
        x, rows = part.x, part.block.rows
        from_y = self.y.across(f, part.y, column)
        y = from_y[0]
        out = self.moved(part.block.out, column, product.out.across)
        bias = self._bias(part.block, column, columns)
        rest = (part.depth, part.first, whole)
        place = part.packed if self.plan.pack_y else y
        first = self._first_tile(form, columns)
        if first is not None:
            due = f.constant("i64", form.rows)
            windows = () if first.windows is None else (from_y[1], column)
            self._call_tiles(first, x, y, out, bias, place, due, *rest, *windows)
            x = self.moved(x, due, self.depth_room if self.plan.pack_x else product.x.down)
            out = self.moved(out, due, product.out.down)
            if product.swapped and product.bias is not None:
                bias = self.moved(bias, due, product.bias)
            rows = f.sub(rows, due)
        elif self.plan.pack_y and not self._lies_as_packed(form, columns):
            with self._if_packing(part):
                if product.windows:
                    self._pack_windows(from_y, place, form, column, part.depth)
                else:
                    self._pack_y(from_y, place, form, columns, part.depth)
        if self._has_more_rows(form) or rows is part.block.rows:
            self._call_tiles(self._tile(form), x, place, out, bias, place, rows, *rest)

    def _lanes(self, form: Form) -> int:
        """Return the lanes of a tile's vectors: half of them where no others have columns."""
        plan, n = self.plan, self.product.n
        if plan.lanes * bytes_of(self.element) < HALVED_BYTES or not is_known([n]):
            return plan.lanes
        narrow = form.vectors == 1 and (form == plan.last or plan.panels == 1)
        return plan.lanes // 2 if narrow and 0 < 2 * (n % plan.width) <= plan.lanes else plan.lanes

    def _has_more_rows(self, form: Form) -> bool:
        """Tell whether there may be tiles below the first."""
        return not is_known([self.product.m]) or self.product.m > form.rows

    def _first_tile(self, form: Form, columns: Size) -> Tile | None:
        """Return a tile that reads y where it lies, and packs it on the way for those below."""
        if not self.plan.pack_y or not self._is_ungrouped:
            return None
        if self.product.windows:
            windows, packs = self._window_panel(form), self._has_more_rows(form)
            tile = replace(self._packing_tile(form), windows=windows, packs=packs, prefetch=0)
            return tile if windows.pieces <= MOST_PIECES else None
        return self._packing_tile(form) if self._lies_as_packed(form, columns) else None

    def _window_panel(self, form: Form) -> WindowPanel:
        return WindowPanel(self.element, self._lanes(form), form.vectors, self.product.windows)

    @property
    def _is_ungrouped(self) -> bool:
        """Tell whether no blocks of rows share packed panels."""
        return self.plan.group.__class__ is int and self.plan.group == 1

    def _lies_as_packed(self, form: Form, columns: Size) -> bool:
        """Tell whether the lines of a panel are whole: its first tile can pack it on the way.

        That is, if nothing is computed of them; in strips they are packed before.
        """
        plan = self.plan
        in_strips = self.y.value is None if self._is_ungrouped else form == plan.form
        by_row = self.y.source(by_row=True).by_vectors
        return by_row and columns == form.vectors * self._lanes(form) and in_strips

    @contextmanager
    def _if_packing(self, part: _Part) -> Iterator[None]:
        if part.packs is None:
            yield
        else:
            with self.f.when(part.packs):
                yield

    def _call_tiles(self, tile: Tile, *arguments: IRValue) -> None:
        name = self.once(
            tile,
            f"tile_{tile.rows}x{tile.vectors}",
            lambda name: write_tiles(self.module, name, tile),
        )
        self.f.call(name, "void", *arguments)

    def _tile(self, form: Form) -> Tile:
        plan, product = self.plan, self.product
        x = Strides((), 1, form.rows) if plan.pack_x else product.x
        columns = product.n % plan.width
        known = is_known([product.n])
        narrow = form == plan.last or (known and plan.panels == 1)
        only_last = known and narrow and columns != 0
        return Tile(
            element=self.element,
            itemsize=bytes_of(self.element),
            lanes=self._lanes(form),
            rows=form.rows,
            vectors=form.vectors,
            x_down=x.down,
            x_across=x.across,
            x_stack=self.depth_room if plan.pack_x else 0,
            y_line=form.vectors * self._lanes(form) if plan.pack_y else product.y.down,
            y_aligned=plan.pack_y,
            out_down=product.out.down,
            out_across=product.out.across,
            bias=self._bias_kind(),
            columns=columns if only_last or plan.last is None else 0,
            only_last=only_last,
            several=not is_known([plan.inner_blocks]) or plan.inner_blocks > 1,
            far=typical(self._result_bytes()) > self.module.target.l2_bytes,
            remainder=self._is_ragged(product.k, unrolling(form.rows, form.vectors)),
            ragged=any(self._is_ragged(n, form.rows) for n in (plan.last_rows, plan.row_block)),
            low=0 if is_known([product.m]) else low_rows(form.rows, form.vectors),
        )

    @staticmethod
    def _is_ragged(size: Size, step: int) -> bool:
        """Tell whether a size may be no multiple of a step."""
        return step > 1 and (not is_known([size]) or size % step != 0)

    def _result_bytes(self) -> Size:
        product = self.product
        return size_of(product.batch) * product.m * product.n * bytes_of(self.element)

    def _packing_tile(self, form: Form) -> Tile:
        """Return the tile that packs y while it multiplies: the copy costs next to nothing then."""
        return replace(
            self._tile(form),
            y_line=self.product.y.down,
            y_aligned=False,
            ragged=False,
            low=0,
            packs=True,
            prefetch=self._prefetched,
        )

    @property
    def _prefetched(self) -> int:
        """Return how far ahead of a panel what will be wanted lies; 0 if there is no other."""
        return PREFETCH_PANELS * self.plan.width if typical(self.plan.panels) > 1 else 0

    def _bias_kind(self) -> str | Size | None:
        product = self.product
        if product.bias is None:
            return None
        return product.bias if product.swapped else "column"

    def _bias(self, block: RowBlock, column: IRValue, columns: Size) -> IRValue:
        """Return where the bias of a panel lies, one element after another."""
        f, stride = self.f, self.product.bias
        if stride is None or self.product.swapped:
            return block.bias
        here = self.moved(block.bias, column, stride)
        if stride == 1:
            return here
        if isinstance(columns, Dim):
            with f.loop(0, columns, 1) as at:
                value = f.load(self.element, f.gep(here, f.mul(at, stride), self.element))
                f.store(value, f.gep(self.packed_bias, at, self.element))
            return self.packed_bias
        for j in range(columns):
            value = f.load(self.element, f.gep(here, j * stride, self.element))
            f.store(value, f.gep(self.packed_bias, j, self.element))
        return self.packed_bias

    def _pack_windows(
        self, y: Places, place: IRValue, form: Form, column: IRValue, depth: IRValue
    ) -> None:
        """Copy a block of a panel out of windows."""
        source, offsets = y
        panel = self._window_panel(form)
        name = self.once(
            panel, "pack_windows", lambda name: write_window_panel(self.module, name, panel)
        )
        self.f.call(name, "void", source, place, offsets, depth, column)

    def _pack_y(self, y: Places, place: IRValue, form: Form, columns: Size, depth: IRValue) -> None:
        """Copy a block of a panel, line by line of as many columns as the tile has."""
        f, lanes = self.f, self._lanes(form)
        width = form.vectors * lanes
        lines = self.y.source(by_row=True)
        if lines.by_vectors:
            copy = Copy(self.element, lanes, lines, width, 1, ())
            prefetch = self._prefetched
            name = self.once(
                ("panel", copy, columns),
                "pack_y",
                lambda name: write_panel_copy(self.module, name, copy, columns, prefetch=prefetch),
            )
            f.call(name, "void", y[0], place, depth, depth, *y[1:])
            return
        columnwise = self.y.source(by_row=False)
        for depths in self._each_kind_of_depth(depth):
            copy = Copy(self.element, lanes, columnwise, 1, width, depths)
            self._call_copy("pack_y", copy, y, place, f.constant("i64", columns), depth)
