"""Write the values that depend on where a kernel's loops stand.

iota      a number that is linear in the loops' counters
load_at   an element of an operand behind, or before, the one at the loops' place
checked   an index held within its axis; one outside is reported
random    bits of a draw at a place (see random_lanes.py)
"""

from __future__ import annotations

from typing import Protocol

from ....core.dim import Dim
from ....core.scalar.builder import Expr
from ....core.shape import Size
from ....lower.kernels import RowKernel, ScatterKernel
from .random_lanes import write_random
from .scalars import broadcast_to_lanes, type_of
from .strided import load_strided
from .text import FunctionText
from .values import IRValue, bytes_of, element_of, lanes_of, vector_of


class Stand(Protocol):
    """The writer of a kernel, at one row of it."""

    f: FunctionText
    lanes: int
    pointers: list[IRValue]

    @property
    def bases(self) -> list[IRValue]:
        """Return where the operands of the row lie."""

    @property
    def iota_bases(self) -> list[IRValue]:
        """Return what numbers that follow from the loops' counters begin with."""

    @property
    def kernel(self) -> RowKernel | ScatterKernel:
        """Return the kernel."""


class Turn:
    """Where the writing of a kernel stands: at a vector of elements, or at a value per row.

    i       the place in the row of the first element; None for a value per row
    count   the elements that remain, if they do not fill the vector
    args    the values that the expression is computed from, scalars where they are per row
    """

    def __init__(
        self, writer: Stand, i: IRValue | None, count: IRValue | None, args: list[IRValue]
    ) -> None:
        self.writer = writer
        self.i = i
        self.lanes = 1 if i is None else writer.lanes
        self.count = count if self.lanes > 1 else None
        self.args = args

    @property
    def f(self) -> FunctionText:
        """Return the function that is written."""
        return self.writer.f

    def spread(self, x: IRValue) -> IRValue:
        """Return a value in all lanes."""
        return broadcast_to_lanes(self.f, x, self.lanes)

    def live(self, mask: IRValue, bits: int = 32) -> IRValue:
        """Return a mask without the lanes behind the end of the row."""
        if self.count is None:
            return mask
        return self.f.and_(mask, self.f.first_lanes(self.count, self.lanes, bits))


def write_placed(expr: Expr, turn: Turn) -> IRValue:
    """Return the value of an expression of one of the kinds above."""
    return _WRITERS[expr.kind](expr, turn)


def _iota(expr: Expr, turn: Turn) -> IRValue:
    f, i = turn.f, turn.i
    base = turn.writer.iota_bases[expr.data]
    stride = turn.writer.kernel.iotas[expr.data][-1]
    if i is None or not stride:
        return turn.spread(base)
    first = f.add(base, i if stride == 1 else f.mul(i, stride))
    if turn.lanes == 1:
        return first
    return f.add(f.splat(first, turn.lanes), _steps(f, stride, turn.lanes))


def _steps(f: FunctionText, stride: Size, lanes: int) -> IRValue:
    """Return the multiples of a stride, one for each lane."""
    type = vector_of("i64", lanes)
    if isinstance(stride, Dim):
        return f.mul(f.lane_numbers(type), stride)
    return f.constants(type, [stride * lane for lane in range(lanes)])


def _checked(expr: Expr, turn: Turn) -> IRValue:
    f = turn.f
    size, flag, wraps, ignored = expr.data
    (given,) = [turn.spread(x) for x in turn.args]
    place = f.select(f.icmp("slt", given, 0), f.add(given, size), given) if wraps else given
    wrong = f.icmp("uge", place, size)
    skipped = None if ignored is None else f.icmp("eq", given, ignored)
    if skipped is not None:
        wrong = f.and_(wrong, f.not_(skipped))
    if flag is not None:
        with f.when(f.any_lane(turn.live(wrong, 64))):
            f.store(f.constant("i64", 1), turn.writer.pointers[flag])
    held = f.select(wrong, 0, place)
    return held if skipped is None else f.select(skipped, -1, held)


def _load_at(expr: Expr, turn: Turn) -> IRValue:
    number, has_offset, has_guard = expr.data
    args = list(turn.args)
    offset = args.pop(0) if has_offset else turn.f.constant("i64", 0)
    guard = args.pop(0) if has_guard else None
    stride = turn.writer.kernel.operands[number].strides[-1]
    base = turn.writer.bases[number]
    if turn.lanes > 1 and stride not in (0, 1):
        if guard is None and turn.i is not None and lanes_of(offset.type) == 1:
            place = turn.f.gep(base, offset, element_of(expr.dtype))
            return load_strided(
                turn.f, type_of(expr, turn.lanes), place, turn.i, stride, turn.count
            )
        offset = turn.spread(offset)
    if lanes_of(offset.type) > 1:
        return _gathered(expr, turn, base, stride, offset, guard)
    place = turn.f.gep(base, offset, element_of(expr.dtype)) if has_offset else base
    if turn.i is not None and stride:
        step = turn.i if stride == 1 else turn.f.mul(turn.i, stride)
        place = turn.f.gep(place, step, element_of(expr.dtype))
    elif turn.lanes > 1:  # the same element for all, though the guard may vary
        return _guarded_splat(expr, turn, place, guard)
    if guard is None:
        return turn.f.load(type_of(expr, turn.lanes), place, count=turn.count)
    return _guarded(expr, turn, base, place, guard)


def _guarded(expr: Expr, turn: Turn, base: IRValue, place: IRValue, guard: IRValue) -> IRValue:
    """Return a load that does not touch memory where the guard is false, and gives zero there."""
    f, type = turn.f, type_of(expr, turn.lanes)
    if turn.lanes == 1:
        safe = f.alloca(element_of(expr.dtype) if expr.dtype.kind != "b" else "i8")
        found = f.load(type, f.select(guard, place, safe))
        return f.select(guard, found, f.constant(type, 0))
    mask = turn.live(turn.spread(guard), 8 * bytes_of(element_of(expr.dtype)))
    return f.load_where(type, place, mask)


def _guarded_splat(expr: Expr, turn: Turn, place: IRValue, guard: IRValue | None) -> IRValue:
    f, element = turn.f, element_of(expr.dtype)
    if guard is None:
        return turn.spread(f.load(element, place))
    safe = f.alloca(element if element != "i1" else "i8")
    some = f.any_lane(guard)
    found = turn.spread(f.load(element, f.select(some, place, safe)))
    return f.select(turn.spread(guard), found, f.constant(type_of(expr, turn.lanes), 0))


def _gathered(
    expr: Expr, turn: Turn, base: IRValue, stride: Size, offset: IRValue, guard: IRValue | None
) -> IRValue:
    """Return elements from a place for each lane, loaded one by one."""
    f, lanes, element = turn.f, turn.lanes, element_of(expr.dtype)
    if stride:
        assert turn.i is not None
        first = turn.i if stride == 1 else f.mul(turn.i, stride)
        offset = f.add(offset, f.add(f.splat(first, lanes), _steps(f, stride, lanes)))
    mask = None if guard is None else turn.spread(guard)
    if turn.count is not None:
        live = f.first_lanes(turn.count, lanes, 64)
        mask = live if mask is None else f.and_(mask, live)
    safe = None if mask is None else f.alloca("i8" if element == "i1" else element)
    stored = "i8" if element == "i1" else element
    result = f.constant(vector_of(stored, lanes), 0)
    for lane in range(lanes):
        place = f.gep(base, f.extract(offset, lane), element)
        if mask is not None and safe is not None:
            place = f.select(f.extract(mask, lane), place, safe)
        result = f.insert(result, f.load(stored, place), lane)
    if mask is not None:
        result = f.select(mask, result, f.constant(result.type, 0))
    return f.icmp("ne", result, 0) if element == "i1" else result


_WRITERS = {"iota": _iota, "checked": _checked, "load_at": _load_at, "random": write_random}
