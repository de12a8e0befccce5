"""What the host does itself, whatever runs the kernels between: call operators, drive loops.

Loops and calls share memory with the kernels: `read` gives the array of a view, `word` the number
that windows move with.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.dispatch import canonical
from ..core.effects import TripCount
from ..graph.layout import has_unknown_sizes
from ..graph.node import resolve_attrs
from ..graph.run import Sizes, bind_sizes
from ..lower.kernels import CallKernel, LoopKernel
from ..lower.storage import Buffer, View

Array = np.ndarray[Any, Any]
Read = Callable[[View], Array]
Word = Callable[[Buffer], Array]
Run = Callable[[], object]


def repeat(kernel: LoopKernel, test: Run, body: Run, read: Read, word: Word) -> None:
    """Repeat a body: so many times, or while the test holds, or until the body stops it."""
    index, half = word(kernel.index), word(kernel.half)
    index[...], half[...] = first_index(kernel), 0
    taken = 0
    with TripCount() as at:
        while kernel.length is None or taken < kernel.length:
            test()
            if kernel.holds is not None and not read(kernel.holds):
                return
            at(int(index))
            body()
            taken += 1
            index += -1 if kernel.reverse else 1
            half[...] = 1 - half
            if kernel.stops is not None and read(kernel.stops):
                return


def first_index(kernel: LoopKernel) -> int:
    """Return the place that the first step of a loop works on."""
    return kernel.length - 1 if kernel.reverse and kernel.length is not None else 0


def behind_window(buffer: Buffer, offset: int, word: Word) -> tuple[Buffer, int]:
    """Return the buffer behind windows, and where an element of the window is in it now."""
    while buffer.window is not None:
        window = buffer.window
        offset += window.offset + int(word(window.word)) * window.step
        buffer = window.buffer
    return buffer, offset


def shown(array: Array, view: View) -> Array:
    """Return the part of a buffer's array that a view shows; raise if it leaves the buffer."""
    flat = np.ascontiguousarray(array).reshape(-1)  # a feed may have gaps
    return strided(flat, view.shape, view.strides, view.offset)


def strided(flat: Array, shape: Any, strides: Any, offset: int) -> Array:
    """Return elements of a flat array by strides; raise if some lie outside."""
    if 0 in shape:
        return np.zeros(shape, flat.dtype)
    steps = [step * flat.itemsize for step in strides]
    return np.ndarray(shape, flat.dtype, flat, offset * flat.itemsize, steps)


def call_operator(
    kernel: CallKernel, read: Read, objects: dict[Buffer, Array], sizes: Sizes
) -> None:
    """Call an operator on arrays, and store what it returns.

    objects   takes results whose shapes only the run can tell, `sizes` what they tell
    """
    op = kernel.op
    given = [None if view is None else read(view) for view in kernel.inputs]
    operands: list[Any] = given
    if op.variadic:
        fixed = len(op.inputs) - 1
        operands = [*given[:fixed], given[fixed:]]
    inside = {"sizes": sizes} if op.kind == "control" else {}
    with np.errstate(all="ignore"):
        made = op.kernel(*operands, *_attrs(kernel, given, sizes), **inside)
    results = [made] if op.outputs == 1 else list(made)
    for view, result in zip(kernel.outputs, results, strict=True):
        if view.buffer.kind == "object":
            objects[view.buffer] = np.asarray(result)
            bind_sizes(view.buffer, np.shape(result), sizes)
        else:
            read(view)[...] = result


def _attrs(kernel: CallKernel, given: list[Any], sizes: Sizes) -> tuple[Any, ...]:
    """Return the attributes of a call; what only this run can tell is put in and checked."""
    if not sizes or not kernel.is_dynamic:  # nothing was told yet: that is soon looked up
        return kernel.attrs
    attrs = resolve_attrs(kernel.attrs, sizes)
    if kernel.op.kind == "control" or not has_unknown_sizes(kernel.op, kernel.inputs):
        return attrs
    return canonical(kernel.op, tuple(given), attrs)
