"""Write the functions of tiles: the inner loops of matrix products.

    void tiles(ptr x, ptr y, ptr out, ptr bias, ptr packed,
               i64 rows, i64 depth, i64 first, i64 whole)

computes tiles of the result, one below the other, over a block of the inner dimension: rows x
vectors of sums stay in registers while elements of x are spread and multiplied with vectors of y.
Where the rows are no multiple of the tile's, the last tile begins higher and stores only what is
new; where that is little, low tiles compute it, which begin higher in the same way. `first` says
that this is the first block: later ones add to what is in out. `whole` says that all columns of the
tile exist; otherwise it is the last panel, and only its columns are stored.
Tiles that read y out of windows of images take two arguments more: where its rows begin, as words,
and the first column.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .....core.dim import Dim
from .....core.shape import Size
from ..text import FunctionText, ModuleText
from ..values import IRValue, vector_of
from .pack import INTERNAL, pieces
from .windows import WindowPanel, pieces_of, read_row

BUSY = 8  # products in a turn of the inner loop, beside which its own instructions cost little
PARAMETERS = [*["ptr noalias"] * 5, *["i64"] * 4]
WINDOWS = ["ptr noalias", "i64"]
CACHE_LINE = 64


@dataclass(frozen=True)
class Tile:
    """What a tile function is made for; strides in elements.

    x_down, x_across   strides of x
    x_stack            from one tile of x to the next, for each row of it; 0: rows lie in sequence
    y_line             from one line of the panel of y to the next
    y_aligned          whether these lines begin at multiples of a vector
    out_down, out_across
    bias               stride of a bias along columns ("column": always 1) or rows; None: no bias
    columns            those of the last panel; 0 if all panels are whole
    only_last          whether no whole panel comes here
    several            whether there may be several blocks of the inner dimension
    far                whether the result is too large to lie near, so that it is asked for early
    remainder          whether depths may be no multiples of the unrolling
    ragged             whether the number of rows may be no multiple of the tile's
    low                the rows of low tiles, of which up to two take the place of the last; 0: none
    packs              whether y is copied to `packed` on the way (for one tile only)
    prefetch           distance, in elements of y, of what will be wanted next; 0: nothing
    windows            how y lies in windows of images, if it does
    """

    element: str
    itemsize: int
    lanes: int
    rows: int
    vectors: int
    x_down: Size
    x_across: Size
    x_stack: Size
    y_line: Size
    y_aligned: bool
    out_down: Size
    out_across: Size
    bias: str | Size | None
    columns: Size
    only_last: bool
    several: bool
    far: bool
    remainder: bool
    ragged: bool
    low: int = 0
    packs: bool = False
    prefetch: int = 0
    windows: WindowPanel | None = None

    @property
    def unroll(self) -> int:
        """Return how many steps along the inner dimension one turn of the loop takes.

        Sums are the same whatever it is. Longer loops gain nothing, and cost time to be made.
        """
        return unrolling(self.rows, self.vectors)

    @property
    def vector(self) -> str:
        """Return the type of a vector of elements."""
        return vector_of(self.element, self.lanes)


def low_rows(rows: int, vectors: int) -> int:
    """Return how high low tiles are beside such of so many rows; 0 if they would win nothing.

    They have as many sums as keep multipliers busy.
    """
    low = -(-BUSY // vectors)
    return low if vectors > 1 and rows > 2 * low else 0


def unrolling(rows: int, vectors: int) -> int:
    """Return how many steps of a tile one turn takes: 1, 2 or 4."""
    sums = rows * vectors
    return 1 if sums >= BUSY else 2 if 2 * sums >= BUSY else 4


def write_tiles(module: ModuleText, name: str, tile: Tile) -> None:
    """Add a tile function to a module."""
    more = [] if tile.windows is None else WINDOWS
    _TileWriter(module.function(name, [*PARAMETERS, *more], INTERNAL), tile).write()


class _TileWriter:
    def __init__(self, f: FunctionText, tile: Tile) -> None:
        self.f = f
        self.tile = tile
        self.x, self.y, self.out, self.bias, self.packed, *sizes = f.parameters
        self.rows, self.depth, first, whole, *windows = sizes
        if tile.windows is not None:
            self.offsets, column = windows
            self.vectors = pieces_of(f, tile.windows, column)
        self.first = f.icmp("ne", first, 0)
        self.whole = f.icmp("ne", whole, 0)
        self.unrolled = f.and_(self.depth, -tile.unroll) if tile.remainder else self.depth

    def write(self) -> None:
        f, tile = self.f, self.tile
        with f.loop(0, self.rows, tile.rows) as row:
            start: IRValue = row
            self.skipped = f.constant("i64", 0)
            if tile.ragged:
                start = f.minimum(row, f.sub(self.rows, tile.rows))
                self.skipped = f.sub(row, start)
            place = f.mul(row, tile.x_stack) if tile.x_stack else f.mul(start, tile.x_down)
            self.x_here = self._at(self.x, place)
            self.out_here = self._at(self.out, f.mul(start, tile.out_down))
            self.bias_here = self.bias
            if not isinstance(tile.bias, str | None):
                self.bias_here = self._at(self.bias, f.mul(start, tile.bias))
            self._prefetch()
            if tile.low:
                few = f.icmp("sge", self.skipped, tile.rows - 2 * tile.low)
                self._branch(few, self._write_low, self._write_tile)
            else:
                self._write_tile()
        f.ret()

    def _write_tile(self) -> None:
        self._store(self._sums())

    def _write_low(self) -> None:
        """Compute the new rows of the last tile by low ones."""
        f, tile = self.f, self.tile
        unlike = unrolling(tile.low, tile.vectors) != tile.unroll
        low = replace(tile, rows=tile.low, low=0, remainder=tile.remainder or unlike)
        writer = _TileWriter(f, low)
        new = f.sub(f.constant("i64", tile.rows), self.skipped)
        begin = f.icmp("sgt", new, tile.low)
        first = f.sub(tile.rows - tile.low, f.mul(f.zext(begin, "i64"), tile.low))
        with f.loop(first, tile.rows, tile.low) as at:
            writer.x_here = self._at(self.x_here, f.mul(at, tile.x_down))
            writer.out_here = self._at(self.out_here, f.mul(at, tile.out_down))
            writer.bias_here = self.bias_here
            if not isinstance(tile.bias, str | None):
                writer.bias_here = self._at(self.bias_here, f.mul(at, tile.bias))
            writer.skipped = f.maximum(f.sub(self.skipped, at), 0)
            writer._write_tile()

    def _at(self, place: IRValue, index: IRValue | int) -> IRValue:
        return place if index == 0 else self.f.gep(place, index, self.tile.element)

    def _prefetch(self) -> None:
        """Ask for the result, which is wanted after the inner loop only, to read or to replace."""
        tile = self.tile
        if not (tile.several or tile.far):
            return
        width = tile.vectors * tile.lanes
        for i in range(tile.rows):
            row = self._at(self.out_here, i * tile.out_down)
            self.f.prefetch(row, write=True)
            if width * tile.itemsize >= CACHE_LINE:
                self.f.prefetch(self._at(row, width - 1), write=True)

    # -- the inner loop ----------------------------------------------------------------------------

    def _sums(self) -> list[IRValue]:
        f, tile = self.f, self.tile
        zeros = [f.constant(tile.vector, 0)] * (tile.rows * tile.vectors)
        y = self.y if tile.windows is None else self.offsets
        state = [self.x_here, y, *([self.packed] if tile.packs else []), *zeros]
        state = self._steps(f.constant("i64", 0), self.unrolled, tile.unroll, state)
        if tile.remainder:
            state = self._steps(self.unrolled, self.depth, 1, state)
        return state[-len(zeros) :]

    def _steps(
        self, start: IRValue, stop: IRValue, step: int, state: list[IRValue]
    ) -> list[IRValue]:
        f, tile = self.f, self.tile
        y = (tile.y_line, tile.element) if tile.windows is None else (1, "i64")
        moves = [(tile.x_across, tile.element), y]
        if tile.packs:
            moves.append((tile.vectors * tile.lanes, tile.element))

        def moved(places: list[IRValue], steps: int) -> list[IRValue]:
            pairs = zip(places, moves, strict=True)
            return [p if steps * by == 0 else f.gep(p, steps * by, kind) for p, (by, kind) in pairs]

        with f.loop(start, stop, step, carry=state) as k:
            places, sums = list(k.carried[: len(moves)]), list(k.carried[len(moves) :])
            for u in range(step):
                sums = self._step(moved(places, u), sums)
            k.next(*moved(places, step), *sums)
        return list(k.results)

    def _step(self, here: list[IRValue], sums: list[IRValue]) -> list[IRValue]:
        f, tile = self.f, self.tile
        x, y, *packed = here
        ys = self._vectors(y)
        for place in packed:
            for v, value in enumerate(ys):
                f.store(value, self._at(place, v * tile.lanes), aligned=True)
        if tile.prefetch:
            f.prefetch(self._at(y, tile.prefetch))
        result = []
        for i in range(tile.rows):
            value = f.load(tile.element, self._at(x, i * tile.x_down))
            spread = f.splat(value, tile.lanes)
            line = sums[i * tile.vectors : (i + 1) * tile.vectors]
            result += [f.multiply_add(spread, y, total) for y, total in zip(ys, line, strict=True)]
        return result

    def _vectors(self, y: IRValue) -> list[IRValue]:
        """Return a line of the panel of y."""
        f, tile = self.f, self.tile
        if tile.windows is not None:
            return read_row(f, tile.windows, self.y, y, self.vectors)
        return [
            f.load(tile.vector, self._at(y, v * tile.lanes), aligned=tile.y_aligned)
            for v in range(tile.vectors)
        ]

    # -- the result --------------------------------------------------------------------------------

    def _store(self, sums: list[IRValue]) -> None:
        """Store vectors if all of the tile is wanted, else what is wanted by way of the stack."""
        f, tile = self.f, self.tile
        width = tile.vectors * tile.lanes
        narrow = 0 if tile.columns == width else tile.columns
        quick: list[IRValue] = []
        is_narrow = isinstance(narrow, Dim) or narrow > 0
        if tile.ragged:
            quick.append(f.icmp("eq", self.skipped, 0))
        if is_narrow and not tile.only_last:
            quick.append(self.whole)
        if tile.out_across != 1 or (is_narrow and tile.only_last):
            self._store_slowly(sums, narrow)
        elif not quick:
            self._store_whole(sums)
        else:
            condition = f.and_(*quick) if len(quick) == 2 else quick[0]
            self._branch(
                condition,
                lambda: self._store_whole(sums),
                lambda: self._store_slowly(sums, narrow),
            )

    def _branch(
        self, condition: IRValue, then: Callable[[], None], otherwise: Callable[[], None]
    ) -> None:
        f = self.f
        yes, no, done = f.label("yes"), f.label("no"), f.label("done")
        f.branch_if(condition, yes, no)
        for label, write in ((yes, then), (no, otherwise)):
            f.block(label)
            write()
            f.branch(done)
        f.block(done)

    def _store_slowly(self, sums: list[IRValue], narrow: Size) -> None:
        f, tile = self.f, self.tile
        spare = f.alloca(tile.element, tile.rows * tile.vectors * tile.lanes)
        for number, total in enumerate(sums):
            f.store(total, self._at(spare, number * tile.lanes), aligned=True)

        def all_columns() -> None:
            self._store_pieces(spare, tile.vectors * tile.lanes)

        def last_columns() -> None:
            self._store_pieces(spare, narrow)

        if not isinstance(narrow, Dim) and narrow == 0:
            all_columns()
        elif tile.only_last or (not tile.ragged and tile.out_across == 1):
            last_columns()
        else:
            self._branch(self.whole, all_columns, last_columns)

    def _store_whole(self, sums: list[IRValue]) -> None:
        """Store vectors; what they are added to is read in one of two branches."""
        f, tile = self.f, self.tile
        places = [
            (i, v, self._at(self.out_here, i * tile.out_down + v * tile.lanes))
            for i in range(tile.rows)
            for v in range(tile.vectors)
        ]

        def with_bias() -> list[IRValue]:
            return [
                self._with_bias(total, f.constant("i64", i), v * tile.lanes, tile.lanes)
                for total, (i, v, _) in zip(sums, places, strict=True)
            ]

        def with_earlier() -> list[IRValue]:
            return [
                f.fadd(total, f.load(tile.vector, place))
                for total, (_, _, place) in zip(sums, places, strict=True)
            ]

        totals = self._either(with_bias, with_earlier)
        for total, (_, _, place) in zip(totals, places, strict=True):
            f.store(total, place)

    def _store_pieces(self, spare: IRValue, columns: Size) -> None:
        """Store columns of the new rows of a tile from the stack."""
        f, tile = self.f, self.tile
        if isinstance(columns, Dim):
            self._store_any(spare, columns)
            return
        scattered = tile.out_across != 1
        parts = pieces(columns, 1 if scattered else tile.lanes)
        with f.loop(self.skipped, tile.rows, 1) as row:
            line = self._at(spare, f.mul(row, tile.vectors * tile.lanes))
            out = self._at(self.out_here, f.mul(row, tile.out_down))
            for at, lanes in parts:
                self._store_piece(line, out, row, at, lanes)

    def _store_any(self, spare: IRValue, columns: Dim) -> None:
        """Store as many columns of the new rows of a tile as only a run knows."""
        f, tile = self.f, self.tile
        with f.loop(self.skipped, tile.rows, 1) as row:
            line = self._at(spare, f.mul(row, tile.vectors * tile.lanes))
            out = self._at(self.out_here, f.mul(row, tile.out_down))
            with f.loop(0, columns, 1) as at:
                self._store_piece(line, out, row, at, 1)

    def _store_piece(
        self, line: IRValue, out: IRValue, row: IRValue, at: IRValue | int, lanes: int
    ) -> None:
        f, tile = self.f, self.tile
        type = vector_of(tile.element, lanes)
        along = f.mul(at, tile.out_across) if isinstance(at, IRValue) else at * tile.out_across
        place = self._at(out, along)
        value = f.load(type, self._at(line, at))
        (total,) = self._either(
            lambda: [self._with_bias(value, row, at, lanes)],
            lambda: [f.fadd(value, f.load(type, place))],
        )
        f.store(total, place)

    def _with_bias(
        self, total: IRValue, row: IRValue, column: IRValue | int, lanes: int
    ) -> IRValue:
        f, tile = self.f, self.tile
        if tile.bias is None:
            return total
        if not isinstance(tile.bias, str):
            one = f.load(tile.element, self._at(self.bias_here, f.mul(row, tile.bias)))
            return f.fadd(total, f.splat(one, lanes))
        type = vector_of(tile.element, lanes)
        return f.fadd(total, f.load(type, self._at(self.bias_here, column)))

    def _either(
        self, at_first: Callable[[], list[IRValue]], later: Callable[[], list[IRValue]]
    ) -> list[IRValue]:
        """Return values computed one way in the first block and another way in later ones."""
        f = self.f
        if not self.tile.several:
            return at_first()
        first, more, done = f.label("first"), f.label("more"), f.label("sums")
        f.branch_if(self.first, first, more)
        f.block(first)
        ones, first_end = at_first(), f.current
        f.branch(done)
        f.block(more)
        others, more_end = later(), f.current
        f.branch(done)
        f.block(done)
        return [
            f.phi(a.type, (a, first_end), (b, more_end)) for a, b in zip(ones, others, strict=True)
        ]
