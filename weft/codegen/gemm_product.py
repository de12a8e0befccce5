"""Describe a matrix product by its sizes and strides, rows and columns exchangeable."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..lower.kernels import GemmKernel
from ..lower.storage import View


@dataclass(frozen=True)
class Strides:
    """How a matrix lies in memory, in elements; `batch` has one stride per batch axis."""

    batch: tuple[int, ...]
    down: int
    across: int

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
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    x: Strides
    y: Strides
    out: Strides
    bias: int | None
    swapped: bool = False
    extras: tuple[Strides, ...] = ()
    block: int = 0

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
        )


def product_of(kernel: GemmKernel) -> Product:
    """Return the sizes and strides of a kernel, with axes of size 1 given convenient strides."""
    bias = None if kernel.bias is None else kernel.bias.strides[-1]
    x, y, out = (_strides(view) for view in (kernel.x, kernel.y, kernel.out))
    extras = tuple(_strides(view) for view in kernel.extras)
    sizes = (kernel.batch, kernel.m, kernel.n, kernel.k)
    product = Product(*sizes, x, y, out, bias, extras=extras, block=kernel.block)
    return _with_rows_merged(product)


def _strides(view: View) -> Strides:
    *batch, down, across = view.strides
    return Strides(tuple(batch), down, across)


def _with_rows_merged(product: Product) -> Product:
    """Make rows of batch axes along which y does not change and the others go on evenly."""
    while product.batch and (product.y.batch[-1] == 0 or product.batch[-1] == 1):
        m = product.m
        along = (product.x, product.out, *product.extras)
        if product.batch[-1] == 1:
            along = tuple(replace(s, batch=(*s.batch[:-1], m * s.down)) for s in along)
        if m != 1 and any(s.batch[-1] != m * s.down for s in along):
            break
        x, out, *extras = (
            Strides(s.batch[:-1], s.batch[-1] if m == 1 else s.down, s.across) for s in along
        )
        product = replace(
            product,
            batch=product.batch[:-1],
            m=m * product.batch[-1],
            x=x,
            y=replace(product.y, batch=product.y.batch[:-1]),
            out=out,
            extras=tuple(extras),
        )
    return product


def with_unit_strides(product: Product) -> Product:
    """Call an axis of size 1 contiguous: its stride is never used."""
    x, y, out = product.x, product.y, product.out
    if product.n == 1:
        y, out = replace(y, across=1), replace(out, across=1)
    if product.k == 1:
        x, y = replace(x, across=1), replace(y, down=1)
    if product.m == 1 and x.across != 1:
        x = replace(x, down=1)
    return replace(product, x=x, y=y, out=out)
