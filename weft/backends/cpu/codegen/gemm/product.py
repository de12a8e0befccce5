"""Describe a matrix product by its sizes and strides, rows and columns exchangeable."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .....core.shape import Size
from .....lower.kernels import GemmKernel, Prologue
from .....lower.storage import View


@dataclass(frozen=True)
class Strides:
    """How a matrix lies in memory, in elements; `batch` has one stride per batch axis."""

    batch: tuple[Size, ...]
    down: Size
    across: Size

    def transposed(self) -> Strides:
        """Return the strides of the transposed matrix."""
        return Strides(self.batch, self.across, self.down)


@dataclass(frozen=True)
class Product:
    """A product out = x y (+ bias), oriented so that the code can go along the rows of out.

    swapped      whether it is the transposed product: x and y have changed places
    bias         stride of the bias along the columns, or along the rows if swapped; None: no bias
    extras       operands of the epilogue
    block        rows that it combines into one; 0 if it does not
    x_more       what x is computed with, apart from what `x` tells; None: nothing is computed
    y_more       the same for y
    windows      axes that the columns of y stand for, if it lies in windows; it then stays y
    """

    batch: tuple[Size, ...]
    m: Size
    n: Size
    k: Size
    x: Strides
    y: Strides
    out: Strides
    bias: Size | None
    swapped: bool = False
    extras: tuple[Strides, ...] = ()
    block: Size = 0
    x_more: tuple[Strides, ...] | None = None
    y_more: tuple[Strides, ...] | None = None
    windows: tuple[tuple[int, int], ...] = ()

    def transposed(self) -> Product:
        """Return the same product with rows and columns exchanged."""
        assert not self.block, "rows that are combined must stay rows"
        return Product(
            self.batch,
            self.n,
            self.m,
            self.k,
            self.y.transposed(),
            self.x.transposed(),
            self.out.transposed(),
            self.bias,
            not self.swapped,
            tuple(extra.transposed() for extra in self.extras),
            x_more=_all_transposed(self.y_more),
            y_more=_all_transposed(self.x_more),
        )


def _all_transposed(more: tuple[Strides, ...] | None) -> tuple[Strides, ...] | None:
    return None if more is None else tuple(strides.transposed() for strides in more)


def product_of(kernel: GemmKernel) -> Product:
    """Return the sizes and strides of a kernel, with axes of size 1 given convenient strides."""
    bias = None if kernel.bias is None else kernel.bias.strides[-1]
    x, y, out = (_strides(view) for view in (kernel.x, kernel.y, kernel.out))
    extras = tuple(_strides(view) for view in kernel.extras)
    product = Product(
        kernel.batch,
        kernel.m,
        kernel.n,
        kernel.k,
        x,
        y,
        out,
        bias,
        extras=extras,
        block=kernel.block,
        x_more=_more(kernel.x_from),
        y_more=_more(kernel.y_from)
        if kernel.windows is None
        else (_strides(kernel.windows.offsets),),
        windows=() if kernel.windows is None else kernel.windows.columns,
    )
    return _with_columns_merged(_with_rows_merged(product))


def _more(prologue: Prologue | None) -> tuple[Strides, ...] | None:
    return None if prologue is None else tuple(map(_strides, prologue.extras))


def _strides(view: View) -> Strides:
    *batch, down, across = view.strides
    return Strides(tuple(batch), down, across)


def _with_rows_merged(product: Product) -> Product:
    """Make rows of batch axes along which y does not change and the others go on evenly."""
    while product.batch and (_stays(product) or product.batch[-1] == 1):
        m = product.m
        along = (product.x, product.out, *product.extras, *(product.x_more or ()))
        if product.batch[-1] == 1:
            along = tuple(replace(s, batch=(*s.batch[:-1], m * s.down)) for s in along)
        if m != 1 and any(s.batch[-1] != m * s.down for s in along):
            break
        x, out, *others = (
            Strides(s.batch[:-1], s.batch[-1] if m == 1 else s.down, s.across) for s in along
        )
        extras, more = others[: len(product.extras)], others[len(product.extras) :]
        y, *y_more = (replace(s, batch=s.batch[:-1]) for s in _all_of_y(product))
        product = replace(
            product,
            batch=product.batch[:-1],
            m=m * product.batch[-1],
            x=x,
            y=y,
            out=out,
            extras=tuple(extras),
            x_more=None if product.x_more is None else tuple(more),
            y_more=None if product.y_more is None else tuple(y_more),
        )
    return product


def _with_columns_merged(product: Product) -> Product:
    """Make columns of batch axes along which x does not change: of many vectors a matrix.

    A bias has an element for each column, which many must not share unless it is the same for all.
    """
    if product.n == 1 and product.bias is not None:
        product = replace(product, bias=0)
    if not product.batch or product.block or product.bias or product.windows:
        return product
    merged = _with_rows_merged(product.transposed())
    return merged if len(merged.batch) < len(product.batch) else product


def _all_of_y(product: Product) -> tuple[Strides, ...]:
    return (product.y, *(product.y_more or ()))


def _stays(product: Product) -> bool:
    """Tell whether y is the same all along the last axis of the batch."""
    return all(strides.batch[-1] == 0 for strides in _all_of_y(product))


def with_unit_strides(product: Product) -> Product:
    """Call an axis of size 1 contiguous: its stride is never used."""
    x, y, out = product.x, product.y, product.out
    if product.windows:
        return product
    if product.n == 1:
        y, out = replace(y, across=1), replace(out, across=1)
    if product.k == 1:
        x, y = replace(x, across=1), replace(y, down=1)
    if product.m == 1 and x.across != 1:
        x = replace(x, down=1)
    return replace(product, x=x, y=y, out=out)
