"""Scattering: values added or written to computed places of a result.

An operator's `scatter` rule says where the elements of a tensor go:

    @take_adjoint.scatter
    def _(b, g, indices, shape, axis):
        i, *rest = b.over(g.shape)
        return b.put([b.index(indices.at(i), shape[axis]), *rest], g.at(i, *rest), "sum")

Values that meet in one element do so in the order of the loops, whatever the number of threads:
only loops whose turns touch different elements are shared out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..core.dtype import int64
from ..core.scalar.builder import Expr, ScalarBuilder, computed_dtype, is_defined, postorder
from ..core.shape import Shape, size_of
from ..graph.node import Node, Value
from .copies import copy_kernel
from .index_maps import Affine, Check, Coordinate, IndexMaps, Source
from .kernels import Kernel, Operand, Origins, Output, RowKernel, ScatterKernel
from .storage import View, contiguous_strides


@dataclass
class Put:
    """What a scatter rule gives.

    places   coordinates in the result
    value    what goes there
    way      "sum", "prod", "max", "min", or "set": the last one stays
    base     the operand that the result starts from; None for zeros
    shape    in which the places are counted, if not that of the result
    """

    places: Sequence[Coordinate]
    value: Expr
    way: str
    base: Source | None
    shape: Shape


class ScatterMaps(IndexMaps):
    """What a scatter rule is given beside its operands."""

    def over(self, shape: Shape) -> list[Affine]:
        """Say over which elements the rule runs; return their coordinates."""
        self.whole = self.shape
        self.shape = shape
        axes = range(len(shape))
        self.coordinates = [Affine(self, tuple(int(a == b) for b in axes)) for a in axes]
        return self.coordinates

    def put(
        self,
        places: Sequence[Coordinate],
        value: Expr,
        way: str,
        *,
        base: Source | None = None,
        shape: Shape | None = None,
    ) -> Put:
        """Return what goes where."""
        return Put(places, value, way, base, self.whole if shape is None else shape)


class ScatterLoops:
    """The loop nest of one scatter, over the axes of its values."""

    def __init__(self, domain: Callable[[], Shape], table: Callable[[Any], View]) -> None:
        self.builder = ScalarBuilder()
        self.operands: list[View] = []
        self.iotas: list[tuple[int, ...]] = []
        self.domain = domain
        self.table = table
        self.error_flag: Callable[[Check | None, bool], View | None] | None = None
        self.flag_view: View | None = None

    def iota(self, strides: tuple[int, ...]) -> Expr:
        """Return the sum of each loop's counter times its stride."""
        if strides not in self.iotas:
            self.iotas.append(strides)
        return self.builder.iota(self.iotas.index(strides))

    def load_from(self, view: View, offset: Expr | None, guard: Expr | None) -> Expr:
        """Return the element of a view of the loops' shape, moved on by an offset."""
        if view not in self.operands:
            self.operands.append(view)
        number = self.operands.index(view)
        if offset is None and guard is None:
            return self.builder.load(number, view.dtype)
        return self.builder.load_at(number, view.dtype, offset, guard)

    def load_here(self, value: Value) -> Expr:
        """Refuse: a scatter rule names the places of what it reads."""
        raise TypeError("a scatter rule reads its operands by x.at(...)")

    def flag(self, check: Check | None) -> int | None:
        """Return the operand that takes the report of an index out of range, if need be."""
        assert self.error_flag is not None
        domain = self.domain()
        view = self.error_flag(check, size_of(domain) > 0)
        if view is None:
            return None
        self.flag_view = view
        spread = View(view.buffer, domain, (0,) * len(domain))
        if spread not in self.operands:
            self.operands.append(spread)
        return self.operands.index(spread)


def scatter_kernels(
    node: Node,
    view_of: Callable[[Value], View],
    new_result: Callable[[], View],
    error_flag: Callable[[Check | None, bool], View | None],
    table: Callable[[Any], View],
    origins: Origins,
) -> list[Kernel] | None:
    """Return the kernels of a node with a scatter rule; None if the rule gives none."""
    rule = getattr(node.op, "scatter_rule", None)
    if rule is None or len(node.outputs) != 1:
        return None
    (result,) = node.outputs
    loops = ScatterLoops(lambda: places.shape, table)
    loops.error_flag = error_flag
    places = ScatterMaps(loops, result.shape, result.dtype)
    args: list[Any] = [
        None if x is None else Source(places, x, i, view_of) for i, x in enumerate(node.inputs)
    ]
    if node.op.variadic:
        fixed = len(node.op.inputs) - 1
        args = [*args[:fixed], args[fixed:]]
    put: Put | None = rule(places, *args, *node.attrs)
    if put is None or not _has_code(put, result):
        return None
    whole = new_result()
    start = _start(node, whole, put, origins)
    if not size_of(places.shape) or not size_of(result.shape):
        return [start]
    return [start, _kernel(node, loops, places, put, whole, origins)]


def _has_code(put: Put, result: Value) -> bool:
    if put.way != "set" and (
        result.dtype.kind == "b" or computed_dtype(result.dtype) != result.dtype
    ):
        return False
    return all(map(is_defined, postorder([put.value])))


def _start(node: Node, whole: View, put: Put, origins: Origins) -> RowKernel:
    """Return the kernel that makes the result before anything is scattered into it."""
    base = None if put.base is None else put.base.view_of(put.base.value)
    if base is not None:
        return copy_kernel(node.name, base, whole)
    zero = ScalarBuilder().constant(0, whole.dtype)
    loops, strides = (size_of(whole.shape),), (1,)
    return RowKernel(node.name, loops, (Operand(whole, strides),), (Output(0, zero),), origins)


def _kernel(
    node: Node,
    loops: ScatterLoops,
    places: ScatterMaps,
    put: Put,
    whole: View,
    origins: Origins,
) -> ScatterKernel:
    strides, offset = _destination(put, loops.builder, len(places.shape))
    order, apart = _loop_order(put.places, strides, places.shape)
    value = loops.builder.cast(put.value, whole.dtype)

    def in_order(items: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(items[a] if a is not None else 0 for a in order)

    sizes = tuple(places.shape[a] if a is not None else 1 for a in order)
    operands = [Operand(view, in_order(view.strides)) for view in loops.operands]
    target = Operand(whole, in_order(strides))
    return ScatterKernel(
        node.name,
        sizes,
        apart,
        (*operands, target),
        offset,
        value,
        put.way,
        origins,
        tuple(in_order(s) for s in loops.iotas),
        loops.flag_view,
    )


def _destination(put: Put, builder: ScalarBuilder, ndim: int) -> tuple[tuple[int, ...], Expr]:
    """Return the strides of the result for the loops, and the offset that is computed."""
    strides, offset = [0] * ndim, builder.constant(0, int64)
    for place, step in zip(put.places, contiguous_strides(put.shape), strict=True):
        if isinstance(place, (Expr, int)):
            offset = offset + place * step
        else:
            strides = [s + p * step for s, p in zip(strides, place.strides, strict=True)]
            offset = offset + place.constant * step if place.constant else offset
    return tuple(strides), offset


def _loop_order(
    places: Sequence[Coordinate], strides: tuple[int, ...], domain: Shape
) -> tuple[list[int | None], int]:
    """Return the axes in the order of the loops, and how many lead that touch different elements.

    The last loop is a row of such elements, or None: a row of one.
    """
    apart = {
        axis
        for place in places
        if isinstance(place, Affine)
        for axis in [_only_axis(place)]
        if axis is not None
    }
    last = len(domain) - 1
    column = last if last in apart and strides[last] == 1 else None
    leading = [a for a in sorted(apart) if a != column]
    rest = [a for a in range(len(domain)) if a not in apart]
    return [*leading, *rest, column], len(leading)


def _only_axis(place: Affine) -> int | None:
    """Return the one axis that a coordinate moves with."""
    axes = [axis for axis, stride in enumerate(place.strides) if stride]
    return axes[0] if len(axes) == 1 else None
