"""Kernels: what the code generator writes and an executable runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..core.dim import Dim, is_known
from ..core.shape import Shape, size_of
from ..graph.node import attr_items
from .scalar import Expr
from .storage import Buffer, View, buffers_behind, contiguous

Origins = tuple[int, ...]  # numbers of the graph's nodes that a kernel computes, in a side table


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a kernel reads or writes, by strides for each of the kernel's loops."""

    view: View
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Output:
    """An expression and the operand that takes it.

    way   how the rows of a block are combined, element by element; None to store every row
    """

    operand: int
    value: Expr
    way: str | None = None


@dataclass(frozen=True, slots=True)
class RowKernel:
    """Expressions over rows of elements, with reductions along the rows.

    loops      sizes of the loops over rows, and last that over the elements of a row
    operands   what is read and written; strides one per loop
    outputs    expressions to store: per element, or per row if no load in them varies along it
    block      rows that are a unit of work; outputs that combine rows have a row for each unit
    iotas      for numbers that follow from the loops' counters alone: what each turn adds
    flag       where an index out of range is reported, if the kernel checks any
    """

    name: str
    loops: tuple[int, ...]
    operands: tuple[Operand, ...]
    outputs: tuple[Output, ...]
    origins: Origins = ()
    block: int = 1
    iotas: tuple[tuple[int, ...], ...] = ()
    flag: View | None = None

    @property
    def units(self) -> int:
        """Return how many units of work there are: of rows, or of elements if there are no rows."""
        return self.loops[0] if len(self.loops) == 1 else -(-self.rows // self.block)

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return size_of(self.loops[:-1])

    @property
    def columns(self) -> int:
        """Return the number of elements of a row."""
        return self.loops[-1]


@dataclass(frozen=True, slots=True)
class ColumnKernel:
    """Sums (or other reductions) over leading loops, element by element of the last one.

    loops     sizes of the loops: kept ones, then reduced ones, then the innermost, which is kept
    reduced   which of them are reduced
    finish    what to store instead of the result of the reduction, of which it is a function
    """

    name: str
    loops: tuple[int, ...]
    reduced: tuple[bool, ...]
    operands: tuple[Operand, ...]
    output: Output
    way: str
    origins: Origins = ()
    finish: Expr | None = None


@dataclass(frozen=True, slots=True)
class ScatterKernel:
    """Values that go to computed places of a result which is there already.

    loops      sizes: first those whose turns touch different elements, then those whose turns may
               meet, which run in order, and last a row of different elements
    apart      how many loops are of the first kind
    operands   what is read, and last the result; strides one per loop
    offset     how far behind the result's place for the loops a value goes
    way        "sum", "max", "min" or "set"
    """

    name: str
    loops: tuple[int, ...]
    apart: int
    operands: tuple[Operand, ...]
    offset: Expr
    value: Expr
    way: str
    origins: Origins = ()
    iotas: tuple[tuple[int, ...], ...] = ()
    flag: View | None = None

    @property
    def columns(self) -> int:
        """Return the number of elements of a row."""
        return self.loops[-1]

    @property
    def outputs(self) -> list[Output]:
        """Return what is computed for each element."""
        last = len(self.operands) - 1
        return [Output(last, self.value), Output(last, self.offset)]


@dataclass(frozen=True, slots=True)
class ScanKernel:
    """A recurrence along the first loop, for each turn of the others.

    loops      sizes: the steps, other axes, and last those elements that lie one behind another
    operands   what is read, and last the result; strides one per loop
    value      what a step stores
    carried    values from step to step: a constant before the first, an expression after each
    """

    name: str
    loops: tuple[int, ...]
    operands: tuple[Operand, ...]
    value: Expr
    carried: tuple[tuple[Expr, Expr], ...]
    origins: Origins = ()


@dataclass(frozen=True, slots=True)
class Prologue:
    """An operand of a product that is computed where it is packed, and never stored.

    value    its elements: operand 0 is the view that the product has in the operand's place,
             operand i is extras[i - 1]
    extras   views of the shape of that one (strides may be 0)
    """

    value: Expr
    extras: tuple[View, ...] = ()


@dataclass(frozen=True, slots=True)
class Windows:
    """How an operand of a product lies whose rows and columns have no stride: windows of images.

    The element of row k and column j lies offsets[k] + place(j) elements behind the beginning of
    the view that the product has in the operand's place, where place(j) follows from the columns as
    axes.

    offsets   of rows; a view of int64 with the product's batch, its rows, and columns of stride 0
    columns   sizes and strides of the axes that columns stand for, the last lying along memory;
              at both ends of them there is memory for a vector
    """

    offsets: View
    columns: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GemmKernel:
    """Matrix products: out[..., i, j] = sum over k of x[..., i, k] * y[..., k, j] (+ bias[j]).

    An epilogue computes expressions of each element where it is complete. Its operand 0 is out,
    which holds the element before, and operand i is extras[i - 1].

    extras     operands of the shape of out (strides may be 0) that share no memory with it
    outputs    what the epilogue stores; nothing: the elements stay as they are
    x_from     how elements of x follow from those of the view x and of others, if they do
    y_from     the same for y
    windows    how y lies, if not by the strides of its view
    scratch    memory to pack operands into, in as many equal areas as the work has parts
    block      rows that outputs with a way combine: their extras have one row for each such block,
               and the product has no batch; 0 if there are none
    """

    name: str
    batch: Shape
    m: int
    n: int
    k: int
    x: View
    y: View
    out: View
    bias: View | None
    origins: Origins = ()
    extras: tuple[View, ...] = ()
    outputs: tuple[Output, ...] = ()
    scratch: View | None = None
    x_from: Prologue | None = None
    y_from: Prologue | None = None
    block: int = 0
    windows: Windows | None = None

    @property
    def views(self) -> list[View]:
        """Return what is read and written, in the order in which code takes it."""
        scratch = [] if self.scratch is None else [self.scratch]
        return [*self.matrices, *self.extras, *self.computed_from, *scratch]

    @property
    def computed_from(self) -> list[View]:
        """Return what x is computed with apart from its own view, then the same for y."""
        prologues = (self.x_from, self.y_from)
        offsets = [] if self.windows is None else [self.windows.offsets]
        return [view for p in prologues if p is not None for view in p.extras] + offsets

    @property
    def matrices(self) -> list[View]:
        """Return the operands of the product itself, its result being the third."""
        bias = [] if self.bias is None else [self.bias]
        return [self.x, self.y, self.out, *bias]

    @property
    def totals(self) -> list[View]:
        """Return the operands of the epilogue that combined rows go to."""
        return [self.extras[o.operand - 1] for o in self.outputs if o.way is not None]

    @property
    def written(self) -> frozenset[int]:
        """Return which of the views are written."""
        extras = len(self.matrices) - 1  # operand 1 of the epilogue is the first of its extras
        stored = {2 if o.operand == 0 else extras + o.operand for o in self.outputs}
        scratch = set() if self.scratch is None else {len(self.views) - 1}
        return frozenset({2} | stored | scratch)


@dataclass(frozen=True, slots=True)
class CallKernel:
    """A call of an operator's own kernel on arrays, by the host.

    attrs   the operator's attributes; those of control flow hold functions
    """

    name: str
    op: Any
    inputs: tuple[View | None, ...]
    outputs: tuple[View, ...]
    attrs: tuple[Any, ...] = ()
    origins: Origins = ()

    @property
    def views(self) -> list[View]:
        """Return what is read and written."""
        return [view for view in (*self.inputs, *self.outputs) if view is not None]

    @property
    def is_dynamic(self) -> bool:
        """Tell whether it needs, takes or gives a size that only a run can tell."""
        known = all(is_known(view.shape) for view in self.views)
        return not known or any(item.__class__ is Dim for item in attr_items(self.attrs))


@dataclass(frozen=True, slots=True)
class LoopKernel:
    """Kernels that are repeated, by their numbers in memory.

    A body works on windows, which move with two words: `index`, the place of the step in what is
    taken apart and stacked, and `half`, which of the two copies of the carries is the newer.

    length    the most steps; None for a loop that only its test ends
    reverse   whether the index counts down from length - 1
    test      what computes the truth value `holds` before each step, if there is one
    stops     a truth value that the body computes, and that ends the loop
    room      what outlives a step: the stacked results
    """

    name: str
    index: Buffer
    half: Buffer
    length: int | None
    reverse: bool
    body: tuple[Kernel, ...]
    test: tuple[Kernel, ...] = ()
    holds: View | None = None
    stops: View | None = None
    room: tuple[View, ...] = ()
    origins: Origins = ()


@dataclass(frozen=True, slots=True)
class BranchKernel:
    """Kernels of which one list or the other runs, as a truth value says, and their results."""

    name: str
    chosen: View
    yes: tuple[Kernel, ...]
    no: tuple[Kernel, ...]
    results: tuple[View, ...]
    origins: Origins = ()


Loops = RowKernel | ColumnKernel | ScatterKernel | ScanKernel
Kernel = (
    RowKernel
    | ColumnKernel
    | ScatterKernel
    | ScanKernel
    | GemmKernel
    | CallKernel
    | LoopKernel
    | BranchKernel
)
Control = LoopKernel | BranchKernel


def parts_of(kernel: Kernel) -> list[tuple[Kernel, ...]]:
    """Return the lists of kernels inside a kernel of control flow."""
    if isinstance(kernel, LoopKernel):
        return [kernel.test, kernel.body]
    return [kernel.yes, kernel.no] if isinstance(kernel, BranchKernel) else []


def walk(kernels: Iterable[Kernel]) -> Iterator[Kernel]:
    """Yield kernels and all that are inside of them."""
    for kernel in kernels:
        yield kernel
        for part in parts_of(kernel):
            yield from walk(part)


def within(kernel: Kernel, buffers: Mapping[Buffer, Buffer]) -> Kernel:
    """Return the same kernel over the buffers that take the places of its own."""

    def view(given: View) -> View:
        return given.within(buffers)

    def views(given: Iterable[View]) -> tuple[View, ...]:
        return tuple(map(view, given))

    def maybe(given: View | None) -> View | None:
        return None if given is None else given.within(buffers)

    def inner(given: Iterable[Kernel]) -> tuple[Kernel, ...]:
        return tuple(within(kernel, buffers) for kernel in given)

    if isinstance(kernel, Loops):
        operands = tuple(Operand(view(o.view), o.strides) for o in kernel.operands)
        if isinstance(kernel, RowKernel | ScatterKernel) and kernel.flag is not None:
            return replace(kernel, operands=operands, flag=view(kernel.flag))
        return replace(kernel, operands=operands)
    if isinstance(kernel, GemmKernel):
        x_from, y_from = (
            None if p is None else Prologue(p.value, views(p.extras))
            for p in (kernel.x_from, kernel.y_from)
        )
        windows = kernel.windows
        return replace(
            kernel,
            x=view(kernel.x),
            y=view(kernel.y),
            out=view(kernel.out),
            bias=maybe(kernel.bias),
            extras=views(kernel.extras),
            scratch=maybe(kernel.scratch),
            x_from=x_from,
            y_from=y_from,
            windows=windows and Windows(view(windows.offsets), windows.columns),
        )
    if isinstance(kernel, CallKernel):
        return replace(
            kernel, inputs=tuple(map(maybe, kernel.inputs)), outputs=views(kernel.outputs)
        )
    if isinstance(kernel, BranchKernel):
        return replace(
            kernel,
            chosen=view(kernel.chosen),
            yes=inner(kernel.yes),
            no=inner(kernel.no),
            results=views(kernel.results),
        )
    return replace(
        kernel,
        index=buffers[kernel.index],
        half=buffers[kernel.half],
        body=inner(kernel.body),
        test=inner(kernel.test),
        holds=maybe(kernel.holds),
        stops=maybe(kernel.stops),
        room=views(kernel.room),
    )


def calls_library(kernel: Kernel) -> bool:
    """Tell whether a kernel, or one inside it, is a call from Python."""
    return any(isinstance(k, CallKernel) for k in walk([kernel]))


def may_fail(kernel: Kernel) -> bool:
    """Tell whether a kernel, or one inside it, can find that a run must be given up.

    A loop can: by Ctrl-C.
    """
    return any(
        isinstance(k, CallKernel | LoopKernel) or getattr(k, "flag", None) is not None
        for k in walk([kernel])
    )


def own_views(kernel: Kernel) -> list[View]:
    """Return what a kernel reads and writes itself, without what kernels inside it do."""
    if isinstance(kernel, GemmKernel):
        return kernel.views
    if isinstance(kernel, LoopKernel):
        flags = [view for view in (kernel.holds, kernel.stops) if view is not None]
        words = [contiguous(word, ()) for word in (kernel.index, kernel.half)]
        return [*flags, *words, *kernel.room]
    if isinstance(kernel, BranchKernel):
        return [kernel.chosen, *kernel.results]
    if isinstance(kernel, CallKernel):
        return kernel.views
    return [operand.view for operand in kernel.operands]


def buffers_of(kernel: Kernel) -> list[Buffer]:
    """Return the memory that a kernel touches, itself or inside; also what is behind windows."""
    views = [view for part in walk([kernel]) for view in own_views(part)]
    found = (part for view in views for part in (view.buffer, *buffers_behind(view.buffer)))
    return list(dict.fromkeys(found))


def written_buffers(kernel: Kernel) -> set[Buffer]:
    """Return the memory that a kernel may write; of all but rows and products, what it touches.

    A window and the buffer that it is part of both are.
    """
    if isinstance(kernel, RowKernel):
        views = [kernel.operands[output.operand].view for output in kernel.outputs]
    elif isinstance(kernel, GemmKernel):
        views = [kernel.views[i] for i in kernel.written]
    else:
        return set(buffers_of(kernel))
    return {part for view in views for part in (view.buffer, buffers_behind(view.buffer)[0])}
