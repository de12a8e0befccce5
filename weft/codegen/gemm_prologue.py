"""Decide which operands of products are computed where they are packed.

The decision must not depend on the number of threads: a product of an operand that lies otherwise
may add up its parts in another order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial

from ..core.shape import size_of
from ..lower.kernels import GemmKernel, Kernel
from ..lower.prologues import fuse_prologues
from ..lower.storage import Buffer
from .cost import PER_BYTE, expression_cost
from .gemm_plan import Plan, plan_for
from .gemm_side import Side, sides_of
from .target import Target
from .values import bytes_of

USUAL_THREADS = 4  # among which the work is supposed to be divided


def with_prologues(
    target: Target, kernels: Sequence[Kernel], kept: Collection[Buffer]
) -> list[Kernel]:
    """Return the kernels with operands of products computed by the products, where that pays."""
    return fuse_prologues(kernels, kept, partial(prologue_pays, target))


def prologue_pays(target: Target, kernel: GemmKernel, side: str) -> bool:
    """Tell whether a product that computes the operand of a side takes less time than before."""
    plan = plan_for(kernel, target)
    if plan.way != "outer" or plan.units == 0:
        return False
    x, y = sides_of(kernel, plan.product)
    as_x = (side == "x") != plan.product.swapped
    if as_x:
        return _x_by_vectors(plan, x) and _is_cheaper(plan, x, _times_x(plan, x))
    return _y_by_vectors(plan, y) and _is_cheaper(plan, y, _times_y(plan, y))


def _x_by_vectors(plan: Plan, x: Side) -> bool:
    by_row = x.strides[0].across == 1
    lengths = plan.depths if by_row else (plan.last_rows, min(plan.row_block, plan.product.m))
    return x.source(by_row=by_row).by_vectors and min(lengths) >= plan.lanes


def _y_by_vectors(plan: Plan, y: Side) -> bool:
    by_row = y.strides[0].across == 1
    lengths = (plan.product.n,) if by_row else plan.depths
    return y.source(by_row=by_row).by_vectors and min(lengths) >= plan.lanes


def _is_cheaper(plan: Plan, side: Side, times: int) -> bool:
    """Compare computing elements each time they are packed with storing and reading them."""
    assert side.value is not None
    stored = side.value.dtype.itemsize * PER_BYTE
    each = expression_cost([side.value], plan.lanes) + _bytes_read(side) * PER_BYTE
    return times * each <= each + stored + times * stored


def _bytes_read(side: Side) -> int:
    """Return the bytes read for an element, as if what is repeated cost nothing."""
    pairs = zip(side.strides, side.elements, strict=True)
    return sum(bytes_of(element) for s, element in pairs if s.down and s.across)


def _times_x(plan: Plan, x: Side) -> int:
    """Return how often an element of x is packed: for each part of the work and strip of it."""
    groups = size_of(plan.product.batch) * plan.row_groups
    parts = max(1, -(-plan.chunks(USUAL_THREADS) // groups))
    strips = parts if plan.group == 1 else parts * -(-plan.panels // parts // plan.strip)
    return strips * _repeated(plan, x)


def _times_y(plan: Plan, y: Side) -> int:
    """Return how often an element of y is packed: for each group of blocks of rows."""
    return plan.row_groups * _repeated(plan, y)


def _repeated(plan: Plan, side: Side) -> int:
    """Return for how many matrices of the batch an operand is the same."""
    sizes = enumerate(plan.product.batch)
    return size_of(n for axis, n in sizes if not any(s.batch[axis] for s in side.strides))
