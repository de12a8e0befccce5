"""What a verifier asks of the parts of kernels: views, loops, operands, expressions.

Sizes may be unknown: what is surely wrong is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.dim import Dim, bounds, may_equal, surely_less
from ..core.dtype import DType, bool_, int64
from ..core.scalar.builder import Expr, postorder
from ..core.scalar.functions import FUNCTIONS
from ..core.shape import Shape, Size
from .kernels.base import WAYS, Kernel, LoopNest, Output
from .storage import Buffer, View

if TYPE_CHECKING:
    from .program import KernelProgram

_ARGUMENTS = {
    **dict.fromkeys(("carry", "const", "index", "iota", "load", "step"), 0),
    **dict.fromkeys(("checked", "reduce"), 1),
    **{name: function.arity for name, function in FUNCTIONS.items()},
    "random": 4,
}
_INDICES = ("checked", "index", "iota", "step")


class VerificationError(RuntimeError):
    """A kernel program breaks a rule that back ends rely on."""


class Verifier:
    """Checks the kernels of a program, one after another.

    words   the least and the greatest value of each number that windows move with, where known
    """

    def __init__(self, program: KernelProgram) -> None:
        self.program = program
        self.where = "the program"
        self.words: dict[Buffer, tuple[Size, Size] | None] = {}
        self._seen: set[View] = set()

    def fail(self, message: str) -> NoReturn:
        """Refuse the program."""
        raise VerificationError(f"{self.where}: {message}")

    def check(self, kernel: Kernel, number: int) -> None:
        """Check one kernel, without those inside it."""
        self.where = f"kernel {number} ({kernel.kind} {kernel.name})"
        if any(number.__class__ is not int or number < 0 for number in kernel.origins):
            self.fail(f"its origins are no numbers of nodes: {kernel.origins}")
        views = kernel.views
        for view in views:
            self.buffer(view.buffer)
        kernel.verify(self)
        for i in kernel.written:
            self._writable(views[i].buffer)

    # -- memory ------------------------------------------------------------------------------------

    def buffer(self, buffer: Buffer) -> None:
        """Check that a buffer, and what is behind a window, is the program's."""
        known = self.program.buffers
        if not 0 <= buffer.number < len(known) or known[buffer.number] is not buffer:
            self.fail(f"{buffer} is not buffer {buffer.number} of the program")
        if (buffer.kind == "window") != (buffer.window is not None):
            self.fail(f"{buffer} is a window of nothing")
        if buffer.window is not None:
            self.buffer(buffer.window.buffer)
            self.buffer(buffer.window.word)
            if buffer.window.word not in self.words:
                self.fail(f"{buffer} moves with a word that no loop around or before counts")

    def _writable(self, buffer: Buffer) -> None:
        while buffer.window is not None:
            buffer = buffer.window.buffer
        if buffer.kind not in ("arena", "object"):
            self.fail(f"writes {buffer}, which is not the program's own")

    def view(self, view: View, what: str) -> None:
        """Check that a view lies within its buffer."""
        if view in self._seen or view.buffer.kind == "object":
            return
        if len(view.shape) != len(view.strides):
            self.fail(f"{what} has {len(view.shape)} sizes and {len(view.strides)} strides")
        self.sizes(view.shape, what)
        self.reach(view, view.shape, view.strides, what)
        if view.buffer.window is None:
            self._seen.add(view)

    def sizes(self, sizes: Iterable[Any], what: str) -> None:
        """Check that sizes are integers, or unknown ones, and not negative."""
        for size in sizes:
            if size.__class__ not in (int, Dim):
                self.fail(f"{what} has a size that is no integer: {size!r}")
            if surely_less(size, 0):
                self.fail(f"{what} has a negative size: {size}")

    def reach(self, view: View, shape: Shape, strides: Shape, what: str) -> None:
        """Check that all elements by some strides lie within the buffer behind a view."""
        if any(size.__class__ is int and size == 0 for size in shape):
            return
        low = high = view.offset
        for size, stride in zip(shape, strides, strict=True):
            low, high = _spread(low, high, size - 1, stride)
        buffer = view.buffer
        while (window := buffer.window) is not None:
            words = self.words[window.word]
            if words is None or surely_less(words[1], words[0]):  # not known, or never run
                return
            start = window.offset + words[0] * window.step
            low, high = _spread(low + start, high + start, words[1] - words[0], window.step)
            buffer = window.buffer
        if surely_less(low, 0) or surely_less(buffer.size - 1, high):
            self.fail(f"{what} reaches from {low} to {high} in {buffer}")

    def shape(self, view: View, wanted: Shape, what: str) -> None:
        """Check the shape of a view."""
        same = len(view.shape) == len(wanted)
        if not same or not all(map(may_equal, view.shape, wanted)):
            self.fail(f"{what} has shape {view.shape}, not {wanted}")

    def dtype(self, found: DType, wanted: DType, what: str) -> None:
        """Check a dtype."""
        if found != wanted:
            self.fail(f"{what} has dtype {found}, not {wanted}")

    def truth(self, view: View) -> None:
        """Check that a view is one truth value."""
        self.view(view, "a truth value")
        if view.shape != () or view.dtype != bool_:
            self.fail(f"a truth value is {view.dtype}{list(view.shape)}")

    @staticmethod
    def surely_less(a: Size, b: Size) -> bool:
        """Tell whether a size is less than another, whatever the unknown ones are."""
        return surely_less(a, b)

    # -- loops -------------------------------------------------------------------------------------

    def loops(self, kernel: LoopNest, iotas: Sequence[Shape] = ()) -> None:
        """Check the sizes of loops, and that all strides are for them."""
        if not kernel.loops:
            self.fail("has no loop")
        self.sizes(kernel.loops, "a loop")
        given = [*(operand.strides for operand in kernel.operands), *iotas]
        for strides in given:
            if len(strides) != len(kernel.loops):
                self.fail(f"strides {strides} are not for its {len(kernel.loops)} loops")

    def operands(self, kernel: LoopNest, moved: Collection[int] = ()) -> None:
        """Check where operands lie, but for those whose elements are found by computed offsets."""
        loaded = {e.data for e in postorder(kernel.roots) if e.kind == "load"}
        for number in sorted(loaded | (set(kernel.written) - set(moved))):
            operand = kernel.operands[number]
            self.reach(operand.view, kernel.loops, operand.strides, f"operand {number}")

    def outputs(self, outputs: Sequence[Output], operands: int, least: int = 1) -> None:
        """Check that outputs go to operands, each to another."""
        numbers = [output.operand for output in outputs]
        if len(numbers) < least:
            self.fail("stores nothing")
        if len(set(numbers)) < len(numbers):
            self.fail(f"two outputs go to one operand: {numbers}")
        if any(not 0 <= number < operands for number in numbers):
            self.fail(f"an output goes to none of its {operands} operands: {numbers}")

    # -- expressions -------------------------------------------------------------------------------

    def expressions(
        self,
        roots: Sequence[Expr],
        views: Sequence[View],
        *,
        iotas: int = 0,
        flag: View | None = None,
        carried: Sequence[DType] = (),
        rows: bool = False,
    ) -> None:
        """Check expressions over operands: their numbers, dtypes, and what they refer to."""
        for expr in postorder(list(roots)):
            self._arguments(expr)
            if expr.kind == "load":
                self._load(expr, expr.data, views)
            elif expr.kind == "load_at":
                self._load(expr, expr.data[0], views)
            elif expr.kind == "iota" and not 0 <= expr.data < iotas:
                self.fail(f"iota {expr.data} is none of its {iotas}")
            elif expr.kind == "checked":
                self._flag(expr.data[1], views, flag)
            elif expr.kind in ("reduce", "index") and not rows:
                self.fail(f"{expr.kind} has no row to go along")
            elif expr.kind in ("carry", "step"):
                self._carried(expr, carried)

    def _arguments(self, expr: Expr) -> None:
        expected = sum(expr.data[1:]) if expr.kind == "load_at" else _ARGUMENTS.get(expr.kind)
        if expected != len(expr.args):
            self.fail(f"{expr.kind} of {len(expr.args)} values has no meaning")
        taken = [arg.dtype for arg in expr.args]
        if not _agrees(expr, taken):
            self.fail(f"{expr.kind} of {', '.join(map(str, taken))} is not {expr.dtype}")
        if expr.kind == "reduce" and expr.data not in WAYS:
            self.fail(f"a row cannot be reduced by {expr.data!r}")

    def _load(self, expr: Expr, number: int, views: Sequence[View]) -> None:
        if not 0 <= number < len(views):
            self.fail(f"operand {number} is none of its {len(views)}")
        self.dtype(expr.dtype, views[number].dtype, f"a load of operand {number}")

    def _flag(self, number: int | None, views: Sequence[View], flag: View | None) -> None:
        if number is None:  # another kernel checks the same indices
            return
        if flag is None or not 0 <= number < len(views) or views[number].buffer != flag.buffer:
            self.fail(f"an index is checked, but operand {number} does not take the report")
        if self.program.flag is None or flag.buffer is not self.program.flag.buffer:
            self.fail("an index is checked, but the program does not look at the report")

    def _carried(self, expr: Expr, carried: Sequence[DType]) -> None:
        if expr.kind == "step":
            return
        if not 0 <= expr.data < len(carried) or carried[expr.data] != expr.dtype:
            self.fail(f"no value {expr.data} of {expr.dtype} is carried")


def _spread(low: Size, high: Size, turns: Size, step: Size) -> tuple[Size, Size]:
    """Return a range as far as turns, which are not negative, take it by steps of either sign."""
    least, most = bounds(step)
    by = turns * step
    return (low + by if most <= 0 else low), (high + by if least >= 0 else high)


def _agrees(expr: Expr, taken: Sequence[DType]) -> bool:
    """Tell whether an expression of some dtypes has the dtype that it says."""
    kind, dtype = expr.kind, expr.dtype
    if kind == "select":
        return taken[0] == bool_ and taken[1] == taken[2] == dtype
    if kind in FUNCTIONS and FUNCTIONS[kind].result == "bool":
        return dtype == bool_ and all(found == taken[0] for found in taken)
    if kind in _INDICES:
        return dtype == int64 and all(found == int64 for found in taken)
    if kind == "load_at":
        wanted = [int64] * expr.data[1] + [bool_] * expr.data[2]
        return list(taken) == wanted
    if kind == "bits":
        return taken[0].itemsize == dtype.itemsize
    if kind in ("cast", "random"):
        return True
    return all(found == dtype for found in taken)
