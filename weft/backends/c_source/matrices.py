"""How the elements of a product's operands are read: by strides, by prologues, out of windows."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.scalar.builder import postorder
from ...core.shape import size_of
from ...lower.kernels import GemmKernel, Operand, Prologue
from ...lower.storage import View
from ..cpu.codegen.values import IRValue, element_of
from .elements import LoopPlace, linear, write_counters
from .launch import LaunchText


class MatrixText:
    """An operand of a product, of which a function reads elements.

    batch   the names of the counters of batch axes
    """

    def __init__(
        self, text: LaunchText, view: View, prologue: Prologue | None, batch: Sequence[str]
    ) -> None:
        self.f = text.f
        self.dtype = view.dtype if prologue is None else prologue.value.dtype
        self.prologue = prologue
        self.batch = batch
        views = [view, *(() if prologue is None else prologue.extras)]
        self.operands = [Operand(v, v.strides) for v in views]
        self.pointers = [text.take(v) for v in views]

    def element(self, row: str, column: str) -> IRValue:
        """Return the element at a row and a column."""
        counters = [*self.batch, row, column]
        place = LoopPlace(self.f, self.operands, self.pointers, (), counters)
        if self.prologue is None:
            return place.loaded(self.dtype, place.element(0))
        values = place.write(postorder([self.prologue.value]), {})
        return values[id(self.prologue.value)]


class WindowMatrix:
    """The second operand of a product where it is read out of windows of images."""

    def __init__(self, text: LaunchText, kernel: GemmKernel, batch: Sequence[str]) -> None:
        assert kernel.windows is not None
        self.f = text.f
        self.dtype = kernel.y.dtype
        self.batch = batch
        self.view, self.windows = kernel.y, kernel.windows
        self.pointer = text.take(kernel.y)
        self.offsets = text.take(kernel.windows.offsets)

    def element(self, row: str, column: str) -> IRValue:
        """Return the element at a row and a column."""
        return self.element_at(self.of_row(row), self.of_column(column))

    def element_at(self, row: str, column: str) -> IRValue:
        """Return the element of a row and a column by how far these are behind the beginning."""
        return self.f.define(element_of(self.dtype), f"{self.pointer}[{row} + {column}]")

    def of_row(self, row: str) -> str:
        """Return how far a row is behind the beginning: a table has it."""
        lead = linear(self.view.strides[:-2], self.batch)
        at = linear(self.windows.offsets.strides, [*self.batch, row, "0"])
        return f"{lead} + {self.offsets}[{at}]"

    def of_column(self, column: str) -> str:
        """Return how far a column is behind a row's beginning, by the axes it stands for."""
        sizes, strides = zip(*self.windows.columns, strict=True)
        return linear(strides, write_counters(self.f, column, sizes))


Source = MatrixText | WindowMatrix


def second_operand(text: LaunchText, kernel: GemmKernel, batch: Sequence[str]) -> Source:
    """Return how elements of y are read."""
    if kernel.windows is not None:
        return WindowMatrix(text, kernel, batch)
    return MatrixText(text, kernel.y, kernel.y_from, batch)


def varies_with_batch(kernel: GemmKernel) -> bool:
    """Tell whether the second operand differs from one product of the batch to another."""
    views = [kernel.y, *(() if kernel.y_from is None else kernel.y_from.extras)]
    views += [] if kernel.windows is None else [kernel.windows.offsets]
    return size_of(kernel.batch) > 1 and any(any(v.strides[:-2]) for v in views)
