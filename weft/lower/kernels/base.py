"""What all kernels have, and what those over loops have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

from ...core.scalar.builder import Expr, postorder
from ...core.shape import Shape, Size, size_of
from ..storage import Buffer, View

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text

Origins = tuple[int, ...]  # numbers of the graph's nodes that a kernel computes, in a side table
WAYS = ("sum", "max", "min", "prod")  # of combining elements
FREE = frozenset(("carry", "cast", "const", "index", "load", "step"))  # no operations


class Kernel:
    """A step of a program. What each kind computes stands with its class, in a file of its own.

    origins   the nodes it computes, by their numbers in a table beside the program
    """

    __slots__ = ()

    kind: ClassVar[str]
    name: str
    origins: Origins

    @property
    def views(self) -> list[View]:
        """Return what it reads and writes itself, without what kernels inside it do."""
        raise NotImplementedError

    @property
    def written(self) -> frozenset[int]:
        """Return which of the views it writes."""
        raise NotImplementedError

    @property
    def read(self) -> frozenset[int]:
        """Return which of the views it reads."""
        return frozenset(range(len(self.views))) - self.written

    @property
    def parts(self) -> tuple[tuple[Kernel, ...], ...]:
        """Return the lists of kernels inside it."""
        return ()

    @property
    def operations(self) -> int:
        """Return how many operations on elements it does, without those of kernels inside it."""
        return 0

    @property
    def shape(self) -> Shape:
        """Return the sizes of its loops, or of what it gives."""
        raise NotImplementedError

    def within(self, buffers: Mapping[Buffer, Buffer]) -> Self:
        """Return the same kernel over the buffers that take the places of its own."""
        raise NotImplementedError

    def verify(self, v: Verifier) -> None:
        """Refuse what no back end could give a meaning."""
        raise NotImplementedError

    def lines(self, text: Text) -> list[str]:
        """Return a head and what is computed, for people."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Operand:
    """A tensor that a kernel reads or writes, by strides for each of the kernel's loops."""

    view: View
    strides: Shape


@dataclass(frozen=True, slots=True)
class Output:
    """An expression and the operand that takes it.

    way   how the rows of a block are combined, element by element; None to store every row
    """

    operand: int
    value: Expr
    way: str | None = None


class LoopNest(Kernel):
    """A kernel that goes through loops, with operands by a stride for each of them."""

    __slots__ = ()

    loops: Shape
    operands: tuple[Operand, ...]

    @property
    def views(self) -> list[View]:
        """Return what it reads and writes."""
        return [operand.view for operand in self.operands]

    @property
    def shape(self) -> Shape:
        """Return the sizes of its loops."""
        return self.loops

    @property
    def roots(self) -> list[Expr]:
        """Return what it computes for its elements."""
        raise NotImplementedError

    @property
    def read(self) -> frozenset[int]:
        """Return the operands that its expressions load."""
        exprs = postorder(self.roots)
        moved = {e.data[0] for e in exprs if e.kind == "load_at"}
        return frozenset(moved | {e.data for e in exprs if e.kind == "load"})

    @property
    def columns(self) -> Size:
        """Return the size of the innermost loop."""
        return self.loops[-1]

    def within(self, buffers: Mapping[Buffer, Buffer]) -> Self:
        """Return the same kernel over other buffers."""
        operands = tuple(Operand(o.view.within(buffers), o.strides) for o in self.operands)
        flag: View | None = getattr(self, "flag", None)
        if flag is None:
            return replace(self, operands=operands)  # type: ignore[type-var]  # a dataclass
        return replace(self, operands=operands, flag=flag.within(buffers))  # type: ignore[type-var]  # a dataclass


def maybe_within(view: View | None, buffers: Mapping[Buffer, Buffer]) -> View | None:
    """Return a view, if there is one, of the buffer that takes the place of its own."""
    return None if view is None else view.within(buffers)


def operations_each(roots: Sequence[Expr]) -> int:
    """Count the operations that expressions take for one element."""
    return sum(expr.kind not in FREE for expr in postorder(list(roots)))


def operations_along(
    roots: Sequence[Expr], operands: Sequence[Operand], rows: Size, columns: Size
) -> int:
    """Count operations per element, or per row where nothing they take varies along it."""
    total = 0
    varies: dict[int, bool] = {}
    for expr in postorder(list(roots)):
        along = any(varies[id(arg)] for arg in expr.args)
        if expr.kind == "load":
            along = operands[expr.data].strides[-1] != 0
        varies[id(expr)] = (along or expr.kind == "index") and expr.kind != "reduce"
        if expr.kind == "reduce":
            total += rows * columns
        elif expr.kind not in FREE:
            total += rows * (columns if along else 1)
    return total


def reached(view: View) -> Size:
    """Return how many elements of its buffer a view shows."""
    if 0 in view.shape:
        return 0
    axes = zip(view.shape, view.strides, strict=True)
    return size_of(size for size, stride in axes if stride)
