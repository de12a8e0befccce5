"""Write matrix products.

    void kernel(ptr x, ptr y, ptr out[, ptr bias], ptr extra..., ptr further...,
                [ptr scratch,] i64 begin, i64 end)

where `extra` are operands of the epilogue and `further` those that x and y are computed with,
computes units begin to end of the result. A unit is a panel, a few vectors of columns, of a group
of blocks of rows of one matrix of the batch; `gemm_units` counts them, and `gemm_chunks` says into
how many parts they are worth dividing. Results do not depend on the division.

    for each block of the inner dimension
        for each block of rows
            pack the block of x, if that pays                         (second-level cache)
            for each panel
                pack the block of the panel of y, if that pays        (first-level cache)
                for each tile of rows: multiply and store             (registers)

Where there are several blocks of rows, a strip of panels is packed with the first of them. What is
packed lies on the stack, or in scratch memory with an area for each part of the work.

How it is done in detail is chosen by gemm_plan.py. The panels are written by gemm_outer.py and
gemm_thin.py, the functions they call by gemm_pack.py, gemm_windows.py, gemm_tile.py, gemm_dot.py
and gemm_sweep.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from .....core.dim import Dim, is_known
from .....core.shape import Size
from .....lower.at_sizes import has_sizes
from .....lower.kernels import GemmKernel
from .....lower.storage import View
from .....plan.arena import align
from ..target import Target
from ..text import FunctionText, ModuleText
from ..values import IRValue, element_of
from .outer import OuterWriter, Rooms
from .parts import Epilogue, RowBlock
from .plan import GemmPlan, plan_for
from .side import Places, sides_of
from .sized import AREAS, UNITS, WAY, SizedProduct, sized_product
from .thin import ThinWriter

STACK_BYTES = 1 << 16  # threads may have as little as 128 KiB


def gemm_units(kernel: GemmKernel, target: Target) -> int:
    """Return how many units of work a kernel has; none if the result is empty."""
    return int(plan_for(kernel, target).units)


def gemm_chunks(kernel: GemmKernel, target: Target, threads: int) -> int:
    """Return into how many parts the units are worth dividing among so many threads.

    With scratch memory it is the number of its areas, or all units must be one part: the part that
    begins at a unit knows its area by that.
    """
    if kernel.scratch is not None:
        areas: int = kernel.scratch.shape[0]
        return areas
    return int(plan_for(kernel, target).chunks(threads))


def scratch_shape(kernel: GemmKernel, target: Target, threads: int) -> tuple[int, Size] | None:
    """Return the areas of scratch memory of a product and their bytes; None if the stack does."""
    if has_sizes(kernel):
        sized = sized_product(kernel, target)
        needed = sized.scratch_bytes()
        return None if is_known([needed]) and needed == 0 else (sized.areas * threads, needed)
    if scratch_bytes(kernel, target) <= STACK_BYTES:
        return None
    parts = plan_for(kernel, target).chunks(threads)
    return parts, align(scratch_bytes(kernel, target, parts))


def scratch_bytes(kernel: GemmKernel, target: Target, parts: int = 1) -> int:
    """Return the bytes that each of so many parts of a product packs operands into.

    A part packs no more panels than it has; the areas of all parts together have room for a whole.
    """
    plan = plan_for(kernel, target)
    if plan.way != "outer":
        return 0
    strip = min(plan.strip, max(1, -(-plan.units // parts)))
    return Rooms(replace(plan, strip=strip), kernel.out.dtype.itemsize).bytes


def write_gemm_kernel(module: ModuleText, name: str, kernel: GemmKernel) -> None:
    """Add the function of a kernel, and those it calls, to a module."""
    element = element_of(kernel.out.dtype)
    if element not in ("float", "double"):
        raise TypeError(f"matrix products are written for float32 and float64; got {element}")
    # Those of an epilogue may lie where others do: what is stored last may replace what was read.
    pointers = [
        *["ptr noalias"] * len(kernel.matrices),
        *["ptr"] * len(kernel.extras),
        *["ptr noalias"] * len(kernel.computed_from),
    ]
    scratch = [] if kernel.scratch is None else ["ptr noalias"]
    f = module.function(name, [*pointers, *scratch, "i64", "i64"])
    if has_sizes(kernel):
        module.plan = sized = _within_stack(sized_product(kernel, module.target), kernel.scratch)
        _write_ways(module, f, kernel, sized)
    else:
        plan = plan_for(kernel, module.target)
        if plan.units:
            parts = kernel.scratch.shape[0] if kernel.scratch is not None else 1
            _write_way(module, f, kernel, plan, _Parts(parts, plan.units, plan.depth))
    f.ret()


def _within_stack(sized: SizedProduct, scratch: View | None) -> SizedProduct:
    """Return a product that packs no more than the stack holds, if there is no other memory."""
    return sized.without_scratch() if scratch is None else sized


class _Parts(NamedTuple):
    """Into how many parts a kernel is divided at most, its units, and room for inner blocks."""

    count: Size
    units: Size
    depth_room: int


def _write_ways(
    module: ModuleText, f: FunctionText, kernel: GemmKernel, sized: SizedProduct
) -> None:
    """Write all ways of a product that it may take at the sizes of a run."""
    done = f.label("computed")
    for number, plan in enumerate(sized.plans):
        taken, other = f.label("way"), f.label("other")
        f.branch_if(f.icmp("eq", f.size(WAY), number), taken, other)
        f.block(taken)
        _write_way(module, f, kernel, plan, _Parts(AREAS, UNITS, sized.depth_room))
        f.branch(done)
        f.block(other)
    f.branch(done)
    f.block(done)


def _write_way(
    module: ModuleText, f: FunctionText, kernel: GemmKernel, plan: GemmPlan, parts: _Parts
) -> None:
    """Write a product as planned."""
    elements = tuple(element_of(view.dtype) for view in kernel.extras)
    epilogue = Epilogue(tuple(kernel.outputs), elements)
    sides = sides_of(kernel, plan.product)
    known = (module, f, plan, sides, epilogue, element_of(kernel.out.dtype))
    writer: OuterWriter | ThinWriter = (
        OuterWriter(*known, _area(f, kernel.scratch, parts), parts.depth_room)
        if plan.way == "outer"
        else ThinWriter(*known)
    )
    operands = len(kernel.matrices) + len(kernel.extras) + len(kernel.computed_from)
    _UnitWriter(writer, operands).write()


def _area(f: FunctionText, scratch: View | None, parts: _Parts) -> IRValue | None:
    """Return the scratch memory of the part that is to be computed.

    Part c of C begins at unit c U / C, rounded down; so c is begin C / U, rounded up.
    """
    if scratch is None:
        return None
    *_, pointer, begin, _ = f.parameters
    number = f.udiv(f.add(f.mul(begin, parts.count), parts.units - 1), parts.units)
    return f.gep(pointer, f.mul(number, scratch.shape[1]))


class _Matrices(NamedTuple):
    """The addresses of the matrices at one place of the batch."""

    x: Places
    y: Places
    out: IRValue
    extras: tuple[IRValue, ...]


class _UnitWriter:
    """Writes the loop over units, and where their matrices lie."""

    def __init__(self, writer: OuterWriter | ThinWriter, operands: int) -> None:
        self.writer = writer
        self.f = writer.f
        self.plan = writer.plan
        self.product = writer.product
        self.moved = writer.moved
        self.begin, self.end = self.f.parameters[-2:]
        x, y, self.out, *rest = self.f.parameters[:operands]
        self.bias = self.out if self.product.bias is None else rest.pop(0)
        extras = len(self.product.extras)
        self.extras, further = rest[:extras], rest[extras:]
        first, second = (writer.y, writer.x) if self.product.swapped else (writer.x, writer.y)
        split = len(first.strides) - 1
        self.x, self.y = (x, *further[:split]), (y, *further[split:])
        assert len(self.y) == len(second.strides)
        if self.product.swapped:
            self.x, self.y = self.y, self.x

    def write(self) -> None:
        """Write the loop over groups of rows; all units of one group are done together."""
        f, panels = self.f, self.plan.panels
        many, done = f.label("groups"), f.label("finished")
        before = f.current
        f.branch_if(f.icmp("slt", self.begin, self.end), many, done)
        f.block(many)
        unit = f.phi("i64", (self.begin, before))
        group, first = f.udiv(unit, panels), f.urem(unit, panels)
        stop = f.minimum(f.add(first, f.sub(self.end, unit)), panels)
        self._group(group, first, stop)
        following = f.add(unit, f.sub(stop, first))
        unit.incoming(following, f.current)
        f.branch_if(f.icmp("slt", following, self.end), many, done)
        f.block(done)

    def _group(self, number: IRValue, first: IRValue, stop: IRValue) -> None:
        """Write the product for a range of panels of a group of blocks of rows."""
        f, plan = self.f, self.plan
        groups, batched = plan.row_groups, bool(self.product.batch)
        matrices = self._matrices(f.udiv(number, groups) if batched else number)
        group = f.urem(number, groups) if batched else number
        if isinstance(self.writer, ThinWriter) or (
            not isinstance(plan.group, Dim) and plan.group == 1
        ):
            self.writer.panels(self._block(matrices, group), first, stop)
            return
        begin = f.mul(group, plan.group)
        end = f.minimum(f.add(begin, plan.group), plan.row_blocks)
        self.writer.strips(
            matrices.y, lambda block: self._block(matrices, block), (begin, end), first, stop
        )

    def _matrices(self, number: IRValue) -> _Matrices:
        """Return the addresses of the matrices at one place of the batch."""
        f, product, writer = self.f, self.product, self.writer
        x, y, places = self.x, self.y, [self.out, *self.extras]
        rest = number
        for axis in reversed(range(len(product.batch))):
            size = product.batch[axis]
            index = f.urem(rest, size) if axis else rest
            rest = f.udiv(rest, size) if axis else rest
            x = writer.x.at_batch(f, x, axis, index)
            y = writer.y.at_batch(f, y, axis, index)
            for i, strides in enumerate((product.out, *product.extras)):
                offset = f.mul(index, strides.batch[axis])
                places[i] = f.gep(places[i], offset, writer.dtypes[i])
        return _Matrices(x, y, places[0], tuple(places[1:]))

    def _block(self, matrices: _Matrices, block: IRValue) -> RowBlock:
        """Return the addresses of a block of rows."""
        f, plan, product = self.f, self.plan, self.product
        x, y, out, extras = matrices
        if is_known([plan.row_blocks]) and plan.row_blocks == 1:
            return RowBlock(x, y, out, self.bias, f.constant("i64", product.m), extras)
        row = f.mul(block, plan.row_block)
        is_last = f.icmp("eq", block, plan.row_blocks - 1)
        rows = f.select(is_last, f.constant("i64", plan.last_rows), plan.row_block)
        bias = self.bias
        if product.bias is not None and product.swapped:
            bias = self.moved(bias, row, product.bias)
        x = self.writer.x.down(f, x, row)
        out = self.moved(out, row, product.out.down)
        return RowBlock(x, y, out, bias, rows, self._lower_extras(extras, row))

    def _lower_extras(self, extras: tuple[IRValue, ...], row: IRValue) -> tuple[IRValue, ...]:
        """Return where the operands of the epilogue lie at a row; some have one for many rows."""
        f, product, elements = self.f, self.product, self.writer.dtypes[1:]
        combined = {o.operand - 1 for o in self.writer.epilogue if o.way is not None}
        lower = []
        for i, place in enumerate(extras):
            line = f.udiv(row, product.block) if i in combined else row
            lower.append(f.gep(place, f.mul(line, product.extras[i].down), elements[i]))
        return tuple(lower)
