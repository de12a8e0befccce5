"""Write loops over rows of elements, with reductions along them.

A row goes by phases: what is reduced of its elements, then what is reduced of those and of these
results, and last what is stored. Values that are the same for a whole row stand before its loops.

On processors a work item takes many rows, or a stretch of one; sums have several accumulators, by
which loops become vectors. Elsewhere a group of work items shares a row, and combines what each has
by a tree in local memory; rows of which nothing is reduced have a work item for each element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...core.scalar.builder import Expr, postorder
from ...lower.kernels import Output, RowKernel
from ..cpu.codegen.values import IRValue, element_of
from .dialect import Dialect
from .elements import Known, Place, placed_numbers, varying, write_counters
from .function import CFunction
from .launch import Launch, LaunchText
from .scalars import c_type, combined, neutral, stored_type

STRETCH = 1 << 14  # elements that a work item of a processor takes
ACCUMULATOR_BYTES = 64  # of the accumulators of one sum, on processors
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
        self.text = LaunchText("row")
        self.f = self.text.f
        self.pointers = [self.text.take(operand.view) for operand in kernel.operands]
        self.tree: list[str] = []  # names of local memory, by reduction

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
        place = Place(self.f, kernel.operands, self.pointers, kernel.iotas, counters)
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

    def values(self, place: Place, roots: Sequence[Expr], known: Known) -> Known:
        """Write what an element's expressions need that is not known for the row."""
        missing = [e for e in postorder(list(roots)) if id(e) not in known]
        return place.write(missing, known)

    def store_element(self, place: Place, known: Known) -> None:
        """Write what is stored of an element, after all of it is computed."""
        outputs = self.element_outputs
        values = self.values(place, [o.value for o in outputs], known)
        for output in outputs:
            value = values[id(output.value)]
            if output.way is None:
                place.store(output.operand, value)
            else:
                self._combine(place, output, value)

    def _combine(self, place: Place, output: Output, value: IRValue) -> None:
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

    def reduce(self, place: Place, wanted: Sequence[Expr], known: Known) -> Known:
        """Return the results of reductions of one phase."""
        raise NotImplementedError

    def store(self, place: Place, known: Known) -> None:
        """Write what is stored of elements."""
        raise NotImplementedError

    def once(self, write: Callable[[], None]) -> None:
        """Write what is done once for a row."""
        raise NotImplementedError

    def _declare(self, wanted: Sequence[Expr], lanes: str = "") -> list[str]:
        names = []
        for expr in wanted:
            names.append(self.f.name("s"))
            start = neutral(self.f, expr.data, expr.dtype)
            kind = c_type(expr.dtype)
            if lanes:
                self.f.write(f"{kind} {names[-1]}[{lanes}];")
                self.f.write(f"for (i32 l = 0; l < {lanes}; ++l) {names[-1]}[l] = {start};")
            else:
                self.f.write(f"{kind} {names[-1]} = {start};")
        return names

    def _accumulate(
        self, place: Place, wanted: Sequence[Expr], known: Known, names: Sequence[str], at: str = ""
    ) -> None:
        """Write how an element is added to what was found before it."""
        values = self.rows.values(place, [e.args[0] for e in wanted], known)
        for expr, name in zip(wanted, names, strict=True):
            before = IRValue(f"{name}{at}", element_of(expr.dtype))
            total = combined(self.f, expr.data, expr.dtype, before, values[id(expr.args[0])])
            self.f.write(f"{before} = {total};")


class _Stretch(_Team):
    """A work item of a processor that goes along a row, or a stretch of it, by itself."""

    def __init__(self, rows: _Rows, start: str, stop: str, length: int) -> None:
        super().__init__(rows)
        self.start, self.stop, self.length = start, stop, length

    def reduce(self, place: Place, wanted: Sequence[Expr], known: Known) -> Known:
        """Write sums with several accumulators, by which a loop becomes one of vectors."""
        lanes = ACCUMULATOR_BYTES // max(e.dtype.itemsize for e in wanted)
        if self.length < 2 * lanes:
            names = self._declare(wanted)
            with self.f.block(f"for (i64 c = {self.start}; c < {self.stop}; ++c)"):
                self._accumulate(place, wanted, known, names)
        else:
            arrays = self._declare(wanted, str(lanes))
            self._by_lanes(place, wanted, known, arrays, lanes)
            names = [self._folded(e, a, lanes) for e, a in zip(wanted, arrays, strict=True)]
        pairs = zip(wanted, names, strict=True)
        return {id(expr): IRValue(name, element_of(expr.dtype)) for expr, name in pairs}

    def _by_lanes(
        self, place: Place, wanted: Sequence[Expr], known: Known, arrays: list[str], lanes: int
    ) -> None:
        whole = self.length // lanes * lanes
        with self.f.block(f"for (i64 d = {self.start}; d < {whole}; d += {lanes})"):  # noqa: SIM117
            with self.f.block(f"for (i32 l = 0; l < {lanes}; ++l)"):
                self.f.write("const i64 c = d + l;")
                self._accumulate(place, wanted, known, arrays, "[l]")
        if whole < self.length:
            with self.f.block(f"for (i64 c = {whole}; c < {self.stop}; ++c)"):
                self._accumulate(place, wanted, known, arrays, f"[c - {whole}]")

    def _folded(self, expr: Expr, array: str, lanes: int) -> str:
        """Write how accumulators are combined, halves with halves."""
        name, half = self.f.name("s"), lanes // 2
        with self.f.block(f"for (i32 n = {half}; n > 0; n >>= 1)"):  # noqa: SIM117
            with self.f.block("for (i32 l = 0; l < n; ++l)"):
                pair = [IRValue(f"{array}[{at}]", element_of(expr.dtype)) for at in ("l", "l + n")]
                self.f.write(f"{array}[l] = {combined(self.f, expr.data, expr.dtype, *pair)};")
        self.f.write(f"const {c_type(expr.dtype)} {name} = {array}[0];")
        return name

    def store(self, place: Place, known: Known) -> None:
        """Write a loop over elements, none of which needs another's result."""
        self.f.write("APART")
        with self.f.block(f"for (i64 c = {self.start}; c < {self.stop}; ++c)"):
            self.rows.store_element(place, known)

    def once(self, write: Callable[[], None]) -> None:
        """Write it: nobody else has this row."""
        write()


class _Element(_Team):
    """A work item that has one element of a row; it reduces nothing."""

    def store(self, place: Place, known: Known) -> None:
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

    def reduce(self, place: Place, wanted: Sequence[Expr], known: Known) -> Known:
        """Write what each work item finds, and a tree that combines it."""
        names = self._declare(wanted)
        with self.f.block(self._elements):
            self._accumulate(place, wanted, known, names)
        found: Known = {}
        for expr, name in zip(wanted, names, strict=True):
            tree = self.rows.tree[self.rows.reductions.index(expr)]
            self.f.write(f"{tree}[ITEM] = {name};")
            write_tree(self.f, expr, tree, self.rows.dialect.group)
            found[id(expr)] = self.f.define(element_of(expr.dtype), f"{tree}[0]")
        self.f.write("BARRIER;")
        return found

    def store(self, place: Place, known: Known) -> None:
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
