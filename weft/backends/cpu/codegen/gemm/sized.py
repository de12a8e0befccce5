"""Choose how a matrix product is computed whose sizes only a run knows.

The code has every way that a product of known sizes might take. Which one it takes, and how deep
blocks of the inner dimension are, decides about the order in which products are added; so it is
found for the sizes of a run by what plans products of known sizes (plan.py), and told to the code
in words. The tiles are the same for all sizes: they do not matter to any sum.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import lcm

from .....core.dim import Dim, SizeVar, is_known, size_max, size_min, typical, unknown_size
from .....core.errors import GraphError, UnknownSizeError
from .....core.shape import Size
from .....lower.at_sizes import AtSizes
from .....lower.kernels import GemmKernel
from .....plan.arena import ALIGNMENT
from ..target import Target
from .outer import Rooms
from .plan import (
    DOT_ROWS,
    MOST_ROWS,
    SWEEP_VECTORS,
    Form,
    GemmPlan,
    deepest_block,
    dot_rows,
    grouped,
    oriented,
    outer_plan,
    plan_for,
    row_block_of,
    sweeps,
    with_whole_blocks,
)
from .product import Product, product_of, with_unit_strides

# Words of a product.
WAY, DEPTH, ROW_BLOCK, GROUP, STRIP, AREAS, UNITS = (
    unknown_size(f"{name} of a product")
    for name in ("way", "depth", "row block", "group", "strip", "areas", "units")
)
ALWAYS_ONE_BLOCK = 48  # inner elements: no product has less of them in a block
USUAL = 96  # at least, of a size that only a run knows: what is good for few is good enough then
DOT_FORM = Form(2, 4)


@dataclass(frozen=True)
class SizedProduct:
    """A product of sizes that only a run knows.

    plans    the ways that it can be computed, with sizes and words in the place of numbers; of two
             outer ones the second is for products of fewer rows than a tile of the first has
    """

    plans: tuple[GemmPlan, ...]
    itemsize: int
    target: Target

    @property
    def areas(self) -> int:
        """Return into how many parts the product may be divided, for each thread."""
        return 1 if self.plans[0].pack_x else 4

    def scratch_bytes(self) -> Size:
        """Return the most bytes that a part packs into; 0 if it needs no more than the stack."""
        outer = [plan for plan in self.plans if plan.way == "outer"]
        needed = [self._most_bytes(plan) for plan in outer if plan.pack_x or plan.group is GROUP]
        most: Size = 0
        for size in needed:
            most = size_max(most, size)
        return -(-most // ALIGNMENT) * ALIGNMENT

    def _most_bytes(self, plan: GemmPlan) -> Size:
        line = ALIGNMENT // self.itemsize
        depth = -(-self.depth_room // line) * line + line
        step = plan.highest_tile
        rows = size_min(plan.product.m, self._most_rows(plan)) + 3 * step
        strip = size_min(plan.panels, self._most_panels(plan)) if plan.group is GROUP else 1
        return (rows * depth + line + strip * plan.width * depth) * self.itemsize

    def _most_rows(self, plan: GemmPlan) -> int:
        """Return what no block of rows has more of: those that fill the second cache, if flat."""
        least = ALWAYS_ONE_BLOCK * self.itemsize
        return max(2 * MOST_ROWS, self.target.l2_bytes // 2 // least)

    def _most_panels(self, plan: GemmPlan) -> int:
        return 1 << 16

    @property
    def depth_room(self) -> int:
        """Return what no block of the inner dimension is deeper than."""
        deepest = deepest_block(self.target, self.plans[0].lanes * self.itemsize)
        k = self.plans[0].product.k
        return int(min(k, deepest)) if is_known([k]) else deepest

    def without_scratch(self) -> SizedProduct:
        """Return the product with no more packed than panels, which the stack has room for."""
        plans = (replace(plan, pack_x=False, group=1, strip=1) for plan in self.plans)
        return replace(self, plans=tuple(plans))

    def at(self, kernel: GemmKernel, at: AtSizes) -> tuple[int, GemmPlan]:
        """Return which of the plans is taken at the sizes of a kernel, with numbers in it."""
        fixed = plan_for(kernel, self.target)
        for number, plan in enumerate(self.plans):
            product = at.part(plan.product)
            if plan.way == fixed.way and (plan.way == "sweep" or product.m >= plan.form.rows):
                made = self._filled(replace(plan, product=product), fixed.depth)
                self._check_room(kernel, made)
                return number, made
        raise GraphError(f"{kernel.name}: no code for a product of {kernel.shape} by {fixed.way}")

    def bytes_of(self, plan: GemmPlan) -> int:
        """Return the bytes that a part of a product packs into, with numbers in its plan."""
        return int(Rooms(plan, self.itemsize).bytes) if plan.way == "outer" else 0

    def _check_room(self, kernel: GemmKernel, plan: GemmPlan) -> None:
        """Raise if a product would pack more than there is room for: its code does not look."""
        room = None if kernel.scratch is None else kernel.scratch.shape[1]
        deep = plan.way == "outer" and plan.depth > self.depth_room
        if deep or (room is not None and self.bytes_of(plan) > room):
            raise GraphError(f"{kernel.name}: no room to pack a product of {kernel.shape}")

    def _filled(self, plan: GemmPlan, depth: int) -> GemmPlan:
        """Return a plan whose words are numbers."""
        if plan.way != "outer":
            return replace(plan, depth=max(1, plan.product.k))
        step = _step(plan)
        depth = depth if plan.depth is DEPTH else max(1, plan.product.k)
        row_bytes = depth * self.itemsize
        rows = row_block_of(plan.product, plan.panels, step, row_bytes, self.target)
        in_groups = plan.group is GROUP
        made = replace(plan, depth=depth, row_block=rows, group=1, strip=1)
        if in_groups:
            made = grouped(made, self.target, plan.form.rows, row_bytes)
        return with_whole_blocks(made)


def sized_product(kernel: GemmKernel, target: Target) -> SizedProduct:
    """Return how a product of sizes that only a run knows is computed."""
    itemsize = kernel.out.dtype.itemsize
    lanes = target.vector_bytes // itemsize
    product = product_of(kernel)
    if 0 in kernel.shape:
        raise UnknownSizeError(f"{kernel.name}: an empty product is written for known sizes")
    usual = _usual(product)
    is_swapped = oriented(usual, target, lanes).swapped
    turned = with_unit_strides(product.transposed() if is_swapped else product)
    plans = _outer_plans(turned, target, lanes, itemsize)
    plans += _dot_plans(product, lanes) + _sweep_plans(product, lanes)
    return SizedProduct(tuple(plans), itemsize, target)


class _Usual(dict[SizeVar, int]):
    """Sizes that most products have, or more."""

    def __missing__(self, variable: SizeVar) -> int:
        return max(USUAL, int(typical(Dim((((variable,), 1),)))))


def _usual(product: Product) -> Product:
    """Return a product with usual sizes, as which tiles are chosen: of whole ones, at least.

    Rows are a power of two, as most batches are: tiles that divide those leave no rows over.
    """
    usual = AtSizes(_Usual()).part(product)
    if is_known([product.m]):
        return usual
    return replace(usual, m=1 << (usual.m - 1).bit_length())


def _step(plan: GemmPlan) -> int:
    return lcm(plan.form.rows, plan.last.rows if plan.last else 1)


def _outer_plans(product: Product, target: Target, lanes: int, itemsize: int) -> list[GemmPlan]:
    """Return the ways by outer products: for as many rows as a tile has or more, and for fewer."""
    usual = _usual(product)
    plans = [outer_plan(usual, target, lanes, itemsize)]
    if not is_known([product.m]) and plans[0].highest_tile > 2:
        plans.append(outer_plan(replace(usual, m=2), target, lanes, itemsize))
    return [_opened(plan, product) for plan in plans]


def _opened(plan: GemmPlan, product: Product) -> GemmPlan:
    """Return a plan for usual sizes with words in the place of what follows from sizes."""
    k = product.k
    one = is_known([k]) and k <= ALWAYS_ONE_BLOCK
    last = plan.last
    if last is not None and last.rows != plan.form.rows:
        last = Form(min(last.rows, plan.form.rows), last.vectors)
    in_groups = plan.group > 1
    return replace(
        plan,
        product=product,
        last=None if not is_known([product.n]) else last,
        depth=max(1, k) if one else DEPTH,
        row_block=ROW_BLOCK,
        group=GROUP if in_groups else 1,
        strip=STRIP if in_groups else 1,
    )


def _dot_plans(product: Product, lanes: int) -> list[GemmPlan]:
    """Return the way by dot products, if it may be taken at some sizes."""
    along = product.x.across == 1 and product.y.down == 1 and not product.windows
    thin = any(not is_known([size]) or size <= DOT_ROWS for size in (product.m, product.n))
    if not along or not thin:
        return []
    turned = not product.block and is_known([product.m]) and not is_known([product.n])
    tall = with_unit_strides(product.transposed() if turned else product)
    rows = 1 if is_known([tall.m]) and tall.m == 1 else DOT_FORM.rows
    columns = min(DOT_FORM.vectors, tall.n) if is_known([tall.n]) else DOT_FORM.vectors
    form = Form(rows, columns)
    block = dot_rows(tall, form) if is_known([tall.n, tall.k]) else 8 * rows
    return [GemmPlan(tall, lanes, "dot", form, None, tall.k, block, False, False)]


def _sweep_plans(product: Product, lanes: int) -> list[GemmPlan]:
    """Return the way by a sweep of rows, if it may be taken at some sizes."""
    found = []
    turned = [] if product.block or product.windows else [product.transposed()]
    for either in (product, *turned):
        deep = with_unit_strides(either)
        if sweeps(replace(deep, k=USUAL)):
            form = Form(1, SWEEP_VECTORS)
            found.append(GemmPlan(deep, lanes, "sweep", form, None, deep.k, 1, False, False))
    return found[:1]


def product_words(
    sized: SizedProduct, kernel: GemmKernel, at: AtSizes, threads: int
) -> tuple[dict[SizeVar, int], GemmPlan]:
    """Return what the words of a product are at the sizes of a kernel, and its plan there."""
    number, plan = sized.at(kernel, at)
    values = {
        WAY: number,
        DEPTH: plan.depth,
        ROW_BLOCK: plan.row_block,
        GROUP: plan.group,
        STRIP: plan.strip,
        AREAS: sized_chunks(sized, plan, threads),
        UNITS: plan.units,
    }
    return {_variable(word): value for word, value in values.items()}, plan


def sized_chunks(sized: SizedProduct, plan: GemmPlan, threads: int) -> int:
    """Return into how many parts a product is divided: no more than there are areas for."""
    return int(min(plan.chunks(threads), sized.areas * threads))


def _variable(word: Dim) -> SizeVar:
    variable = word.variable()
    assert variable is not None
    return variable
