"""What the writers of a matrix product share: addresses, and functions that are written once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from .....lower.kernels import Output
from ..text import FunctionText, ModuleText
from ..values import IRValue
from .finish import Finish, write_finish
from .plan import GemmPlan
from .side import Places, Side


@dataclass(frozen=True)
class RowBlock:
    """The addresses of the matrices at a block of rows, and the number of its rows.

    x, y     each with what it is computed with
    extras   operands of the epilogue
    """

    x: Places
    y: Places
    out: IRValue
    bias: IRValue
    rows: IRValue
    extras: tuple[IRValue, ...]


@dataclass(frozen=True)
class Epilogue:
    """What is stored of each element, if anything, and the element types of the extras."""

    outputs: tuple[Output, ...]
    elements: tuple[str, ...]


class PartWriter:
    """Writes to the function of a kernel, and adds the functions it calls to the module."""

    def __init__(
        self,
        module: ModuleText,
        f: FunctionText,
        plan: GemmPlan,
        sides: tuple[Side, Side],
        epilogue: Epilogue,
        element: str,
    ) -> None:
        self.module = module
        self.f = f
        self.plan = plan
        self.product = plan.product
        self.x, self.y = sides
        self.epilogue = epilogue.outputs
        self.dtypes = (element, *epilogue.elements)
        self.element = element
        self._names: dict[Hashable, str] = {}

    def moved(self, place: IRValue, index: IRValue, stride: int) -> IRValue:
        """Return the address so many strides of elements behind another."""
        offset = index if stride == 1 else self.f.mul(index, stride)
        return self.f.gep(place, offset, self.element)

    def once(self, key: Hashable, hint: str, write: Callable[[str], None]) -> str:
        """Return the name of a function that is written when first wanted."""
        if key not in self._names:
            self._names[key] = f"{self.f.name}.{hint}.{self.module.functions - 1}"
            write(self._names[key])
        return self._names[key]

    def finish(self, block: RowBlock, column: IRValue, columns: IRValue) -> None:
        """Apply the epilogue to columns of a block of rows that are complete."""
        if not self.epilogue:
            return
        strides = (self.product.out, *self.product.extras)
        sizes = (self.plan.lanes, self.product.n, self.product.block)
        finish = Finish(self.epilogue, strides, self.dtypes, *sizes)
        name = self.once("finish", "finish", lambda name: write_finish(self.module, name, finish))
        places = []
        for place, lying, dtype in zip(
            (block.out, *block.extras), strides, self.dtypes, strict=True
        ):
            offset = self.f.mul(column, lying.across)
            places.append(self.f.gep(place, offset, dtype))
        self.f.call(name, "void", *places, block.rows, columns)
