"""Running sums and other recurrences along an axis, as loops that carry values.

An operator's `scan` rule says what one step does:

    @cumsum.scan
    def _(b, x, axis, exclusive, reverse):
        total = b.carry(0, b.result)
        b.next(total, total + b.cast(x, b.result))
        return total if exclusive else ...

Steps run in order, so results are the same bits as the reference kernel's; other axes are shared
out among threads.
"""

from __future__ import annotations

from collections.abc import Callable

from ..core.dtype import DType, int64
from ..core.scalar.builder import Expr, ScalarBuilder, computed_dtype, is_defined, postorder
from ..core.shape import size_of
from ..graph.node import Node, Value
from .kernels import Operand, Origins, ScanKernel
from .storage import View


class ScanBuilder(ScalarBuilder):
    """Makes the expressions of one step.

    carried   for each carried value: what it is before the first step, and after this one
    """

    def __init__(self) -> None:
        super().__init__()
        self.carried: list[tuple[Expr, Expr]] = []

    def carry(self, start: float, dtype: DType) -> Expr:
        """Return a value that is carried from step to step."""
        first = self.constant(start, dtype)
        value = self.make("carry", (), first.dtype, len(self.carried))
        self.carried.append((first, value))
        return value

    def next(self, carried: Expr, value: Expr) -> Expr:
        """Set what a carried value is in the next step, and return that."""
        first, _ = self.carried[carried.data]
        self.carried[carried.data] = (first, value)
        return value

    def step(self) -> Expr:
        """Return the number of the step."""
        return self.make("step", (), int64)


def scan_kernel(
    node: Node,
    view_of: Callable[[Value], View],
    new_result: Callable[[], View],
    origins: Origins,
) -> ScanKernel | None:
    """Return the kernel of a node with a scan rule; None if there is no code for it."""
    rule = getattr(node.op, "scan_rule", None)
    (result, *_) = node.outputs
    if rule is None or not size_of(result.shape):
        return None
    builder = ScanBuilder()
    builder.result = computed_dtype(result.dtype)
    values = [x for x in node.inputs if x is not None]
    args = [builder.widened(builder.load(i, x.dtype)) for i, x in enumerate(values)]
    value: Expr = builder.cast(rule(builder, *args, *node.attrs), result.dtype)
    parts = [value, *(after for _, after in builder.carried)]
    if not all(map(is_defined, postorder(parts))):
        return None
    axis = node.attr("axis")
    reverse = "reverse" in node.op.attrs and node.attr("reverse")
    views = [_along(view, axis, reverse) for view in (*map(view_of, values), new_result())]
    shape = views[-1].shape
    inner = len(shape) > 1 and all(view.strides[-1] in (0, 1) for view in views)
    loops = shape if inner else (*shape, 1)
    strides = [view.strides if inner else (*view.strides, 0) for view in views]
    operands = tuple(Operand(view, s) for view, s in zip(views, strides, strict=True))
    return ScanKernel(node.name, loops, operands, value, tuple(builder.carried), origins)


def _along(view: View, axis: int, reverse: bool) -> View:
    """Return a view with the scanned axis in front, in the order of the steps."""
    rest = [a for a in range(len(view.shape)) if a != axis]
    moved = view.permuted((axis, *rest))
    if not reverse:
        return moved
    step = moved.strides[0]
    last = moved.offset + (moved.shape[0] - 1) * step
    return View(moved.buffer, moved.shape, (-step, *moved.strides[1:]), last)
