"""Write what a product computes of an element when its sum is complete."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.scalar.builder import postorder
from ...lower.kernels import GemmKernel, Operand, Output
from ..cpu.codegen.values import IRValue
from .elements import Known, LoopPlace
from .launch import LaunchText
from .scalars import c_type, combined, stored_type


class EpilogueText:
    """What is stored of the elements of a product."""

    def __init__(self, text: LaunchText, kernel: GemmKernel) -> None:
        self.kernel = kernel
        self.f = text.f
        views = [kernel.out, *kernel.extras]
        self.operands = [Operand(view, view.strides) for view in views]
        self.pointers = [text.take(view) for view in views]
        self.bias = None if kernel.bias is None else text.take(kernel.bias)

    def write(self, total: IRValue, batch: Sequence[str], row: str, column: str) -> None:
        """Write what becomes of the sum for a row and a column."""
        kernel, f = self.kernel, self.f
        place = LoopPlace(f, self.operands, self.pointers, (), [*batch, row, column])
        if self.bias is not None:
            assert kernel.bias is not None
            (stride,) = kernel.bias.strides
            total = f.fadd(
                total, place.loaded(kernel.out.dtype, f"{self.bias}[{column} * {stride}]")
            )
        order = postorder([output.value for output in kernel.outputs])
        known: Known = {id(e): total for e in order if e.kind == "load" and e.data == 0}
        values = place.write(order, known)
        if all(output.operand != 0 for output in kernel.outputs):
            place.store(0, total)
        for output in kernel.outputs:
            if output.way is None:
                place.store(output.operand, values[id(output.value)])
            else:
                self.combine(place, output, values[id(output.value)], row, column)

    def combine(
        self, place: LoopPlace, output: Output, value: IRValue, row: str, column: str
    ) -> None:
        """Combine an element with those above it in its block of rows: one work item has them."""
        assert output.way is not None
        f, dtype = self.f, output.value.dtype
        block, view = self.kernel.block, self.kernel.extras[output.operand - 1]
        down, along = view.strides
        at = f"{self.pointers[output.operand]}[{row} / {block} * {down} + {column} * {along}]"
        name = f.name("a")
        f.write(f"{c_type(dtype)} {name} = {value};")
        with f.block(f"if ({row} % {block} != 0)"):
            before = place.loaded(dtype, at)
            f.write(f"{name} = {combined(f, output.way, dtype, before, value)};")
        f.write(f"{at} = ({stored_type(dtype)}){name};")
