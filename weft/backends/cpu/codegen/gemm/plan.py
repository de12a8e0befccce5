"""Choose how a matrix product is computed: orientation, register tile, blocks, what is packed.

All sizes and strides are known, so the choice is made once, when the code is written. The ways:

    outer   elements of x are spread over vectors that run along the columns of y and out (Goto &
            van de Geijn 2008, "Anatomy of high-performance matrix multiplication")
    dot     vectors run along the inner dimension; for thin products whose operands both lie so
    sweep   rows of y are added up, each times an element of x; for one row of x
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from functools import lru_cache

from .....core.dim import size_max
from .....core.shape import Size, size_of
from .....lower.kernels import GemmKernel
from .....lower.split import product_work
from ..lane_sums import lane_sums_cost
from ..target import Target
from .product import Product, product_of, with_unit_strides

DOT_ROWS = 24  # dot products of more rows and columns would want blocks that stay in caches
SWEEP_VECTORS = 128
SWEEP_LEAST_DEPTH = 16
CHUNK_WORK = 1 << 19
PARTS_OF_THREAD = 4  # so many, that threads which began late or wait do not keep others waiting
MOST_VECTORS = 4
DOT_BLOCK = 4  # tiles of a block of rows, at least
BLOCKS_OF_CHUNK = 4
# What tiles of either kind take beside their multiplications, in the time of one of these.
LOAD_COST = 0.375
DOT_TILE_COST = 4.0
PACK_COST, STORE_COST, STORE_PART_COST = 6.0, 2.0, 5.0  # for each vector, or part of one
SCATTER_COST = 16.0
OUTER_COST = 80.0
WANTED_UNITS = 8
GROUP_LEAST_PANELS = 16
GROUP_LEAST_DEPTH = 192
GROUP_ROWS = 2200
STRIP_CACHES = 4  # second-level caches that a strip would fill: it is read in sequence, and rarely
MOST_ROWS = 384  # of a block: its part of a panel of the result stays near
LEAST_ROWS = 48  # rows of a block over which packing a panel of y is spread
PAGE_BYTES = 4096
LINE_BYTES = 64
STACK_LEAST_PANELS = 32  # that use a stack, so that packing rows that lie well pays
STACK_LEAST_DEPTH = 256
STACK_LEAST_CONFLICTING = 8  # panels that use rows which a cache has no room for side by side
CACHE_WAYS = 8  # rows that a first cache has room for at one place: most have as many ways
NEAR_BYTES = 512  # lines so near can be read side by side, without packing


@dataclass(frozen=True)
class Form:
    """A tile of the result that stays in registers: rows x vectors."""

    rows: int
    vectors: int


@dataclass(frozen=True)
class GemmPlan:
    """Everything the writers need to know about a product.

    way            "outer", "dot" or "sweep"
    form           the tile of whole panels (a panel is as many columns as the tile has)
    last           the tile of the last panel if that is narrower, else None
    depth          inner elements of a block
    row_block      rows that are worked on while a block of x stays in the cache
    pack_x, pack_y whether blocks are copied first, so that tiles read them in sequence
    group          blocks of rows that share packed panels of y
    strip          panels that are packed for them at a time
    far_x          whether what a block of rows reads of x is more than stays in the second cache
    """

    product: Product
    lanes: int
    way: str
    form: Form
    last: Form | None
    depth: Size
    row_block: Size
    pack_x: bool
    pack_y: bool
    group: Size = 1
    strip: Size = 1
    far_x: bool = False

    @property
    def width(self) -> int:
        """Return the columns of a panel."""
        return self.form.vectors * (1 if self.way == "dot" else self.lanes)

    @property
    def panels(self) -> Size:
        """Return how many panels the result has."""
        return -(-self.product.n // self.width)

    @property
    def row_blocks(self) -> Size:
        """Return how many blocks of rows the result has; the last has the rows of a tile at least.

        So tiles need not be lower than others: the last one of a block begins higher, and does not
        store the rows that it has in common with the one before.
        """
        beyond = self.product.m - self.highest_tile + 1  # rows at which another block may begin
        return size_max(1, -(-beyond // self.row_block))

    @property
    def row_groups(self) -> Size:
        """Return how many groups the blocks of rows make."""
        return -(-self.row_blocks // self.group)

    @property
    def highest_tile(self) -> int:
        """Return the most rows of a tile."""
        return max(self.form.rows, self.last.rows if self.last else 0)

    @property
    def last_rows(self) -> Size:
        """Return the rows of the last block."""
        return self.product.m - (self.row_blocks - 1) * self.row_block

    @property
    def units(self) -> Size:
        """Return how many pieces the work can be divided into: panels of a group of row blocks."""
        if self.product.m == 0 or self.product.n == 0:
            return 0
        return size_of(self.product.batch) * self.row_groups * self.panels

    @property
    def inner_blocks(self) -> Size:
        """Return how many blocks the inner dimension has; at least one, perhaps empty."""
        return size_max(1, -(-self.product.k // self.depth))

    @property
    def depths(self) -> tuple[int, ...]:
        """Return the depths of inner blocks that occur."""
        last = self.product.k - (self.inner_blocks - 1) * self.depth
        return (last,) if self.inner_blocks == 1 else (self.depth, last)

    def chunks(self, threads: int) -> Size:
        """Return into how many parts the units are worth dividing among threads."""
        product = self.product
        work = product_work(size_of(product.batch), product.m, product.n, product.k)
        # Each part packs x anew, and uses it for all its panels; sweeps read memory in long runs.
        once = self.pack_x or self._reads_x_often(threads)
        each = 1 if once else 2 if self.way == "sweep" else PARTS_OF_THREAD
        wanted = threads * each if threads > 1 else 1
        parts = max(1, min(self.units, work // CHUNK_WORK, wanted))
        return parts - parts % threads if parts > threads else parts

    def _reads_x_often(self, threads: int) -> bool:
        """Tell whether small parts would each read more of x, which is far, than of y."""
        columns = self.units // (PARTS_OF_THREAD * threads) * self.width
        return bool(self.far_x and columns < self.row_block)


def plan_for(kernel: GemmKernel, target: Target) -> GemmPlan:
    """Return how a kernel is computed on a machine."""
    return _plan(product_of(kernel), target, kernel.out.dtype.itemsize)


@lru_cache(maxsize=1024)
def _plan(product: Product, target: Target, itemsize: int) -> GemmPlan:
    lanes = target.vector_bytes // itemsize
    return with_whole_blocks(_free_plan(oriented(product, target, lanes), target, lanes, itemsize))


def with_whole_blocks(plan: GemmPlan) -> GemmPlan:
    """Let rows that are combined lie in one block of rows: one thread adds them up, in order."""
    block = plan.product.block
    if not block or plan.row_blocks == 1:
        return plan
    rows = max(1, round(plan.row_block / block)) * block
    group = plan.group if plan.group == 1 else -(-plan.group * plan.row_block // rows)
    return replace(plan, row_block=rows, group=group)


def _free_plan(product: Product, target: Target, lanes: int, itemsize: int) -> GemmPlan:
    if prefers_dot(product, target, lanes):
        return _dot_plan(product, target, lanes)
    if sweeps(product):
        form = Form(1, SWEEP_VECTORS)
        return GemmPlan(product, lanes, "sweep", form, None, product.k, 1, False, False)
    return outer_plan(product, target, lanes, itemsize)


# -- orientation -----------------------------------------------------------------------------------


def oriented(product: Product, target: Target, lanes: int) -> Product:
    """Return the product or its transposed, whichever has the better memory accesses."""
    either = _orientations(product)
    if prefers_dot(either[0], target, lanes):
        return max(either, key=lambda p: p.m)  # a call goes through many rows, but few columns
    return min(either, key=lambda p: _awkwardness(p, lanes))


def _orientations(product: Product) -> list[Product]:
    both = [product] if product.block or product.windows else [product, product.transposed()]
    return [with_unit_strides(p) for p in both]


def _awkwardness(product: Product, lanes: int) -> float:
    """Return a cost that compares the two orientations of a product, per element of x and y."""
    m, n = max(1, product.m), max(1, product.n)
    width = lanes * 2
    wasted = -(-n // lanes) * lanes / n  # lanes that compute nothing
    packing = 0.0 if product.y.across == 1 else 8.0 / m
    scattered = 0.0 if product.out.across == 1 else 0.5 + 16.0 / max(1, product.k)
    rows = 1.0 if m >= 4 or n < width else 1.5
    return float(wasted * rows + packing + scattered)


def prefers_dot(product: Product, target: Target, lanes: int) -> bool:
    """Tell whether both operands lie along the inner dimension, one is thin, and it is faster."""
    along = product.x.across == 1 and product.y.down == 1 and not product.windows
    if not along or product.k < 2 or not 0 < min(product.m, product.n) <= DOT_ROWS:
        return False
    other = min(_orientations(product), key=lambda p: _awkwardness(p, lanes))
    _, cost = dot_tile(product.m, product.n, product.k, target, lanes)
    return cost < _outer_cost(other, target, lanes)


def sweeps(product: Product) -> bool:
    """Tell whether a vector is multiplied with a matrix that lies along its rows."""
    along = product.y.across == 1 and product.out.across == 1
    plain_bias = product.swapped or product.bias in (None, 1)
    return product.m == 1 and along and plain_bias and product.k >= SWEEP_LEAST_DEPTH


# -- tiles and blocks ------------------------------------------------------------------------------


def _form(vectors: int, m: int, target: Target, highest: int | None = None) -> Form:
    """Return the tile of so many vectors, not above the highest, whose height divides m best.

    Registers are wanted for the sums, for a line of y and for one element of x; LLVM wants more
    where each element is used once only. Fewer sums than units x latency of the multipliers (about
    8) leave them idle.
    """
    sums = target.registers * 3 // 4 if vectors > 1 else target.registers // 2
    most = max(1, min(sums, target.registers - vectors - 1) // vectors)
    most = most if highest is None else min(most, highest)
    busy = -(-8 // vectors)

    def cost(rows: int) -> float:
        return -(-m // rows) * (max(rows, busy) + 0.5)

    return Form(min(range(1, min(most, max(1, m)) + 1), key=lambda r: (cost(r), -r)), vectors)


def outer_plan(product: Product, target: Target, lanes: int, itemsize: int) -> GemmPlan:
    """Return how a product is computed by outer products."""
    wide, last = _forms(product, target, lanes)
    width = wide.vectors * lanes
    panels = -(-product.n // width)
    pack_x = product.x_more is not None or _packs_x(product, panels, itemsize)
    if pack_x:
        last = _as_high(last, wide)
    elif _rows_conflict(product, itemsize):
        wide = _form(wide.vectors, product.m, target, CACHE_WAYS)
        last = last and _form(last.vectors, product.m, target, CACHE_WAYS)
    depth = _inner_block(product, target, width * itemsize, itemsize)
    step = math.lcm(wide.rows, last.rows if last else 1)
    rows = row_block_of(product, panels, step, depth * itemsize, target)
    plan = GemmPlan(
        product,
        lanes,
        "outer",
        wide,
        last,
        depth,
        rows,
        pack_x,
        product.y_more is not None or _packs_y(product, wide, lanes, itemsize, target),
        far_x=bool(min(rows, product.m) * product.k * itemsize > target.l2_bytes // 2),
    )
    return grouped(plan, target, wide.rows, depth * itemsize)


def _as_high(last: Form | None, wide: Form) -> Form | None:
    """Return the last tile as high as others: all of them read x in stacks of so many rows."""
    return Form(wide.rows, last.vectors) if last else None


def grouped(plan: GemmPlan, target: Target, step: int, row_bytes: int) -> GemmPlan:
    """Let several blocks of rows share the packed panels of a large product."""
    large = plan.panels >= GROUP_LEAST_PANELS and plan.product.k >= GROUP_LEAST_DEPTH
    if not (large and plan.row_blocks > 1 and plan.pack_y):
        return plan
    most = max(step, target.l2_bytes // 2 // row_bytes // step * step)
    groups = -(-plan.product.m // GROUP_ROWS)
    # Groups of as many blocks, and these of as many rows: threads get as many units each.
    group = -(-plan.product.m // (groups * most))
    rows = -(-plan.product.m // (groups * group) // step) * step
    strip = max(1, min(plan.panels, STRIP_CACHES * target.l2_bytes // (row_bytes * plan.width)))
    last = _as_high(plan.last, plan.form)
    return replace(plan, last=last, row_block=rows, group=group, strip=strip, pack_x=True)


def _forms(product: Product, target: Target, lanes: int) -> tuple[Form, Form | None]:
    """Return the tile of whole panels (few rows leave room for more vectors), and of the last."""
    vectors, m = 2, product.m
    while vectors < MOST_VECTORS and (vectors + 1) * (m + 1) + 1 <= target.registers:
        vectors += 1
    whole, rest = divmod(product.n, vectors * lanes)
    needed = -(-rest // lanes)
    if whole == 0:
        return _form(max(1, needed), m, target), None
    last = _form(needed, m, target) if 0 < needed < vectors else None
    return _form(vectors, m, target), last


def _inner_block(product: Product, target: Target, line_bytes: int, itemsize: int) -> int:
    """Return a block depth that lets a panel of y fill half of the first cache; evenly divided.

    Where few rows make use of a large y, the blocks are flat, so that memory is read along rows.
    """
    k, m = product.k, product.m
    most = _usual_depth(target, line_bytes)
    if product.y.across == 1 and k * product.n * itemsize > target.l2_bytes:
        most = min(most, max(32, m * m // 8))
    if k <= most * 3 // 2:
        return int(max(1, k))
    blocks = -(-k // most)
    return int(-(-k // blocks // 8) * 8)


def _usual_depth(target: Target, line_bytes: int) -> int:
    return max(64, target.l1_bytes // 2 // line_bytes)


def deepest_block(target: Target, vector_bytes: int) -> int:
    """Return what no block of the inner dimension is deeper than."""
    return _usual_depth(target, vector_bytes) * 3 // 2 + 8


def row_block_of(product: Product, panels: int, step: int, row_bytes: int, target: Target) -> int:
    """Return how many rows of x stay in the second cache, and leave enough units to divide."""
    most = max(step, target.l2_bytes // 2 // max(1, row_bytes) // step * step)
    whole = size_of(product.batch) * panels
    flops = 2 * size_of(product.batch) * product.m * product.n * product.k
    wanted = min(WANTED_UNITS, flops // CHUNK_WORK, whole * product.m // LEAST_ROWS)
    blocks = max(1, -(-product.m // min(most, MOST_ROWS)), -(-wanted // max(1, whole)))
    rows = -(-product.m // blocks)  # of as many rows each: threads get as many units
    return int(max(step, -(-rows // step) * step))


def _packs_x(product: Product, panels: int, itemsize: int) -> bool:
    """Tell whether to copy x to stacks, which tiles read in one sequence."""
    if product.x.across != 1:
        apart = product.x.across * itemsize
        if product.x.down == 1 and apart <= LINE_BYTES:
            return False  # it lies like a stack
        return panels >= (5 if apart <= NEAR_BYTES else 3)
    long = panels >= STACK_LEAST_PANELS and product.k >= STACK_LEAST_DEPTH
    return long or (panels >= STACK_LEAST_CONFLICTING and _rows_conflict(product, itemsize))


def _rows_conflict(product: Product, itemsize: int) -> bool:
    """Tell whether all rows of x fall into the same sets of the first cache, place by place.

    A tile that is higher than the cache has ways would fetch a line anew for each of its elements.
    """
    along = product.x.across == 1
    return bool(along and product.x.down * itemsize % PAGE_BYTES == 0 and product.m > 6)


def _packs_y(product: Product, form: Form, lanes: int, itemsize: int, target: Target) -> bool:
    if product.y.across != 1 or product.n % lanes:
        return True
    if product.m <= form.rows:
        return False
    return bool(product.k * product.y.down * itemsize > target.l1_bytes // 2)


def _dot_plan(product: Product, target: Target, lanes: int) -> GemmPlan:
    form, _ = dot_tile(product.m, product.n, product.k, target, lanes)
    rows = dot_rows(product, form) if product.m > product.n else max(1, product.m)
    return GemmPlan(product, lanes, "dot", form, None, max(1, product.k), rows, False, False)


def dot_rows(product: Product, form: Form) -> int:
    """Return the rows of a block: a few tiles, or as many as are some work."""
    row_work = product_work(1, 1, product.n, product.k)
    tiles = max(DOT_BLOCK, CHUNK_WORK // BLOCKS_OF_CHUNK // (row_work * form.rows))
    return form.rows * tiles


def dot_lanes(depth: Size, lanes: int) -> int:
    """Return the lanes that dot products use of vectors: no more than they have elements."""
    wide = 1
    while wide < lanes and wide < depth:
        wide *= 2
    return wide


def dot_tile(m: int, n: int, k: int, target: Target, lanes: int) -> tuple[Form, float]:
    """Return the tile of dot products that takes least time, and the time; `vectors` are columns.

    Sums must stay in registers, beside the lines of the lesser side and one of the other.
    """
    lanes = dot_lanes(k, lanes)

    def cost(form: Form) -> float:
        tiles = -(-m // form.rows) * -(-n // form.vectors)
        sums = lane_sums_cost(form.rows * form.vectors, lanes)
        return tiles * (-(-k // lanes) * _step_cost(form) + sums + DOT_TILE_COST)

    sizes = itertools.product(range(1, min(8, m) + 1), range(1, min(8, n) + 1))
    forms = [Form(r, c) for r, c in sizes if r * c + min(r, c) + 1 <= target.registers]
    best = min(forms, key=cost)
    return best, cost(best)


def _outer_cost(product: Product, target: Target, lanes: int) -> float:
    """Return what outer products would cost whose y is transposed first."""
    m, n, k = product.m, product.n, product.k
    vectors = -(-n // lanes)
    form = _forms(product, target, lanes)[0]
    steps = m * k * vectors * _step_cost(form) / (form.rows * form.vectors)
    whole, part = divmod(n, lanes)
    stored = STORE_COST * whole + (STORE_PART_COST if part else 0.0)
    if product.out.across != 1:
        stored = vectors * (SCATTER_COST + k / 2)
    return float(steps + PACK_COST * k * vectors + m * stored + OUTER_COST)


def _step_cost(form: Form) -> float:
    """Return what a step along the inner dimension costs: multiplications, and what they read."""
    return form.rows * form.vectors + LOAD_COST * (form.rows + form.vectors)
