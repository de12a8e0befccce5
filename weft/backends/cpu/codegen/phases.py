"""Plan a row kernel: what is computed in which pass over a row.

A value per row (a mean, a maximum) is complete only after a pass over the row's elements; what
needs it belongs to the next pass. Expressions that a later pass needs again are computed again if
that is cheap, else kept: in an output that is written later anyway, or in a row of scratch memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....core.dim import is_known
from ....core.scalar.builder import CHEAP, Expr, postorder
from ....lower.kernels import Output, RowKernel, ScatterKernel
from .picks import Pick, pick_of

SCRATCH_BYTES = 1 << 14  # of a row: several of them stay in the first-level cache


class Phases:
    """The passes of a row kernel.

    full      expressions that vary along the row
    phase     the pass in which each expression is computed
    count     the number of passes
    picks     sums that are one element of the row, which is computed without a pass
    kept      expressions whose values a later pass loads again
    places    the output operands that hold kept expressions; others have scratch memory
    streamed  the output operands that are written past the caches: given, but those that hold
              something too large for scratch memory
    """

    def __init__(
        self, kernel: RowKernel | ScatterKernel, streamed: frozenset[int] = frozenset()
    ) -> None:
        self.kernel = kernel
        self.streamed = streamed
        self.order = postorder([output.value for output in kernel.outputs])
        self.full: set[int] = set()
        self.phase: dict[int, int] = {}
        self.picks: dict[int, Pick] = {}
        for expr in self.order:
            self._place(expr)
        reduced = [e for e in self.order if e.kind == "reduce"]
        self.reductions = [e for e in reduced if id(e) not in self.picks]
        needed = [self.phase[id(o.value)] for o in kernel.outputs]
        needed += [self.phase[id(e.args[0])] for e in self.reductions]
        self.count = 1 + max(needed)
        self.kept = self._find_kept()
        self.places = self._find_places()
        self.streamed -= frozenset(self.places.values())

    def is_full(self, expr: Expr) -> bool:
        """Tell whether an expression varies along the row."""
        return id(expr) in self.full

    def _place(self, expr: Expr) -> None:
        if expr.kind == "load":
            if self.kernel.operands[expr.data].strides[-1] != 0:
                self.full.add(id(expr))
            self.phase[id(expr)] = 0
        elif expr.kind == "index":
            self.full.add(id(expr))
            self.phase[id(expr)] = 0
        elif expr.kind == "iota":
            if self.kernel.iotas[expr.data][-1] != 0:
                self.full.add(id(expr))
            self.phase[id(expr)] = 0
        elif expr.kind == "reduce":
            self._reduce(expr)
        else:
            self.phase[id(expr)] = max((self.phase[id(a)] for a in expr.args), default=0)
            if any(id(a) in self.full for a in expr.args) or self._moves_on(expr):
                self.full.add(id(expr))

    def _reduce(self, expr: Expr) -> None:
        """Place a reduction: after the pass over its elements, unless it is one of them."""
        pick = pick_of(expr, self.is_full)
        if pick is None or not self._lies_in_sequence(pick.value):
            self.phase[id(expr)] = 1 + self.phase[id(expr.args[0])]
        else:
            self.picks[id(expr)] = pick
            self.phase[id(expr)] = self.phase[id(expr.args[0])]

    def _lies_in_sequence(self, expr: Expr) -> bool:
        """Tell whether what is read along the row lies there as its elements do, not turned."""
        read = {e.data for e in postorder([expr]) if e.kind == "load" and self.is_full(e)}
        return all(self.kernel.operands[i].strides[-1] == 1 for i in read)

    def _moves_on(self, expr: Expr) -> bool:
        """Tell whether a load by an offset varies along the row of itself."""
        return expr.kind == "load_at" and self.kernel.operands[expr.data[0]].strides[-1] != 0

    def roots(self, phase: int) -> list[Expr]:
        """Return what a pass computes along the row: outputs to store and rows to reduce."""
        stored = [o.value for o in self.kernel.outputs if self.per_element(o)]
        reduced = [e.args[0] for e in self.reductions]
        return [e for e in dict.fromkeys((*stored, *reduced)) if self._pass_of(e) == phase]

    def per_element(self, output: Output) -> bool:
        """Tell whether an output takes a value for every element, be it always the same."""
        return output.way is not None or self.kernel.operands[output.operand].strides[-1] != 0

    def _pass_of(self, expr: Expr) -> int:
        return self.phase[id(expr)]

    def _find_kept(self) -> dict[int, Expr]:
        """Return the expressions worth keeping from one pass for a later one."""
        kept: dict[int, Expr] = {}
        for phase in range(1, self.count):
            for expr in postorder(self.roots(phase)):
                for arg in expr.args:
                    earlier = self.is_full(arg) and self.phase[id(arg)] < self.phase[id(expr)]
                    if earlier and expr.kind != "reduce" and self._is_dear(arg):
                        kept[id(arg)] = arg
        return kept

    def _find_places(self) -> dict[int, int]:
        """Return which outputs hold kept expressions; what finds no room is not kept after all."""
        while True:
            places = store_places(self.kernel, self)
            homeless = [key for key, expr in self.kept.items() if self._is_homeless(expr, places)]
            if not homeless:
                return places
            for key in homeless:
                del self.kept[key]

    def _is_homeless(self, expr: Expr, places: dict[int, int]) -> bool:
        return id(expr) not in places and not self.fits_scratch(expr)

    def fits_scratch(self, expr: Expr) -> bool:
        """Tell whether a row of an expression's values is small enough for scratch memory."""
        known = is_known([self.kernel.columns])
        return known and bool(self.kernel.columns * expr.dtype.itemsize <= SCRATCH_BYTES)

    def is_stored(self, expr: Expr) -> bool:
        """Tell whether a kept expression is an output itself, which needs no second place."""
        place = self.places.get(id(expr))
        return any(o.operand == place and o.value is expr for o in self.kernel.outputs)

    def last_uses(self) -> dict[int, int]:
        """Return the last pass that loads each kept expression."""
        last: dict[int, int] = {}
        for phase in range(self.count):
            kept_now = [e for key, e in self.kept.items() if self.phase[key] == phase]
            stack, seen = [*self.roots(phase), *kept_now], set[int]()
            while stack:
                expr = stack.pop()
                if id(expr) in seen:
                    continue
                seen.add(id(expr))
                if id(expr) in self.kept and self.phase[id(expr)] < phase:
                    last[id(expr)] = phase
                else:
                    stack.extend(a for a in expr.args if self.is_full(a))
        return last

    def _is_dear(self, expr: Expr) -> bool:
        below = [e for e in postorder([expr]) if self.is_full(e)]
        return any(e.kind not in CHEAP for e in below)


def store_places(kernel: RowKernel | ScatterKernel, phases: Phases) -> dict[int, int]:
    """Return, for kept expressions, an output operand that can hold them until it is written."""
    places: dict[int, int] = {}
    taken: set[int] = set()
    last = phases.last_uses()
    for key, expr in phases.kept.items():
        for output in kernel.outputs:
            number = output.operand
            free = number not in taken and output.way is None and phases.per_element(output)
            written = phases.phase[id(output.value)]
            later = phases.phase[key] < written and last.get(key, 0) <= written
            same = output.value is expr
            fits = output.value.dtype == expr.dtype and _unread(kernel, number)
            near = number not in phases.streamed or not phases.fits_scratch(expr)
            if free and fits and near and (later or same):
                places[key] = number
                taken.add(number)
                break
    return places


def _unread(kernel: RowKernel | ScatterKernel, number: int) -> bool:
    """Tell whether nothing in the kernel reads the memory behind an output."""
    buffer = kernel.operands[number].view.buffer
    others: Sequence[int] = [i for i in range(len(kernel.operands)) if i != number]
    return all(kernel.operands[i].view.buffer is not buffer for i in others)
