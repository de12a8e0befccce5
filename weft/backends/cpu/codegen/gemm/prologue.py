"""Decide which operands of products are computed where they are packed.

An element is computed each time it is packed: once for each part of the work and each strip of
panels that it takes part in. The decision depends on the number of threads, so it may not change a
bit of the result: sums are added up in the same order with and without it.
"""

from __future__ import annotations

from collections.abc import Hashable

from .....core.scalar.builder import CHEAP, Expr, postorder
from .....core.shape import Size, size_of
from .....lower.kernels import GemmKernel
from ..cost import PER_BYTE, expression_cost
from ..target import Target
from ..values import bytes_of
from .plan import GemmPlan, plan_for
from .side import Side, sides_of

IN_FIRST_CACHE, IN_SECOND_CACHE = 0.25, 0.5  # what a byte costs there, of what others do
INTERRUPTED = 1.25  # what functions cost in short loops, of what they do in long ones


def prologue_pays(
    target: Target, threads: int, before: GemmKernel, kernel: GemmKernel, side: str
) -> bool:
    """Tell whether a product that computes the operand of a side takes less time than before."""
    plan = plan_for(kernel, target)
    if plan.way != "outer" or plan.units == 0 or _sums(plan) != _sums(plan_for(before, target)):
        return False
    x, y = sides_of(kernel, plan.product)
    row_bytes = plan.product.k * kernel.out.dtype.itemsize
    if (side == "x") != plan.product.swapped:
        price = _price_of_bytes(plan.product.m * row_bytes, target)
        times = _times_x(plan, x, threads)
        return _x_by_vectors(plan, x) and _is_cheaper(x, times, price, target)
    price = _price_of_bytes(plan.product.n * row_bytes, target)
    return _y_by_vectors(plan, y) and _is_cheaper(y, _times_y(plan, y), price, target)


def _sums(plan: GemmPlan) -> Hashable:
    """Return all that decides in which order elements of the result are added up."""
    return plan.way, plan.product.swapped, plan.depth


def _x_by_vectors(plan: GemmPlan, x: Side) -> bool:
    by_row = x.strides[0].across == 1
    return x.source(by_row=by_row).by_vectors and (not by_row or min(plan.depths) >= plan.lanes)


def _y_by_vectors(plan: GemmPlan, y: Side) -> bool:
    by_row = y.strides[0].across == 1
    lengths = (plan.product.n,) if by_row else plan.depths
    return y.source(by_row=by_row).by_vectors and min(lengths) >= plan.lanes


def _price_of_bytes(size: int, target: Target) -> float:
    """Return what a byte costs of a matrix that is written and read soon after."""
    if size <= target.l1_bytes:
        return PER_BYTE * IN_FIRST_CACHE
    return PER_BYTE * (IN_SECOND_CACHE if size <= target.l2_bytes // 2 else 1.0)


def _is_cheaper(side: Side, times: Size, price: float, target: Target) -> bool:
    """Compare computing elements each time they are packed with storing and reading them."""
    value = side.value
    assert value is not None
    stored, read = value.dtype.itemsize * price, _bytes_read(side) * price
    computed = expression_cost([value], target)
    packed = read + computed * (1.0 if _is_cheap(value) else INTERRUPTED)
    return bool(times * packed <= read + computed + (1 + times) * stored)


def _is_cheap(value: Expr) -> bool:
    return all(expr.kind in CHEAP for expr in postorder([value]))


def _bytes_read(side: Side) -> int:
    """Return the bytes read for an element, as if what is repeated cost nothing."""
    pairs = zip(side.strides, side.elements, strict=True)
    return sum(bytes_of(element) for s, element in pairs if s.down and s.across)


def _times_x(plan: GemmPlan, x: Side, threads: int) -> Size:
    """Return how often an element of x is packed: for each part of the work and strip of it."""
    groups = size_of(plan.product.batch) * plan.row_groups
    parts = max(1, -(-plan.chunks(threads) // groups))
    strips = 1 if plan.group == 1 else max(1, -(-plan.panels // parts // plan.strip))
    return parts * strips * _repeated(plan, x)


def _times_y(plan: GemmPlan, y: Side) -> Size:
    """Return how often an element of y is packed: for each group of blocks of rows."""
    return plan.row_groups * _repeated(plan, y)


def _repeated(plan: GemmPlan, side: Side) -> int:
    """Return for how many matrices of the batch an operand is the same."""
    sizes = enumerate(plan.product.batch)
    return size_of(n for axis, n in sizes if not any(s.batch[axis] for s in side.strides))
