"""Describe an operand of a product: how its matrix lies, or what it is computed from."""

from __future__ import annotations

from dataclasses import dataclass

from .....core.scalar.builder import Expr
from .....lower.kernels import GemmKernel, Prologue
from .....lower.storage import View
from ..text import FunctionText
from ..values import IRValue, element_of
from .product import Product, Strides
from .source import LineStrides, PanelSource

Places = tuple[IRValue, ...]  # an address in the matrix, and those of what it is computed with


@dataclass(frozen=True)
class Side:
    """The matrix and what it is computed with; `value` says how, if it is."""

    strides: tuple[Strides, ...]
    elements: tuple[str, ...]
    value: Expr | None

    def at_batch(self, f: FunctionText, places: Places, axis: int, index: IRValue) -> Places:
        """Return the addresses so much further along an axis of the batch."""
        return self._moved(f, places, index, tuple(s.batch[axis] for s in self.strides))

    def down(self, f: FunctionText, places: Places, index: IRValue) -> Places:
        """Return the addresses so many rows further."""
        return self._moved(f, places, index, tuple(s.down for s in self.strides))

    def across(self, f: FunctionText, places: Places, index: IRValue) -> Places:
        """Return the addresses so many columns further."""
        return self._moved(f, places, index, tuple(s.across for s in self.strides))

    def _moved(
        self, f: FunctionText, places: Places, index: IRValue, strides: tuple[int, ...]
    ) -> Places:
        return tuple(
            f.gep(place, index if stride == 1 else f.mul(index, stride), element)
            for place, stride, element in zip(places, strides, self.elements, strict=True)
        )

    def source(self, *, by_row: bool) -> PanelSource:
        """Return what a copy reads whose lines are rows, or columns."""
        lines = tuple(
            LineStrides(element, s.down, s.across)
            if by_row
            else LineStrides(element, s.across, s.down)
            for s, element in zip(self.strides, self.elements, strict=True)
        )
        return PanelSource(lines, self.value)


def sides_of(kernel: GemmKernel, product: Product) -> tuple[Side, Side]:
    """Return both operands of a kernel, in the order of its product."""
    x = _side(kernel.x, kernel.x_from)
    y = _side(kernel.y, kernel.y_from)
    if kernel.windows is not None:
        y = (y[0] + (element_of(kernel.windows.offsets.dtype),), None)
    (elements_x, value_x), (elements_y, value_y) = (y, x) if product.swapped else (x, y)
    return (
        Side((product.x, *(product.x_more or ())), elements_x, value_x),
        Side((product.y, *(product.y_more or ())), elements_y, value_y),
    )


def _side(view: View, prologue: Prologue | None) -> tuple[tuple[str, ...], Expr | None]:
    views = (view, *(() if prologue is None else prologue.extras))
    elements = tuple(element_of(v.dtype) for v in views)
    return elements, None if prologue is None else prologue.value
