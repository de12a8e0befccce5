"""Write reductions over leading loops, recurrences along one, and values for computed places.

In all of them a work item has some elements of the innermost loop, for one turn of the loops that
are apart, and takes the turns of the other loops in their order. On processors it keeps a value for
each of its elements in an array; elsewhere a work item has one element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...core.scalar.builder import Expr, postorder
from ...core.shape import size_of
from ...lower.kernels import ColumnKernel, Operand, ScanKernel, ScatterKernel
from ..cpu.codegen.values import IRValue, element_of
from .dialect import Dialect
from .elements import Known, LoopPlace, linear, write_counters
from .function import CFunction
from .launch import Launch, LaunchText
from .scalars import c_type, combined, neutral, stored_type, write_scalar

WIDTH = 64  # elements that a work item of a processor has
LONG_SUM = 256  # turns that are added up before their sum is added to that of others


class _Columns:
    """What a work item of these kernels has: counters of loops, and elements of the innermost."""

    def __init__(
        self, kind: str, loops: Sequence[int], operands: Sequence[Operand], dialect: Dialect
    ) -> None:
        self.loops = loops
        self.operands = operands
        self.dialect = dialect
        self.text = LaunchText(kind, dialect)
        self.f = self.text.f
        self.pointers = [self.text.take(operand.view) for operand in operands]
        self.columns = loops[-1]
        self.width = min(WIDTH, self.columns) if dialect.serial else 1
        self.counters: dict[int, str] = {len(loops) - 1: "c"}

    def begin(self, apart: Sequence[int]) -> int:
        """Write the counters of the loops that are apart; return how many work items there are."""
        sizes = [self.loops[axis] for axis in apart]
        strips = -(-self.columns // self.width)
        total = size_of(sizes) * strips
        item = "GROUP(0)" if self.dialect.serial else "THREAD"
        if not self.dialect.serial:
            self.f.write(f"if (THREAD >= {total}) return;")
        self.f.write(f"const i64 turn = {item} / {strips};")
        self.f.write(f"const i64 start = {item} % {strips} * {self.width};")
        if self.dialect.serial:
            end = f"start + {self.width} < {self.columns} ? {self.width} : {self.columns} - start"
            self.f.write(f"const i64 width = {end};")
        names = write_counters(self.f, "turn", sizes)
        self.counters |= dict(zip(apart, names, strict=True))
        return total

    @contextmanager
    def elements(self, *, apart: bool = True) -> Iterator[None]:
        """Write a loop over the elements of a work item: `l` is its number, `c` its place."""
        if not self.dialect.serial:
            with self.f.block(""):
                self.f.write("const i64 c = start;")
                yield
            return
        turns = self.width if apart else 0
        with self.f.vectors("APART", turns, "for (i64 l = 0; l < width; ++l)"):
            self.f.write("const i64 c = start + l;")
            yield

    @contextmanager
    def turns(self, axes: Sequence[int]) -> Iterator[None]:
        """Write loops whose turns come in their order."""
        if not axes:
            yield
            return
        axis, *others = axes
        self.counters[axis] = name = self.f.name("i")
        with (
            self.f.block(f"for (i64 {name} = 0; {name} < {self.loops[axis]}; ++{name})"),
            self.turns(others),
        ):
            yield

    def place(self, iotas: Sequence[Sequence[int]] = ()) -> LoopPlace:
        """Return the place at which the loops stand."""
        counters = [self.counters.get(axis, "0") for axis in range(len(self.loops))]
        return LoopPlace(self.f, self.operands, self.pointers, iotas, counters)

    def array(self, dtype: object, start: IRValue) -> str:
        """Write a value for each element of a work item; return how it is spelled."""
        name = self.f.name("s")
        kind = c_type(dtype)
        if not self.dialect.serial:
            self.f.write(f"{kind} {name} = {start};")
            return name
        self.f.write(f"{kind} {name}[{self.width}];")
        self.f.write(f"for (i32 l = 0; l < {self.width}; ++l) {name}[l] = {start};")
        return f"{name}[l]"

    def finished(self, total: int) -> Launch:
        """Return the function, run by so many work items."""
        if self.dialect.serial:
            return self.text.finished((total,))
        items = self.dialect.group
        return self.text.finished((-(-total // items),), items)


# -- reductions ------------------------------------------------------------------------------------


def write_columns(kernel: ColumnKernel, dialect: Dialect) -> list[Launch]:
    """Return the launch of a reduction over leading loops."""
    kept = [axis for axis, reduced in enumerate(kernel.reduced) if not reduced]
    if 0 in (kernel.loops[axis] for axis in kept):
        return []
    writer = _Columns("column", kernel.loops, kernel.operands, dialect)
    total = writer.begin(kept[:-1])
    reduced = [axis for axis in range(len(kernel.loops)) if axis not in kept]
    value, dtype = kernel.output.value, kernel.output.value.dtype
    sums = writer.array(dtype, neutral(writer.f, kernel.way, dtype))
    turns = size_of(kernel.loops[axis] for axis in reduced)
    if kernel.way == "sum" and dtype.kind == "f" and turns > LONG_SUM:
        _in_blocks(writer, kernel, reduced, sums)
    else:
        with writer.turns(reduced):
            _accumulate(writer, kernel, sums)
    with writer.elements():
        _finish(writer, kernel, IRValue(sums, element_of(dtype)), value)
    return [writer.finished(total)]


def _in_blocks(writer: _Columns, kernel: ColumnKernel, reduced: list[int], sums: str) -> None:
    """Write a long sum as one of sums, so that errors do not add up."""
    f, dtype = writer.f, kernel.output.value.dtype
    turns = size_of(kernel.loops[axis] for axis in reduced)
    with f.block(f"for (i64 from = 0; from < {turns}; from += {LONG_SUM})"):
        block = writer.array(dtype, neutral(f, "sum", dtype))
        f.write(f"const i64 to = from + {LONG_SUM} < {turns} ? from + {LONG_SUM} : {turns};")
        with f.block("for (i64 turn_ = from; turn_ < to; ++turn_)"):
            names = write_counters(f, "turn_", [kernel.loops[axis] for axis in reduced])
            writer.counters |= dict(zip(reduced, names, strict=True))
            _accumulate(writer, kernel, block)
        with writer.elements():
            f.write(f"{sums} += {block};")


def _accumulate(writer: _Columns, kernel: ColumnKernel, sums: str) -> None:
    value = kernel.output.value
    with writer.elements():
        values = writer.place().write(postorder([value]), {})
        before = IRValue(sums, element_of(value.dtype))
        total = combined(writer.f, kernel.way, value.dtype, before, values[id(value)])
        writer.f.write(f"{sums} = {total};")


def _finish(writer: _Columns, kernel: ColumnKernel, total: IRValue, value: Expr) -> None:
    """Write the result of an element, or what follows from it."""
    result = total
    if kernel.finish is not None:
        order = postorder([kernel.finish])
        known: Known = {id(e): total for e in order if e.kind == "reduce"}
        needed = _without_reductions(kernel.finish)
        for expr in needed:
            known[id(expr)] = write_scalar(writer.f, expr, [known[id(a)] for a in expr.args])
        result = known[id(kernel.finish)]
    for axis, reduced in enumerate(kernel.reduced):
        if reduced:
            writer.counters[axis] = "0"
    writer.place().store(kernel.output.operand, result)


def _without_reductions(root: Expr) -> list[Expr]:
    """Return what an expression is computed from, without what its reduction is of."""
    inside = {id(e) for e in postorder([root]) if e.kind == "reduce"}
    hidden: set[int] = set()
    for expr in postorder([root]):
        if expr.kind == "reduce":
            hidden |= {id(e) for e in postorder([expr])}
    reached: dict[int, Expr] = {}
    stack = [root]
    while stack:
        expr = stack.pop()
        if id(expr) not in reached and id(expr) not in inside:
            reached[id(expr)] = expr
            stack.extend(expr.args)
    return [e for e in postorder([root]) if id(e) in reached]


# -- recurrences -----------------------------------------------------------------------------------


def write_scan(kernel: ScanKernel, dialect: Dialect) -> list[Launch]:
    """Return the launch of a recurrence along the first loop."""
    if 0 in kernel.loops:
        return []
    writer = _Columns("scan", kernel.loops, kernel.operands, dialect)
    total = writer.begin(range(1, len(kernel.loops) - 1))
    starts = [write_scalar(writer.f, first, []) for first, _ in kernel.carried]
    pairs = zip(kernel.carried, starts, strict=True)
    carried = [writer.array(first.dtype, start) for (first, _), start in pairs]
    with writer.turns([0]), writer.elements():
        _step(writer, kernel, carried)
    return [writer.finished(total)]


def _step(writer: _Columns, kernel: ScanKernel, carried: Sequence[str]) -> None:
    """Write what a step computes, stores and carries on."""
    f, order = writer.f, postorder(kernel.roots)
    known: Known = {}
    for expr in order:
        if expr.kind == "carry":
            known[id(expr)] = f.define(element_of(expr.dtype), carried[expr.data])
        elif expr.kind == "step":
            known[id(expr)] = f.define("i64", f"(u64){writer.counters[0]}")
    place = writer.place()
    values = place.write(order, known)
    place.store(len(kernel.operands) - 1, values[id(kernel.value)])
    for name, (_, after) in zip(carried, kernel.carried, strict=True):
        f.write(f"{name} = {values[id(after)]};")


# -- values that go to computed places -------------------------------------------------------------


def write_scatter(kernel: ScatterKernel, dialect: Dialect) -> list[Launch]:
    """Return the launch of a scatter: turns that may meet come in their order, in one work item."""
    if 0 in kernel.loops:
        return []
    writer = _Columns("scatter", kernel.loops, kernel.operands, dialect)
    last = len(kernel.loops) - 1
    total = writer.begin(range(kernel.apart))
    with writer.turns(range(kernel.apart, last)), writer.elements(apart=False):
        place = writer.place(kernel.iotas)
        values = place.write(postorder(kernel.roots), {})
        _put(writer.f, place, kernel, values[id(kernel.offset)], values[id(kernel.value)])
    return [writer.finished(total)]


def _put(
    f: CFunction, place: LoopPlace, kernel: ScatterKernel, offset: IRValue, value: IRValue
) -> None:
    target = len(kernel.operands) - 1
    dtype = kernel.operands[target].view.dtype
    at = f.name("at")
    here = linear(kernel.operands[target].strides, place.counters)
    f.write(f"const i64 {at} = {here} + (i64){offset};")
    element = f"{place.pointers[target]}[{at}]"
    if kernel.way != "set":
        value = combined(f, kernel.way, dtype, place.loaded(dtype, element), value)
    f.write(f"{element} = ({stored_type(dtype)}){value};")
