"""Write loops over rows of elements, with reductions along them.

A row goes by phases: what is reduced of its elements, then what is reduced of those and of these
results, and last what is stored. Values that are the same for a whole row stand before its loops.

On processors a work item takes many rows, or a stretch of one; sums have several accumulators, by
which loops become vectors. Elsewhere a group of work items shares a row, and combines what each has
by a tree in local memory; rows of which nothing is reduced have a work item for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ...core.scalar.builder import Expr, postorder
from ...core.scalar.functions import FUNCTIONS, POLYNOMIAL
from ...lower.kernels import Output, RowKernel
from ..cpu.codegen.values import IRValue, element_of
from .accumulators import accumulator
from .dialect import Dialect
from .elements import Known, LoopPlace, placed_numbers, varying, write_counters
from .function import CFunction
from .launch import Launch, LaunchText
from .scalars import c_type, combined, neutral, stored_type

STRETCH = 1 << 14  # elements that a work item of a processor takes
BLOCK = 1 << 10  # elements of a row that a loop takes
MOST_KEPT = 1 << 12  # elements of a row of which a work item keeps what took long to compute
GROUP_ROWS = 1


def write_rows(kernel: RowKernel, dialect: Dialect) -> list[Launch]:
    """Return the launches of a row kernel: one, or none if there is nothing to do."""
    writer = _Rows(kernel, dialect)
    if kernel.rows == 0 or (kernel.columns == 0 and not writer.row_outputs):
        return []
    if dialect.serial:
        return [writer.serial()]
    if writer.is_map and kernel.columns:
        return [writer.flat()]
    return [writer.grouped()]


class _Rows:
    """One kernel."""

    def __init__(self, kernel: RowKernel, dialect: Dialect) -> None:
        self.kernel = kernel
        self.dialect = dialect
        self.order = postorder([output.value for output in kernel.outputs])
        self.varies = varying(self.order, kernel.operands, kernel.iotas)
        self.levels = _levels(self.order)
        self.reductions = [e for e in self.order if e.kind == "reduce"]
        along = [o for o in kernel.outputs if o.way or kernel.operands[o.operand].strides[-1]]
        self.element_outputs = along
        self.row_outputs = [o for o in kernel.outputs if o not in along]
        self.text = LaunchText("row", dialect)
        self.f = self.text.f
        self.pointers = [self.text.take(operand.view) for operand in kernel.operands]
        self.tree: list[str] = []  # names of local memory, by reduction
        self.kept: dict[int, str] = {}  # arrays of what the elements of a row had in earlier phases

    @property
    def overwrites(self) -> bool:
        """Tell whether something is stored where something is read: it cannot be done again."""
        read, written = placed_numbers(self.order)[0], {o.operand for o in self.kernel.outputs}
        views = self.kernel.views
        combined = any(output.way for output in self.kernel.outputs)
        return combined or not {views[i].buffer for i in read}.isdisjoint(
            views[i].buffer for i in written
        )

    @property
    def is_map(self) -> bool:
        """Tell whether every element is for itself."""
        return not self.reductions and not any(o.way for o in self.kernel.outputs)

    # -- who does what -----------------------------------------------------------------------------

    def serial(self) -> Launch:
        """Return the function of a work item that takes many rows, or a stretch of one."""
        kernel, f = self.kernel, self.f
        rows, columns = kernel.rows, kernel.columns
        each = (
            kernel.block
            if any(o.way for o in kernel.outputs)
            else max(1, STRETCH // max(1, columns))
        )
        stretch = columns
        if self.is_map and not self.row_outputs and columns > 2 * STRETCH:
            stretch = STRETCH
        f.write(f"const i64 first = GROUP(1) * {each};")
        f.write(f"const i64 last = first + {each} < {rows} ? first + {each} : {rows};")
        start, stop = "0", str(columns)
        if stretch < columns:
            start, stop = "start", "stop"
            f.write(f"const i64 start = GROUP(0) * {stretch};")
            f.write(
                f"const i64 stop = start + {stretch} < {columns} ? start + {stretch} : {columns};"
            )
        with f.block("for (i64 row = first; row < last; ++row)"):
            self._row("row", _Stretch(self, start, stop, stretch))
        groups = (-(-columns // stretch) if stretch else 1, -(-rows // each))
        return self.text.finished(groups)

    def flat(self) -> Launch:
        """Return the function of a work item that has one element."""
        kernel, f, items = self.kernel, self.f, self.dialect.group
        total = kernel.rows * kernel.columns
        f.write(f"if (THREAD >= {total}) return;")
        f.write(f"const i64 row = THREAD / {kernel.columns};")
        f.write(f"const i64 c = THREAD % {kernel.columns};")
        self._row("row", _Element(self))
        return self.text.finished((-(-total // items),), items)

    def grouped(self) -> Launch:
        """Return the function of a work item in a group that has a unit of rows."""
        kernel, f, items = self.kernel, self.f, self.dialect.group
        for number, reduction in enumerate(self.reductions):
            self.tree.append(f"tree{number}")
            f.write(f"LOCAL {c_type(reduction.dtype)} tree{number}[{items}];")
        block = kernel.block if any(o.way for o in kernel.outputs) else GROUP_ROWS
        f.write(f"const i64 first = GROUP(0) * {block};")
        f.write(
            f"const i64 last = first + {block} < {kernel.rows} ? first + {block} : {kernel.rows};"
        )
        with f.block("for (i64 row = first; row < last; ++row)"):
            self._row("row", _Shared(self))
        return self.text.finished((-(-kernel.rows // block),), items)

    # -- a row -------------------------------------------------------------------------------------

    def _row(self, row: str, team: _Team) -> None:
        """Write all phases of a row."""
        kernel = self.kernel
        counters = [*write_counters(self.f, row, kernel.loops[:-1]), "c"]
        place = LoopPlace(self.f, kernel.operands, self.pointers, kernel.iotas, counters)
        operands, iotas = placed_numbers(self.order)
        written = {o.operand for o in kernel.outputs if o.way is None}
        place.settle(sorted(operands | written), sorted(iotas))
        known: Known = {}
        for level in range(max(self.levels.values(), default=0) + 1):
            fixed = [e for e in self.order if self.levels[id(e)] <= level]
            known = place.write([e for e in fixed if id(e) not in self.varies], known)
            wanted = [e for e in self.reductions if self.levels[id(e)] == level + 1]
            if wanted:
                known |= team.reduce(place, wanted, known)
        if self.element_outputs:
            team.store(place, known)
        for output in self.row_outputs:
            team.once(lambda o=output: place.store(o.operand, known[id(o.value)]))  # type: ignore[misc]

    def values(self, place: LoopPlace, roots: Sequence[Expr], known: Known) -> Known:
        """Write what an element's expressions need that is not known for the row, nor kept."""
        needed = _reached(roots, {*known, *self.kept})
        values = dict(known)
        for expr in needed:
            if id(expr) in self.kept and id(expr) not in known:
                text = f"{self.kept[id(expr)]}[c]"
                values[id(expr)] = self.f.define(element_of(expr.dtype), text)
        return place.write(needed, values)

    def worth_keeping(self, wanted: Sequence[Expr]) -> list[Expr]:
        """Return what takes long, is computed for some reductions, and is needed later again."""
        if self.kernel.columns > MOST_KEPT:
            return []
        level = self.levels[id(wanted[0])]
        later = [e.args[0] for e in self.reductions if self.levels[id(e)] > level]
        later += [output.value for output in self.element_outputs]
        again = {id(e) for e in _reached(later, set())}
        now = _reached([e.args[0] for e in wanted], set(self.kept))
        return [e for e in now if id(e) in again and id(e) in self.varies and _takes_long(e)]

    def store_element(self, place: LoopPlace, known: Known) -> None:
        """Write what is stored of an element, after all of it is computed."""
        outputs = self.element_outputs
        values = self.values(place, [o.value for o in outputs], known)
        for output in outputs:
            value = values[id(output.value)]
            if output.way is None:
                place.store(output.operand, value)
            else:
                self._combine(place, output, value)

    def _combine(self, place: LoopPlace, output: Output, value: IRValue) -> None:
        """Combine an element with those above it in its unit: each has a row of results."""
        kernel, way = self.kernel, output.way
        assert way is not None
        dtype = output.value.dtype
        at = f"{self.pointers[output.operand]}[row / {kernel.block} * {kernel.columns} + c]"
        name = self.f.name("a")
        self.f.write(f"{c_type(dtype)} {name} = {value};")
        with self.f.block("if (row != first)"):
            before = place.loaded(dtype, at)
            self.f.write(f"{name} = {combined(self.f, way, dtype, before, value)};")
        self.f.write(f"{at} = ({stored_type(dtype)}){name};")


def _takes_long(expr: Expr) -> bool:
    record = FUNCTIONS.get(expr.kind)
    return record is not None and expr.dtype.kind == "f" and record.cost >= POLYNOMIAL


def _reached(roots: Sequence[Expr], known: set[int]) -> list[Expr]:
    """Return what expressions are computed from, arguments first, down to what is known.

    What a reduction is of is not needed any more once its result is there.
    """
    found: set[int] = set()
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if id(expr) not in found:
            found.add(id(expr))
            if id(expr) not in known and expr.kind != "reduce":
                stack.extend(expr.args)
    return [e for e in postorder(list(roots)) if id(e) in found]


def _levels(order: Sequence[Expr]) -> dict[int, int]:
    """Return after how many reductions, one of another, each expression is known."""
    levels: dict[int, int] = {}
    for expr in order:
        deepest = max((levels[id(arg)] for arg in expr.args), default=0)
        levels[id(expr)] = deepest + (expr.kind == "reduce")
    return levels


class _Team:
    """Who goes along a row: a work item, or a group of them."""

    def __init__(self, rows: _Rows) -> None:
        self.rows = rows
        self.f = rows.f

    def reduce(self, place: LoopPlace, wanted: Sequence[Expr], known: Known) -> Known:
        """Return the results of reductions of one phase."""
        raise NotImplementedError

    def store(self, place: LoopPlace, known: Known) -> None:
        """Write what is stored of elements."""
        raise NotImplementedError

    def once(self, write: Callable[[], None]) -> None:
        """Write what is done once for a row."""
        raise NotImplementedError


class _Stretch(_Team):
    """A work item of a processor that goes along a row, or a stretch of it, by itself.

    It goes by blocks. What formulas have for rare values would keep loops from being vectors: a
    first loop notes whether a block has such values, and if it does the block is done again.
    """

    def __init__(self, rows: _Rows, start: str, stop: str, length: int) -> None:
        super().__init__(rows)
        self.start, self.stop, self.length = start, stop, length

    def reduce(self, place: LoopPlace, wanted: Sequence[Expr], known: Known) -> Known:
        """Write reductions, of blocks and then of these, so that errors do not add up."""
        totals = [accumulator(self.f, expr) for expr in wanted]
        parts = [accumulator(self.f, expr) for expr in wanted]
        for total in totals:
            total.declare()

        kept = {id(expr): self._array(expr) for expr in self.rows.worth_keeping(wanted)}

        def write() -> None:
            values = self.rows.values(place, [e.args[0] for e in wanted], known)
            for number, array in kept.items():
                self.f.write(f"{array}[c] = {values[number]};")
            for part, expr in zip(parts, wanted, strict=True):
                part.add(values[id(expr.args[0])])

        with self._blocks():
            for part in parts:
                part.declare()
            self._twice("REDUCED", write, [part.reset for part in parts])
            for total, part in zip(totals, parts, strict=True):
                total.join(part)
        self.rows.kept |= kept
        return {id(e): total.result() for e, total in zip(wanted, totals, strict=True)}

    def _array(self, expr: Expr) -> str:
        """Write an array for what the elements of the row have of an expression."""
        name = self.f.name("kept")
        self.f.write(f"{c_type(expr.dtype)} {name}[{self.length}];")
        return name

    def store(self, place: LoopPlace, known: Known) -> None:
        """Write a loop over elements, none of which needs another's result."""
        again = not self.rows.overwrites
        with self._blocks():
            self._twice("APART", lambda: self.rows.store_element(place, known), [], again=again)

    def once(self, write: Callable[[], None]) -> None:
        """Write it: nobody else has this row."""
        write()

    @contextmanager
    def _blocks(self) -> Iterator[None]:
        """Write a loop over blocks, from `from` to `to`."""
        if self.length <= BLOCK:
            with self.f.block(""):
                self.f.write(f"const i64 from = {self.start}, to = {self.stop};")
                yield
            return
        with self.f.block(f"for (i64 from = {self.start}; from < {self.stop}; from += {BLOCK})"):
            end = f"from + {BLOCK} < {self.stop} ? from + {BLOCK} : {self.stop}"
            self.f.write(f"const i64 to = {end};")
            yield

    def _twice(
        self,
        kind: str,
        write: Callable[[], None],
        resets: Sequence[Callable[[], None]],
        *,
        again: bool = True,
    ) -> None:
        """Write the loop over a block's elements; and once more, for rare values, if it has any."""
        f, before = self.f, len(self.f.lines)
        f.flagged = False
        if again:
            f.flag = f.name("rare")
            f.write(f"i32 {f.flag} = 0;")
        flag, f.flag = f.flag, None
        with self._flagging(flag):
            self._loop(kind, write)
        if not f.flagged:
            if again:
                del f.lines[before]
            return
        with f.block(f"if ({flag})"):
            for reset in resets:
                reset()
            self._loop(kind, write)

    @contextmanager
    def _flagging(self, flag: str | None) -> Iterator[None]:
        self.f.flag = flag
        yield
        self.f.flag = None

    def _loop(self, kind: str, write: Callable[[], None]) -> None:
        with self.f.vectors(kind, self.length, "for (i64 c = from; c < to; ++c)"):
            write()


class _Element(_Team):
    """A work item that has one element of a row; it reduces nothing."""

    def store(self, place: LoopPlace, known: Known) -> None:
        """Write it for the one element."""
        self.rows.store_element(place, known)

    def once(self, write: Callable[[], None]) -> None:
        """Write it where the row begins."""
        with self.f.block("if (c == 0)"):
            write()


class _Shared(_Team):
    """A group of work items that share a row."""

    @property
    def _elements(self) -> str:
        kernel, items = self.rows.kernel, self.rows.dialect.group
        return f"for (i64 c = ITEM; c < {kernel.columns}; c += {items})"

    def reduce(self, place: LoopPlace, wanted: Sequence[Expr], known: Known) -> Known:
        """Write what each work item finds, and a tree that combines it."""
        names = [self.f.name("s") for _ in wanted]
        for expr, name in zip(wanted, names, strict=True):
            start = neutral(self.f, expr.data, expr.dtype)
            self.f.write(f"{c_type(expr.dtype)} {name} = {start};")
        with self.f.block(self._elements):
            values = self.rows.values(place, [e.args[0] for e in wanted], known)
            for expr, name in zip(wanted, names, strict=True):
                before = IRValue(name, element_of(expr.dtype))
                found_now = values[id(expr.args[0])]
                total = combined(self.f, expr.data, expr.dtype, before, found_now)
                self.f.write(f"{name} = {total};")
        found: Known = {}
        for expr, name in zip(wanted, names, strict=True):
            tree = self.rows.tree[self.rows.reductions.index(expr)]
            self.f.write(f"{tree}[ITEM] = {name};")
            write_tree(self.f, expr, tree, self.rows.dialect.group)
            found[id(expr)] = self.f.define(element_of(expr.dtype), f"{tree}[0]")
        self.f.write("BARRIER;")
        return found

    def store(self, place: LoopPlace, known: Known) -> None:
        """Write a loop over every so many elements."""
        with self.f.block(self._elements):
            self.rows.store_element(place, known)

    def once(self, write: Callable[[], None]) -> None:
        """Write it for the first of the work items."""
        with self.f.block("if (ITEM == 0)"):
            write()


def write_tree(f: CFunction, expr: Expr, tree: str, items: int) -> None:
    """Write how a group combines the values in local memory, halves with halves."""
    f.write("BARRIER;")
    with f.block(f"for (i32 n = {items // 2}; n > 0; n >>= 1)"):
        with f.block("if (ITEM < n)"):
            pair = [IRValue(f"{tree}[{at}]", element_of(expr.dtype)) for at in ("ITEM", "ITEM + n")]
            f.write(f"{tree}[ITEM] = {combined(f, expr.data, expr.dtype, *pair)};")
        f.write("BARRIER;")
