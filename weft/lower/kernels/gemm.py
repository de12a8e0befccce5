"""Matrix products."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.dtype import int64, uint8
from ...core.scalar.builder import Expr
from ...core.shape import Shape, Size, size_of
from ..storage import Buffer, View
from .base import WAYS, Kernel, Origins, Output, maybe_within, operations_each

if TYPE_CHECKING:
    from ..checks import Verifier
    from ..text import Text


@dataclass(frozen=True, slots=True)
class Prologue:
    """An operand of a product that is computed where it is packed, and never stored.

    value    its elements: operand 0 is the view that the product has in the operand's place,
             operand i is extras[i - 1]
    extras   views of the shape of that one (strides may be 0)
    """

    value: Expr
    extras: tuple[View, ...] = ()

    def within(self, buffers: Mapping[Buffer, Buffer]) -> Prologue:
        """Return the same over other buffers."""
        return Prologue(self.value, tuple(view.within(buffers) for view in self.extras))


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
    columns: tuple[tuple[Size, Size], ...]


@dataclass(frozen=True, slots=True)
class GemmKernel(Kernel):
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

    kind = "gemm"

    name: str
    batch: Shape
    m: Size
    n: Size
    k: Size
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
    block: Size = 0
    windows: Windows | None = None

    @property
    def shape(self) -> Shape:
        """Return the sizes of its loops."""
        return (*self.batch, self.m, self.n, self.k)

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
    def row_sums(self) -> list[View]:
        """Return the operands of the epilogue that combined rows go to."""
        return [self.extras[o.operand - 1] for o in self.outputs if o.way is not None]

    @property
    def written(self) -> frozenset[int]:
        """Return the result, what the epilogue stores, and scratch memory."""
        extras = len(self.matrices) - 1  # operand 1 of the epilogue is the first of its extras
        stored = {2 if o.operand == 0 else extras + o.operand for o in self.outputs}
        scratch = set() if self.scratch is None else {len(self.views) - 1}
        return frozenset({2} | stored | scratch)

    @property
    def operations(self) -> int:
        """Count those of the product, its epilogue and its operands, each once an element."""
        batch, m, n, k = size_of(self.batch), self.m, self.n, self.k
        combined = sum(output.way is not None for output in self.outputs)
        stored = operations_each([output.value for output in self.outputs]) + combined
        x, y = (0 if p is None else operations_each([p.value]) for p in (self.x_from, self.y_from))
        each = 2 * k + (self.bias is not None) + stored
        return int(batch * (m * n * each + m * k * x + k * n * y))

    def within(self, buffers: Mapping[Buffer, Buffer]) -> GemmKernel:
        """Return the same product over other buffers."""
        windows = self.windows
        return replace(
            self,
            x=self.x.within(buffers),
            y=self.y.within(buffers),
            out=self.out.within(buffers),
            bias=maybe_within(self.bias, buffers),
            extras=tuple(view.within(buffers) for view in self.extras),
            scratch=maybe_within(self.scratch, buffers),
            x_from=None if self.x_from is None else self.x_from.within(buffers),
            y_from=None if self.y_from is None else self.y_from.within(buffers),
            windows=windows and Windows(windows.offsets.within(buffers), windows.columns),
        )

    # -- verification ------------------------------------------------------------------------------

    def verify(self, v: Verifier) -> None:
        """Check that shapes and dtypes of operands agree, and the expressions on them."""
        v.sizes(self.shape, "its shape")
        x, y, out = ((*self.batch, *s) for s in self._matrix_sizes)
        for view, wanted, what in ((self.x, x, "x"), (self.y, y, "y"), (self.out, out, "out")):
            v.shape(view, wanted, what)
            v.view(view, what)
        for view, prologue, what in ((self.x, self.x_from, "x"), (self.y, self.y_from, "y")):
            self._verify_operand(v, view, prologue, what)
        if self.bias is not None:
            v.shape(self.bias, (self.n,), "the bias")
            v.view(self.bias, "the bias")
            v.dtype(self.bias.dtype, self.out.dtype, "the bias")
        self._verify_epilogue(v)
        self._verify_windows(v)
        if self.scratch is not None:
            if self.scratch.dtype != uint8 or len(self.scratch.shape) != 2:
                v.fail("scratch memory is areas of bytes")
            v.view(self.scratch, "scratch")

    @property
    def _matrix_sizes(self) -> tuple[Shape, Shape, Shape]:
        return (self.m, self.k), (self.k, self.n), (self.m, self.n)

    def _verify_operand(
        self, v: Verifier, view: View, prologue: Prologue | None, what: str
    ) -> None:
        if prologue is None:
            v.dtype(view.dtype, self.out.dtype, what)
            return
        views = [view, *prologue.extras]
        for extra in prologue.extras:
            v.shape(extra, view.shape, f"what {what} is computed with")
            v.view(extra, f"what {what} is computed with")
        v.expressions([prologue.value], views)
        v.dtype(prologue.value.dtype, self.out.dtype, what)

    def _verify_epilogue(self, v: Verifier) -> None:
        views = [self.out, *self.extras]
        v.outputs(self.outputs, len(views), least=0)
        v.expressions([o.value for o in self.outputs], views)
        combined = {o.operand for o in self.outputs if o.way is not None}
        if bool(combined) != (self.block != 0) or (combined and self.batch):
            v.fail(f"combines rows in blocks of {self.block}")
        for output in self.outputs:
            v.dtype(output.value.dtype, views[output.operand].dtype, "an output")
            if output.way not in (None, *WAYS):
                v.fail(f"rows cannot be combined by {output.way!r}")
        for i, view in enumerate(self.extras, 1):
            rows = -(-self.m // self.block) if i in combined else self.m
            v.shape(view, (*self.batch, rows, self.n), "an operand of the epilogue")
            v.view(view, "an operand of the epilogue")
            if view.buffer is self.out.buffer:
                v.fail("an operand of the epilogue lies in the memory of the result")

    def _verify_windows(self, v: Verifier) -> None:
        if self.windows is None:
            return
        offsets, columns = self.windows.offsets, self.windows.columns
        v.shape(offsets, self.y.shape, "offsets of windows")
        v.view(offsets, "offsets of windows")
        v.dtype(offsets.dtype, int64, "offsets of windows")
        if size_of(size for size, _ in columns) != self.n or self.y_from is not None:
            v.fail(f"columns {columns} of windows are not the {self.n} of the product")

    # -- text --------------------------------------------------------------------------------------

    def lines(self, text: Text) -> list[str]:
        """Return the product, what its operands are computed from, and its epilogue."""
        x, y = text.view(self.x), text.view(self.y)
        before: list[str] = []
        for name, own, prologue in (("x", x, self.x_from), ("y", y, self.y_from)):
            if prologue is not None:
                names = [own, *map(text.view, prologue.extras)]
                before += text.named_stores([(name, prologue.value, None)], names)
        x, y = ("x" if self.x_from else x), ("y" if self.y_from else y)
        if self.windows is not None:
            y = f"windows({y} by {text.view(self.windows.offsets)})"
        bias = "" if self.bias is None else f" + {text.view(self.bias)}"
        out, names = text.view(self.out), [text.view(v) for v in (self.out, *self.extras)]
        stored = [(names[o.operand], o.value, o.way) for o in self.outputs]
        block = f", row sums by {self.block}" if self.block else ""
        scratch = "" if self.scratch is None else f", scratch {text.view(self.scratch)}"
        product = f"{out} = {x} @ {y}{bias}"
        return [
            text.head(self) + block + scratch,
            *before,
            product,
            *text.named_stores(stored, names),
        ]
