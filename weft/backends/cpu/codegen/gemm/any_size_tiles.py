"""Write the tiles of products of any sizes: what is multiplied in registers, and stored.

    tile_1, tile_2        a stack of x and one or two vectors of columns of a panel, both packed
    filling_tile          the same for a panel that is not packed yet: it reads y itself, line by
                          line, and leaves the panel packed for the tiles that follow
    turned_tile_1, _2     reads rows of x as they lie and stores the transpose of its result: for
                          products that are computed as (y.T @ x.T).T

All of them add the products of an element in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..text import FunctionText, ModuleText
from ..values import IRValue, lanes_of, vector_of
from .any_size_packing import square_of
from .any_size_shape import UNROLL, VECTORS, Shape
from .pack import INTERNAL, transposed

# x, panel, out, depth, stride of out, rows and columns left, whether it is the first block
_TILE = [*["ptr noalias"] * 3, *["i64"] * 5]
CACHE_LINE = 64


def write_tiles(module: ModuleText, shape: Shape) -> None:
    """Add the functions of all tiles to a module."""
    for vectors in range(1, VECTORS + 1):
        _Tile(module.function(f"tile_{vectors}", _TILE, INTERNAL), shape, vectors).write()
        turned = module.function(f"turned_tile_{vectors}", [*_TILE, "i64", "i64"], INTERNAL)
        _TurnedTile(turned, shape, vectors).write()
    filling = module.function("filling_tile", [*_TILE, "ptr noalias", "i64"], INTERNAL)
    _FillingTile(filling, shape, VECTORS).write()


class _Tile:
    """Multiplies a stack with the first vectors of a panel, both packed."""

    def __init__(self, f: FunctionText, shape: Shape, vectors: int) -> None:
        self.f, self.shape, self.vectors = f, shape, vectors
        self.vector = vector_of(shape.element, shape.lanes)
        self.x, self.panel, self.out, self.depth, self.down, *left, first = f.parameters[:8]
        self.rows, self.columns = left
        self.fresh = f.icmp("ne", first, 0)

    def write(self) -> None:
        """Write the function."""
        self._ask_for_result()
        self._store(self._sums())
        self.f.ret()

    def _at(self, place: IRValue, index: IRValue | int) -> IRValue:
        return self.f.gep(place, index, self.shape.element)

    # -- the inner loop ----------------------------------------------------------------------------

    def _places(self) -> list[tuple[IRValue, IRValue | int]]:
        """Return what moves along the inner dimension, and by how much in each step."""
        return [(self.x, self.shape.rows), (self.panel, self.shape.columns)]

    def _sums(self) -> list[IRValue]:
        places = [place for place, _ in self._places()]
        return self._block_sums(self.f.constant("i64", 0), self.depth, places)[1]

    def _block_sums(
        self, begin: IRValue, end: IRValue, places: Sequence[IRValue]
    ) -> tuple[list[IRValue], list[IRValue]]:
        """Return where the places have come to behind a block, and its sums."""
        f, count = self.f, len(places)
        moves = [move for _, move in self._places()]
        state = [*places, *[f.constant(self.vector, 0)] * (self.shape.rows * self.vectors)]
        unrolled = f.sub(end, f.and_(f.sub(end, begin), UNROLL - 1))
        for start, stop, step in ((begin, unrolled, UNROLL), (unrolled, end, 1)):
            with f.loop(start, stop, step, carry=state) as k:
                here, sums = list(k.carried[:count]), list(k.carried[count:])
                self._begin_step(k)
                for u in range(step):
                    sums = self._multiplied(self._factors(k, u, here), here, sums)
                    here = [self._at(p, by) for p, by in zip(here, moves, strict=True)]
                k.next(*here, *sums)
            state = list(k.results)
        return state[:count], state[count:]

    def _begin_step(self, k: IRValue) -> None:
        """Write what comes before some steps of the inner dimension."""

    def _factors(self, k: IRValue, u: int, places: Sequence[IRValue]) -> list[IRValue]:
        """Return an element of each row."""
        f, shape = self.f, self.shape
        return [f.load(shape.element, self._at(places[0], i)) for i in range(shape.rows)]

    def _line(self, places: Sequence[IRValue]) -> list[IRValue]:
        """Return the vectors of a line of the panel."""
        f, lanes = self.f, self.shape.lanes
        return [
            f.load(self.vector, self._at(places[-1], v * lanes), aligned=True)
            for v in range(self.vectors)
        ]

    def _multiplied(
        self, factors: Sequence[IRValue], places: Sequence[IRValue], sums: Sequence[IRValue]
    ) -> list[IRValue]:
        f, line, result = self.f, self._line(places), list[IRValue]()
        for i, factor in enumerate(factors):
            one = f.splat(factor, self.shape.lanes)
            totals = sums[i * self.vectors : (i + 1) * self.vectors]
            result += [f.multiply_add(one, y, total) for y, total in zip(line, totals, strict=True)]
        return result

    # -- the result --------------------------------------------------------------------------------

    def _ask_for_result(self) -> None:
        """Ask for what is stored to after the inner loop, beyond the last row too."""
        f, shape = self.f, self.shape
        width = self.vectors * shape.lanes
        for i in range(shape.rows):
            line = f.gep_beyond(self.out, f.mul(self.down, i), shape.element)
            for at in range(0, width, CACHE_LINE // shape.itemsize):
                f.prefetch(f.gep_beyond(line, at, shape.element), write=True)

    def _store(self, sums: list[IRValue]) -> None:
        f, shape = self.f, self.shape
        across = f.icmp("sge", self.columns, self.vectors * shape.lanes)
        whole = f.and_(f.icmp("sge", self.rows, shape.rows), across)
        fast, slow, done = f.label("whole"), f.label("edge"), f.label("stored")
        f.branch_if(whole, fast, slow)
        f.block(fast)
        self._store_whole(sums)
        f.branch(done)
        f.block(slow)
        self._store_edge(sums)
        f.branch(done)
        f.block(done)

    def _store_whole(self, sums: list[IRValue]) -> None:
        f, shape = self.f, self.shape
        lines = [self._at(self.out, f.mul(self.down, i)) for i in range(shape.rows)]
        places = [self._at(line, v * shape.lanes) for line in lines for v in range(self.vectors)]
        self._store_all(list(zip(sums, places, strict=True)))

    def _store_all(self, placed: Sequence[tuple[IRValue, IRValue]]) -> None:
        """Store vectors at places, or add them to what lies there."""
        f = self.f
        fresh, more, done = f.label("fresh"), f.label("more"), f.label("all")
        f.branch_if(self.fresh, fresh, more)
        for label, adds in ((fresh, False), (more, True)):
            f.block(label)
            for value, place in placed:
                f.store(f.fadd(f.load(value.type, place), value) if adds else value, place)
            f.branch(done)
        f.block(done)

    def _store_edge(self, sums: list[IRValue]) -> None:
        """Store the rows and columns that there are."""
        f, shape = self.f, self.shape
        counts = [self._lanes_left(self.columns, v) for v in range(self.vectors)]
        for i in range(shape.rows):
            with f.when(f.icmp("sgt", self.rows, i)):
                line = self._at(self.out, f.mul(self.down, i))
                for v, count in enumerate(counts):
                    place = f.gep_beyond(line, v * shape.lanes, shape.element)
                    self._store_some(sums[i * self.vectors + v], place, count)

    def _lanes_left(self, columns: IRValue, v: int) -> IRValue:
        f, lanes = self.f, self.shape.lanes
        return f.maximum(f.minimum(f.sub(columns, v * lanes), lanes), 0)

    def _store_some(self, value: IRValue, place: IRValue, count: IRValue) -> None:
        f = self.f
        before = f.load(value.type, place, count=count)
        f.store(f.select(self.fresh, value, f.fadd(before, value)), place, count=count)


class _FillingTile(_Tile):
    """Reads lines of y, whose columns lie side by side, and packs the panel on the way."""

    def __init__(self, f: FunctionText, shape: Shape, vectors: int) -> None:
        super().__init__(f, shape, vectors)
        self.source, self.line = f.parameters[8:]

    def _places(self) -> list[tuple[IRValue, IRValue | int]]:
        (x, down), panel = super()._places()
        return [(x, down), panel, (self.source, self.line)]

    def _line(self, places: Sequence[IRValue]) -> list[IRValue]:
        f, shape = self.f, self.shape
        _, panel, source = places
        found = []
        for at in range(0, shape.columns, shape.lanes):
            f.prefetch(f.gep_beyond(source, shape.columns + at, shape.element))  # the next panel's
            found.append(f.load(self.vector, self._at(source, at)))
            f.store(found[-1], self._at(panel, at), aligned=True)
        return found


class _TurnedTile(_Tile):
    """Reads rows of x as they lie, their elements side by side, and stores columns as rows.

    To store takes longer than in other tiles, so it adds up several blocks first, each by itself.
    """

    def __init__(self, f: FunctionText, shape: Shape, vectors: int) -> None:
        super().__init__(f, shape, vectors)
        self.row, self.block = f.parameters[8:]  # from a row of x to the next; depth of a block
        last = f.sub(self.rows, 1)
        numbers = [f.minimum(f.constant("i64", i), last) for i in range(shape.rows)]
        self.starts = [self._at(self.x, f.mul(i, self.row)) for i in numbers]

    def _places(self) -> list[tuple[IRValue, IRValue | int]]:
        return super()._places()[1:]

    def _sums(self) -> list[IRValue]:
        f = self.f
        state = [self.panel, *[f.constant(self.vector, 0)] * (self.shape.rows * self.vectors)]
        with f.loop(0, self.depth, self.block, carry=state) as begin:
            panel, *totals = begin.carried
            end = f.minimum(f.add(begin, self.block), self.depth)
            places, sums = self._block_sums(begin, end, [panel])
            begin.next(*places, *[f.fadd(a, b) for a, b in zip(totals, sums, strict=True)])
        return list(begin.results[1:])

    def _begin_step(self, k: IRValue) -> None:
        """Ask for the rows of the next tile: in turn, so that each is asked for in every line."""
        f, shape = self.f, self.shape
        steps = CACHE_LINE // shape.itemsize // UNROLL  # in which all rows have their turn
        several = -(-shape.rows // steps)
        turn = f.mul(f.and_(f.lshr(k, UNROLL.bit_length() - 1), steps - 1), several)
        for i in range(several):
            number = f.add(turn, shape.rows + i)
            row = f.gep_beyond(self.x, f.mul(number, self.row), shape.element)
            f.prefetch(f.gep_beyond(row, k, shape.element))

    def _factors(self, k: IRValue, u: int, places: Sequence[IRValue]) -> list[IRValue]:
        f, shape = self.f, self.shape
        return [f.load(shape.element, self._at(self._at(row, k), u)) for row in self.starts]

    def _ask_for_result(self) -> None:
        """Ask for nothing: a tile has a few elements of many lines."""

    def _store_whole(self, sums: list[IRValue]) -> None:
        f = self.f
        self._store_all(
            [
                (value, self._at(self._at(self.out, f.mul(self.down, column)), row))
                for row, column, value in self._turned(sums)
            ]
        )

    def _store_edge(self, sums: list[IRValue]) -> None:
        f, shape = self.f, self.shape
        for row, column, value in self._turned(sums):
            with f.when(f.icmp("sgt", self.columns, column)):
                place = self._at(self.out, f.mul(self.down, column))
                left = f.maximum(f.minimum(f.sub(self.rows, row), lanes_of(value.type)), 0)
                self._store_some(value, f.gep_beyond(place, row, shape.element), left)

    def _turned(self, sums: list[IRValue]) -> list[tuple[int, int, IRValue]]:
        """Return pieces of columns: the row that each begins with, its column, its elements."""
        f, shape = self.f, self.shape
        square, found = square_of(shape, shape.rows), []
        for v in range(self.vectors):
            rows = sums[v :: self.vectors]
            for at in range(0, shape.rows, square):
                some = rows[at : at + square]
                for lane in range(0, shape.lanes, square):
                    parts = [f.shuffle(x, x, range(lane, lane + square)) for x in some]
                    columns = transposed(f, parts + parts[-1:] * (square - len(parts)))
                    if len(some) < square:
                        columns = [f.shuffle(x, x, range(len(some))) for x in columns]
                    found += [(at, v * shape.lanes + lane + j, x) for j, x in enumerate(columns)]
        return found
