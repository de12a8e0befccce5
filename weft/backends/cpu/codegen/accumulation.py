"""Write passes over rows that reduce them: sums, maxima and the like, in several accumulators.

A chain of additions waits for each of them; chains that do not depend on one another fill the time.
They are those of several vectors of a row, or those of two rows: these also wait together for what
a row does once, when all its elements are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....core.dim import Dim
from ....core.scalar.builder import Expr
from ....core.shape import Size
from .elements import ElementWriter
from .lines import Operand
from .scalars import combine, identity_of, write_number
from .values import IRValue, bytes_of, element_of

BLOCK = 4096  # elements summed into one partial sum, so that rounding errors do not add up
CHAINS = 4  # vectors at a time, each with accumulators of its own


class Accumulation:
    """Writes one pass, for all lines of its writer; leaves the results among their values."""

    def __init__(self, writer: ElementWriter, phase: int, reductions: list[Expr]) -> None:
        self.writer = writer
        self.f = writer.f
        self.columns = writer.kernel.columns
        self.phase = phase
        self.reductions = reductions
        # Values of a row at a time: sums are the same however they are divided among vectors.
        self.values = max(1, CHAINS // writer.vectors)
        self.exprs = [e for _ in range(len(writer.lines) * self.values) for e in reductions]

    @property
    def lanes(self) -> int:
        """How many elements are treated at once."""
        return self.writer.lanes

    def write(self) -> None:
        """Write the pass."""
        step = self.lanes * self.values
        whole = self.columns // step * step
        in_blocks = self._in_any_blocks if isinstance(whole, Dim) else self._in_blocks
        sums = in_blocks(whole, [self._identity(e) for e in self.exprs])
        size = self.values * len(self.reductions)
        for n, line in enumerate(self.writer.each_line()):
            totals = self._finish(self._joined(sums[n * size : (n + 1) * size]), whole)
            line.rows |= {id(e): v for e, v in zip(self.reductions, totals, strict=True)}

    def _finish(self, sums: list[IRValue], whole: Size) -> list[IRValue]:
        """Return the totals of a row: of the accumulators, and of the elements that remain."""
        if isinstance(whole, Dim):
            return self._finish_any(sums, whole)
        with self.writer.narrowed(self.columns - whole):
            sums = [self._across_lanes(e, v, self.lanes) for e, v in self._each(sums)]
            begin, sums = self._whole_vectors(whole, sums)
            if begin < self.columns:
                rest = self.columns - begin
                sums = self._turn(self.f.constant("i64", begin), rest, sums)
        return [self._across_lanes(e, v, 1) for e, v in self._each(sums)]

    def _finish_any(self, sums: list[IRValue], whole: Dim) -> list[IRValue]:
        """Return the totals of a row whose length only a run knows, added in the same order."""
        f, register, rest = self.f, self.writer.register, self.columns - whole
        if register == 1:
            return self._finish_by(1, sums, whole)
        # Between one and two registers, `rest - register - 1` is not negative and small.
        beyond = f.size(rest - register - 1)
        wide, narrow, done = f.label("two"), f.label("one"), f.label("row")
        f.branch_if(f.icmp("ult", beyond, register - 1), wide, narrow)
        ends = []
        for label, lanes in ((wide, 2 * register), (narrow, register)):
            f.block(label)
            totals = self._finish_by(lanes, sums, whole)
            ends.append((totals, f.current))
            f.branch(done)
        f.block(done)
        (a, from_a), (b, from_b) = ends
        return [f.phi(x.type, (x, from_a), (y, from_b)) for x, y in zip(a, b, strict=True)]

    def _finish_by(self, lanes: int, sums: list[IRValue], whole: Dim) -> list[IRValue]:
        """Return the totals of a row, what remains being taken so many lanes at a time."""
        writer, before = self.writer, self.writer.lanes
        writer.lanes = lanes
        sums = [self._across_lanes(e, v, lanes) for e, v in self._each(sums)]
        end = whole + (self.columns - whole) // lanes * lanes
        with self.f.loop(whole, end, lanes, carry=sums) as i:
            i.next(*self._turn(i, None, list(i.carried)))
        with self.f.loop(end, self.columns, lanes, carry=list(i.results)) as i:
            i.next(*self._turn(i, self.columns - end, list(i.carried)))
        sums = [self._across_lanes(e, v, 1) for e, v in self._each(list(i.results))]
        writer.lanes = before
        return sums

    def _each(self, sums: list[IRValue]) -> Iterator[tuple[Expr, IRValue]]:
        return zip(self.reductions, sums, strict=True)

    def _whole_vectors(self, begin: int, sums: list[IRValue]) -> tuple[int, list[IRValue]]:
        """Take the vectors that are left of a row into accumulators; return where they end."""
        end = begin + (self.columns - begin) // self.lanes * self.lanes
        if begin < end:
            with self.f.loop(begin, end, self.lanes, carry=sums) as i:
                i.next(*self._turn(i, None, list(i.carried)))
            sums = list(i.results)
        return end, sums

    def _across_lanes(self, expr: Expr, value: IRValue, lanes: int) -> IRValue:
        return self.f.reduce(
            value, lambda a, b: combine(self.f, expr.data, expr.dtype, a, b), lanes
        )

    def _identity(self, expr: Expr) -> IRValue:
        return write_number(self.f, expr.dtype, identity_of(expr.data, expr.dtype), self.lanes)

    def _in_blocks(self, whole: int, start: list[IRValue]) -> list[IRValue]:
        if whole <= BLOCK:
            return self._accumulate(0, whole, start)
        f, full = self.f, whole // BLOCK * BLOCK
        with f.loop(0, full, BLOCK, carry=start) as block:
            partial = self._accumulate(block, f.add(block, BLOCK), start)
            block.next(*self._combined(self.exprs, block.carried, partial))
        if full == whole:
            return list(block.results)
        return self._combined(self.exprs, block.results, self._accumulate(full, whole, start))

    def _in_any_blocks(self, whole: Dim, start: list[IRValue]) -> list[IRValue]:
        """Accumulate in blocks, none or many; to combine with what changes nothing is the same."""
        f, full = self.f, whole // BLOCK * BLOCK
        with f.loop(0, full, BLOCK, carry=start) as block:
            partial = self._accumulate(block, f.add(block, BLOCK), start)
            block.next(*self._combined(self.exprs, block.carried, partial))
        return self._combined(self.exprs, block.results, self._accumulate(full, whole, start))

    def _accumulate(self, start: Operand, stop: Operand, carry: list[IRValue]) -> list[IRValue]:
        if start == stop:
            return carry
        with self.f.loop(start, stop, self.lanes * self.values, carry=carry) as i:
            before, after = list(i.carried), list[IRValue]()
            for _ in self.writer.each_line():
                for k in range(self.values):
                    at = i if k == 0 else self.f.add(i, k * self.lanes)
                    mine = before[len(after) : len(after) + len(self.reductions)]
                    after += self._turn(at, None, mine)
            i.next(*after)
        return list(i.results)

    def _turn(self, i: IRValue, rest: Size | None, sums: list[IRValue]) -> list[IRValue]:
        """Take one vector of elements of the current row into its accumulators."""
        f, writer = self.f, self.writer
        count = None if rest is None else f.constant("i64", rest)
        env = writer.elements(self.phase, i, count)
        result = []
        for expr, total in zip(self.reductions, sums, strict=True):
            value = writer.value(expr.args[0], self.phase, i, count, env)
            if rest is not None and self.lanes > 1:
                mask = f.first_lanes(rest, self.lanes, 8 * bytes_of(element_of(expr.dtype)))
                value = f.select(mask, value, self._identity(expr))
            result.append(combine(f, expr.data, expr.dtype, total, value))
        return result

    def _joined(self, sums: list[IRValue]) -> list[IRValue]:
        """Return the accumulators of a row's vectors as one for each reduction."""
        while len(sums) > len(self.reductions):
            half = len(sums) // 2
            exprs = self.exprs[:half]
            sums = self._combined(exprs, sums[:half], sums[half:])
        return sums

    def _combined(
        self, exprs: list[Expr], a: Sequence[IRValue], b: Sequence[IRValue]
    ) -> list[IRValue]:
        return [combine(self.f, e.data, e.dtype, x, y) for e, x, y in zip(exprs, a, b, strict=True)]
