"""Compute operands of products from others where they are packed, instead of storing them.

An elementwise kernel whose result only a product reads (`relu(x) @ w`, a cast of its weights)
needs no loop of its own: the product applies it to what it packs. It reads the operands of that
kernel then, later than the kernel did, so nobody may write them in the meantime.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from ..core.scalar.builder import postorder
from ..core.shape import size_of
from ..lower.epilogues import AT_ONE_PLACE, MOST_STREAMS, renumbered
from ..lower.kernels import (
    GemmKernel,
    Kernel,
    Prologue,
    RowKernel,
    buffers_of,
    reached,
    written_buffers,
)
from ..lower.lifetimes import uses_of
from ..lower.storage import Buffer, View, contiguous_strides

SIDES = ("x", "y")

# Tells whether a product should compute the operand of a side: as it is, as it would be, the side.
Judge = Callable[[GemmKernel, GemmKernel, str], bool]


def fuse_prologues(
    kernels: Sequence[Kernel], kept: Collection[Buffer], pays: Judge
) -> list[Kernel]:
    """Return the kernels with elementwise ones joined to the products that take their results.

    `kept` are buffers that are wanted after the last kernel.
    """
    made: list[Kernel | None] = list(kernels)
    uses = uses_of(kernels)
    for j, kernel in enumerate(kernels):
        for side in SIDES if isinstance(kernel, GemmKernel) else ():
            product = made[j]
            assert isinstance(product, GemmKernel)
            i = _maker(kernels, product, side, uses, kept)
            fused = None if i is None else _fused(kernels[i], product, side)
            if i is None or fused is None or not _can_wait(kernels, i, j, uses, kept):
                continue
            if pays(product, fused, side):
                made[i], made[j] = None, fused
    return [kernel for kernel in made if kernel is not None]


def _maker(
    kernels: Sequence[Kernel],
    product: GemmKernel,
    side: str,
    uses: dict[Buffer, list[int]],
    kept: Collection[Buffer],
) -> int | None:
    """Return which kernel makes the operand of a side, if it does so for nobody else."""
    buffer = _operand(product, side).buffer
    if buffer.kind != "arena" or buffer in kept or len(uses[buffer]) != 2:
        return None
    if sum(view.buffer is buffer for view in product.views) != 1:
        return None
    maker = uses[buffer][0]
    return maker if isinstance(kernels[maker], RowKernel) else None


def _operand(product: GemmKernel, side: str) -> View:
    return product.x if side == "x" else product.y


def _fused(loops: Kernel, product: GemmKernel, side: str) -> GemmKernel | None:
    """Return a product that computes the operand of a side as a kernel does, if it can."""
    assert isinstance(loops, RowKernel)
    wanted = _operand(product, side)
    windows = side == "y" and product.windows is not None
    if windows or not _is_at_one_place(loops) or not _gives(loops, wanted):
        return None
    views = _operands_seen_as(loops, wanted)
    if views is None or any(v.buffer in written_buffers(product) for v in views.values()):
        return None
    order = sorted(views, key=lambda i: (-reached(views[i]), -views[i].dtype.itemsize, i))
    numbers = {i: number for number, i in enumerate(order)}
    (value,) = renumbered([loops.outputs[0].value], numbers)
    first, *extras = (views[i] for i in order)
    prologue = Prologue(value, tuple(extras))
    origins = (*loops.origins, *product.origins)
    if side == "x":
        return replace(product, x=first, x_from=prologue, origins=origins)
    return replace(product, y=first, y_from=prologue, origins=origins)


def _gives(loops: RowKernel, wanted: View) -> bool:
    """Tell whether a kernel makes the whole of what is wanted, in its dtype."""
    (output,) = loops.outputs
    return loops.operands[output.operand].view.whole and output.value.dtype == wanted.dtype


def _operands_seen_as(loops: RowKernel, wanted: View) -> dict[int, View] | None:
    """Return what a kernel loads as a product sees its result, by number; None if it cannot be."""
    (output,) = loops.outputs
    loaded = {e.data for e in postorder([output.value]) if e.kind == "load"}
    views = {i: _seen_as(loops.operands[i].view, wanted) for i in loaded}
    found = {i: view for i, view in views.items() if view is not None}
    complete = bool(found) and len(found) == len(views)
    return found if complete and _streams(found.values()) <= MOST_STREAMS else None


def _is_at_one_place(loops: RowKernel) -> bool:
    """Tell whether a kernel has one result, whose elements follow from those at their places."""
    if len(loops.outputs) != 1:
        return False
    (output,) = loops.outputs
    exprs = postorder([output.value])
    plain = output.way is None and loops.flag is None
    return plain and all(expr.kind in AT_ONE_PLACE for expr in exprs)


def _streams(views: Collection[View]) -> int:
    return sum(any(view.strides) for view in views)


def _seen_as(view: View, wanted: View) -> View | None:
    """Return an operand of a kernel as a product sees the whole of the kernel's result.

    That may have its axes in another order and shape, and repeated.
    """
    axes = [a for a, stride in enumerate(wanted.strides) if stride and wanted.shape[a] > 1]
    axes.sort(key=lambda a: -wanted.strides[a])
    shape = tuple(wanted.shape[a] for a in axes)
    in_sequence = tuple(wanted.strides[a] for a in axes) == contiguous_strides(shape)
    if wanted.offset or not in_sequence or size_of(shape) != wanted.buffer.size:
        return None
    found = view.reshaped(shape)
    if found is None:
        return None
    strides = [0] * len(wanted.shape)
    for axis, stride in zip(axes, found.strides, strict=True):
        strides[axis] = stride
    return View(found.buffer, wanted.shape, tuple(strides), found.offset)


# -- what happens in between -----------------------------------------------------------------------


def _can_wait(
    kernels: Sequence[Kernel],
    i: int,
    j: int,
    uses: dict[Buffer, list[int]],
    kept: Collection[Buffer],
) -> bool:
    """Tell whether what a kernel reads is still there for a later one, at no price."""
    loops = kernels[i]
    assert isinstance(loops, RowKernel)
    read = [buffer for buffer in buffers_of(loops) if buffer not in written_buffers(loops)]
    written = {b for kernel in kernels[i + 1 : j + 1] for b in written_buffers(kernel)}
    if any(buffer in written for buffer in read):
        return False
    later = [b for b in read if max(uses[b]) < j]
    if any(b.kind == "state" and _may_replace(written, kept, b) for b in later):
        return False
    (output,) = loops.outputs
    longer = sum(b.nbytes for b in later if b.kind == "arena")
    return j == i + 1 or longer <= loops.operands[output.operand].view.buffer.nbytes


def _may_replace(written: set[Buffer], kept: Collection[Buffer], state: Buffer) -> bool:
    """Tell whether one of some buffers could be the new value of a state, and take its memory."""
    return any(b in kept and (b.size, b.dtype) == (state.size, state.dtype) for b in written)
