"""Write tiles of dot products, for thin products of matrices that lie along the inner dimension.

    void dots(ptr x, ptr y, ptr out, ptr bias, i64 rows)

computes tiles of rows x columns dot products, one below the other; the last one begins higher if
the rows are no multiple of the tile's, and repeats some of them. Nothing is packed: both
operands are read by vectors, no wider than the inner dimension needs, and each sum is spread over
the lanes of one until the end. Then the lanes of several are added together.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from .....core.dim import Dim, is_known
from .....core.shape import Size
from ..lane_sums import lane_sums
from ..text import FunctionText, ModuleText
from ..values import IRValue, vector_of
from .pack import INTERNAL, pieces

PARAMETERS = [*["ptr noalias"] * 4, "i64"]
UNROLL = 2
BUSY = 8  # sums that keep the multipliers busy: their number times their latency


@dataclass(frozen=True)
class DotTile:
    """What a function of dot products is made for; strides in elements, from line to line.

    bias_row, bias_column   strides of the bias; None if there is none
    single                  whether there is only one sum, which is divided so that it need not
                            wait for itself; how others are added follows from the depth alone
    """

    element: str
    lanes: int
    rows: int
    columns: int
    depth: Size
    x_line: Size
    y_line: Size
    out_down: Size
    out_across: Size
    bias_row: Size | None
    bias_column: Size | None
    single: bool = False

    @property
    def vector(self) -> str:
        """Return the type of a vector of elements."""
        return vector_of(self.element, self.lanes)

    @property
    def has_bias(self) -> bool:
        """Tell whether something is added to the sums."""
        return self.bias_row is not None and self.bias_column is not None

    def places(self) -> list[DotPlace]:
        """Return where each sum goes."""
        bias_row, bias_column = self.bias_row or 0, self.bias_column or 0
        return [
            DotPlace(
                i * self.out_down + j * self.out_across,
                i * bias_row + j * bias_column,
                i * self.columns + j,
            )
            for i in range(self.rows)
            for j in range(self.columns)
        ]


class DotPlace(NamedTuple):
    """Where a sum is stored, and where its bias lies; in elements from those of the first."""

    out: int
    bias: int
    number: int


def write_dots(module: ModuleText, name: str, tile: DotTile) -> None:
    """Add a function of dot products to a module."""
    _DotWriter(module.function(name, PARAMETERS, INTERNAL), tile).write()


class _DotWriter:
    def __init__(self, f: FunctionText, tile: DotTile) -> None:
        self.f = f
        self.tile = tile

    def write(self) -> None:
        f, tile = self.f, self.tile
        x, y, out, bias, rows = f.parameters
        with f.loop(0, rows, tile.rows) as row:
            start = f.minimum(row, f.sub(rows, tile.rows))
            sums = self._sums(self._at(x, f.mul(start, tile.x_line)), y)
            here = self._at(bias, f.mul(start, tile.bias_row or 0))
            self._store(sums, self._at(out, f.mul(start, tile.out_down)), here)
        f.ret()

    def _at(self, place: IRValue, index: IRValue | int) -> IRValue:
        return place if index == 0 else self.f.gep(place, index, self.tile.element)

    def _sums(self, x: IRValue, y: IRValue) -> list[IRValue]:
        f, tile = self.f, self.tile
        size = tile.rows * tile.columns
        chains = BUSY if tile.single else 1
        turns = max(chains, UNROLL)
        sums = [f.constant(tile.vector, 0)] * size
        step = turns * tile.lanes
        unrolled = tile.depth // step * step
        if isinstance(unrolled, Dim) or unrolled:
            with f.loop(0, unrolled, step, carry=sums * chains) as k:
                groups = [list(k.carried[c * size : (c + 1) * size]) for c in range(chains)]
                for u in range(turns):
                    at = f.add(k, u * tile.lanes)
                    group = groups[u % chains]
                    group[:] = self._step(self._at(x, at), self._at(y, at), group, None)
                k.next(*(value for group in groups for value in group))
            sums = self._joined(list(k.results), size)
        if isinstance(unrolled, Dim):
            return self._rest_of_any(x, y, unrolled, sums)
        for start in range(unrolled, tile.depth, tile.lanes):
            left = tile.depth - start
            count = None if left >= tile.lanes else f.constant("i64", left)
            sums = self._step(self._at(x, start), self._at(y, start), sums, count)
        return sums

    def _rest_of_any(
        self, x: IRValue, y: IRValue, unrolled: Dim, sums: list[IRValue]
    ) -> list[IRValue]:
        """Take what is left of an inner dimension that only a run knows, in the same order."""
        f, tile = self.f, self.tile
        end = tile.depth // tile.lanes * tile.lanes
        with f.loop(unrolled, end, tile.lanes, carry=sums) as k:
            k.next(*self._step(self._at(x, k), self._at(y, k), list(k.carried), None))
        with f.loop(end, tile.depth, tile.lanes, carry=list(k.results)) as k:
            count = f.size(tile.depth - end)
            k.next(*self._step(self._at(x, k), self._at(y, k), list(k.carried), count))
        return list(k.results)

    def _joined(self, sums: list[IRValue], size: int) -> list[IRValue]:
        """Return the sums of several chains as one, by pairs."""
        groups = [sums[i : i + size] for i in range(0, len(sums), size)]
        while len(groups) > 1:
            half = len(groups) // 2
            pairs = zip(groups[:half], groups[half : 2 * half], strict=True)
            added = [[self.f.fadd(a, b) for a, b in zip(*pair, strict=True)] for pair in pairs]
            groups = added + groups[2 * half :]
        return groups[0]

    def _step(
        self, x: IRValue, y: IRValue, sums: list[IRValue], count: IRValue | None
    ) -> list[IRValue]:
        """Multiply lines pairwise; the fewer lines are held, the others read one by one."""
        f, tile = self.f, self.tile
        result = list(sums)

        def line(place: IRValue, index: int, stride: int) -> IRValue:
            return f.load(tile.vector, self._at(place, index * stride), count=count)

        if tile.rows <= tile.columns:
            held = [line(x, i, tile.x_line) for i in range(tile.rows)]
            for j in range(tile.columns):
                other = line(y, j, tile.y_line)
                for i in range(tile.rows):
                    number = i * tile.columns + j
                    result[number] = f.multiply_add(held[i], other, sums[number])
            return result
        held = [line(y, j, tile.y_line) for j in range(tile.columns)]
        for i in range(tile.rows):
            other = line(x, i, tile.x_line)
            for j in range(tile.columns):
                number = i * tile.columns + j
                result[number] = f.multiply_add(held[j], other, sums[number])
        return result

    def _store(self, sums: list[IRValue], out: IRValue, bias: IRValue) -> None:
        """Store the sums in the order in which they lie in memory, by vectors where they can be."""
        f, tile = self.f, self.tile
        places = self._in_memory_order()
        vectors = lane_sums(f, [sums[place.number] for place in places])
        for at, count in runs(places, tile.lanes):
            vector, first = vectors[at // tile.lanes], at % tile.lanes
            total = f.extract(vector, first)
            if count > 1:
                total = f.shuffle(vector, vector, range(first, first + count))
            if tile.has_bias:
                total = f.fadd(total, self._bias(bias, places[at : at + count]))
            f.store(total, self._at(out, places[at].out))

    def _in_memory_order(self) -> list[DotPlace]:
        """Return the sums in the order in which they lie in memory, at least along rows there."""
        tile = self.tile
        if is_known((tile.out_down, tile.out_across, tile.bias_row or 0, tile.bias_column or 0)):
            return sorted(tile.places())
        across = tile.out_across == 1 or tile.out_down != 1
        by_row, rows = tile.places(), range(tile.rows)
        if across:
            return by_row
        return [by_row[i * tile.columns + j] for j in range(tile.columns) for i in rows]

    def _bias(self, bias: IRValue, places: list[DotPlace]) -> IRValue:
        """Return the bias of a run."""
        f, element, count = self.f, self.tile.element, len(places)
        start = self._at(bias, places[0].bias)
        if places[-1].bias != places[0].bias:
            return f.load(vector_of(element, count), start)
        return f.splat(f.load(element, start), count)


def runs(places: list[DotPlace], lanes: int) -> list[tuple[int, int]]:
    """Return (start, count) of sums that are stored at once; none is part of two vectors.

    They lie one behind another, and so does their bias, or it is the same.
    """
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(places):
        rest = places[at : at - at % lanes + lanes]
        count = max(_evenly(rest, step) for step in (0, 1))
        found += [(at + i, size) for i, size in pieces(count, lanes)]
        at += count
    return found


def _evenly(places: list[DotPlace], bias_step: int) -> int:
    """Return how many of the first places lie one behind another, their bias so far apart."""
    first = places[0]
    wanted = ((first.out + i, first.bias + i * bias_step) for i in range(len(places)))
    pairs = zip(places, wanted, strict=True)
    return sum(1 for _ in takewhile(lambda pair: pair[0][:2] == pair[1], pairs))
