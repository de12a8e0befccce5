"""Cells on arrays, as machine code: forward, adjoint, and the gradients of what members share.

The graph of one member becomes that of many by vmap, its width a size that every run is told.
Three programs are made of it and of its adjoint: one for the results and what the adjoint takes of
them, one for the gradients of operands that differ between members, batch by batch, and one for
those of shared operands, weights above all, which runs once for the members of all batches: one
long product in place of many short ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import or_
from typing import Any

import numpy as np

from ..autodiff.reverse import gradients
from ..backends.cpu.runtime.launches import NativeCall
from ..core.config import config
from ..core.dim import LEAST, run_time_size
from ..core.dispatch import ERRORS
from ..core.dtype import Array, is_float
from ..core.errors import is_from_signal
from ..core.shape import TensorType, size_of
from ..eager.array_program import in_order
from ..eager.residuals import find_residuals
from ..graph.call import ProgramCall
from ..graph.frontend import placeholder
from ..graph.graph import Graph
from ..graph.node import Value
from ..graph.run import Program
from .kernels import run_batch
from .signatures import BatchSignature

EXACT = 16  # widths up to which code runs for just so many members
STEPS = 8  # widths that there are between one power of two and the next
FEW_LEFT = 128  # members up to which widths for what is left of batches are twice another
WIDE = 512  # members from which on a batch has totals of its own
MOST_WIDTHS = 256  # of which a program's code is kept at hand
MOST_WANTED = 3  # which operands have gradients: so many combinations before all have


def width_for(size: int) -> int:
    """Return the number of members that a batch of so many is run with.

    Each width takes a plan of memory: there are few, an eighth apart.
    """
    if size <= EXACT:
        return max(size, LEAST)
    step = (1 << (size - 1).bit_length()) // (2 * STEPS)
    return -(-size // step) * step


def width_within(size: int) -> int:
    """Return the largest number of members for which code runs that a batch of so many has."""
    if size <= EXACT:
        return size
    step = (1 << (size.bit_length() - 1)) // STEPS
    return size // step * step


def width_of_rest(size: int) -> int:
    """Return such a number for what is left of batches: of small ones there are fewer still.

    What is left is any number, and each width takes a plan.
    """
    return max(1 << (size - 1).bit_length(), LEAST) if size <= FEW_LEFT else width_for(size)


def filling(most: int) -> int:
    """Return how many members batches of up to so many are filled up with, at most."""
    return max(most // STEPS, LEAST)


class CellKernel:
    """Runs batches of a cell, and pulls their gradients back."""

    takes_stack = False  # of operands

    def __init__(self, signature: BatchSignature, types: Sequence[TensorType]) -> None:
        self.signature = signature
        self.types = types
        self.row_bytes = [size_of(t.shape) * t.dtype.itemsize for t in types]  # of each operand
        self.flags = tuple([spec.__class__ is int for spec in signature.specs])
        self._code: dict[tuple[bool, ...], CellCode] = {}
        made = frozenset(signature.outs)
        self._own = tuple(
            [
                flag and spec in made and is_float(t.dtype)
                for flag, spec, t in zip(self.flags, signature.specs, types, strict=True)
            ]
        )

    def width(self, size: int) -> int:
        """Return how many rows it is to be given for so many members."""
        return width_for(size)

    def run(
        self, operands: Sequence[Array], size: int, wanted: Sequence[bool]
    ) -> tuple[list[Array], Any]:
        """Return the results, and what `pull` needs to find the gradients of what is wanted."""
        code = self.code_for(tuple(wanted))
        given = [in_order(x) for x in operands]
        found = code.forward.run(given, width_for(size))
        results = [found[i][:size] for i in code.results]
        if code.adjoint is None:
            return results, None
        return results, SavedCell(code, given, [found[i] for i in code.kept], size)

    def pull(self, saved: SavedCell, seeds: Sequence[Array], retain: bool) -> list[Any]:
        """Return the gradients of the operands that differ between members."""
        code = saved.code
        given = [*saved.operands, *saved.kept, *[in_order(seed) for seed in seeds]]
        made = code.adjoint.run(given, width_for(saved.size))
        if code.shared:
            saved.add_up([*given, *made])
        found: list[Any] = [None] * len(self.flags)
        for i, k in zip(code.apart, code.found, strict=True):
            found[i] = made[k][: saved.size]
        return found

    def totals(self, saved: Sequence[SavedCell]) -> list[tuple[int, Array]]:
        """Return the gradients of shared operands, added up over batches."""
        found: list[tuple[int, Array]] = []
        for code in dict.fromkeys([x.code for x in saved]):
            if code.shared:
                slots = [self.signature.specs[i].index for i in code.shared]
                for made in code.added_up([x for x in saved if x.code is code]):
                    found += zip(slots, made, strict=True)
        return found

    def code_for(self, wanted: tuple[bool, ...]) -> CellCode:
        """Return the programs for the gradients of some operands."""
        wanted = self._with_own(wanted)
        found = self._code.get(wanted)
        if found is None:
            if any(wanted) and len(self._code) > MOST_WANTED:
                wanted = tuple([is_float(t.dtype) for t in self.types])
            found = self._code.setdefault(wanted, CellCode(self.signature, self.types, wanted))
        return found

    def code_of_all(self, wanted: tuple[bool, ...] | None) -> CellCode | None:
        """Return the programs, if it is of no account through which rows gradients flow.

        wanted   of which operands gradients are wanted, whatever rows they are; None where no
                 gradients are recorded
        """
        if wanted is None:
            return self.code_for((False,) * len(self.flags))
        asked = [
            flag and is_float(t.dtype) and not own
            for flag, t, own in zip(self.flags, self.types, self._own, strict=True)
        ]
        return self.code_for(wanted) if any(wanted) and not any(asked) else None

    def _with_own(self, wanted: tuple[bool, ...]) -> tuple[bool, ...]:
        """Return what is wanted, with operands of the kinds that the cell itself makes.

        The first step of a recurrent network begins with zeros, of which nobody wants gradients.
        Here it runs by the code of all other steps, so its share of the gradients of weights is in
        one product with theirs. Who looks for NaNs would find such as nobody has asked for.
        """
        if not any(wanted) or config.nan_trap or config.debug_interpret:
            return wanted
        return tuple(map(or_, wanted, self._own))


class SizedProgram:
    """A program whose code for the widths that were met is at hand."""

    def __init__(self, program: Program, what: str, width: Any) -> None:
        self._call = ProgramCall(program, what)
        self._width = width  # as shapes in the program name it
        self._known: dict[int, Any] = {}
        self._native: dict[int, NativeCall | None] = {}

    def native(self, width: int) -> NativeCall | None:
        """Return the program for so many members as a list of launches takes it, if that can be."""
        try:
            return self._native[width]
        except KeyError:
            feeds = [value.shape for value in self._call.program.feeds]
            told = [[width if n is self._width else n for n in shape] for shape in feeds]
            code = self._call.code_for(tuple(map(tuple, told)))
            self._native[width] = found = getattr(code, "native", None)
            return found

    def run(self, arrays: list[Array], width: int) -> list[Array]:
        """Return the fetches; a run that fails is made again the long way, which says why."""
        code = self._known.get(width)
        if code is None or config.debug_interpret or config.nan_trap:
            found: list[Array] = self._call.run(arrays)
            if len(self._known) < MOST_WIDTHS:
                self._known[width] = self._call.executable(arrays)
            return found
        fetched: list[Array] | None
        if code.checks_feeds:
            fetched = code.run_unchecked(tuple(arrays))
            return self._call.run(arrays) if fetched is None else fetched
        try:
            fetched = code.run(arrays)
        except ERRORS as error:
            if is_from_signal(error):
                raise
            return self._call.run(arrays)
        return fetched


class SavedCell:
    """What a batch left for its gradient: arrays of its width, of which `size` rows count.

    total   the gradients of shared operands, as far as it has such of its own
    rest    what those of the other members are computed from, and `left` how many these are
    """

    def __init__(
        self, code: CellCode, operands: Sequence[Array], kept: Sequence[Array], size: int
    ) -> None:
        self.code = code
        self.operands = operands
        self.kept = kept
        self.size = size
        self.total: list[Array] | None = None
        self.rest: list[Array] = []
        self.left = 0

    def add_up(self, arrays: Sequence[Array]) -> None:
        """Have the totals of a wide batch, from where it lies; others wait for one another."""
        code, width = self.code, width_within(self.size) if self.size >= WIDE else 0
        taken = [(arrays[i], has_rows) for i, has_rows in code.taken]
        self.total, self.left = None, self.size - width
        self.rest = [x[width : self.size] if rows else x for x, rows in taken]
        if width:
            self.total = code.totals.run([x[:width] if rows else x for x, rows in taken], width)
            self.rest = [x.copy() for x in self.rest] if self.left else []  # large ones may go


class CellCode:
    """The programs of a cell for the gradients of some operands.

    apart, shared   the operands with gradients: those that differ between members, and the others
    kept            which of the arrays that the first program makes the others take
    found           which of the arrays that the adjoint makes are the gradients of `apart`
    results         which of the arrays that the first program makes are results
    left, made      what the first program and the adjoint make, as values of the graph
    operands        what the first program takes
    given, seeds    what the adjoint takes, and the gradients of results, which are its last
    forms           what lists of launches know of it, by width, and of its adjoint
    writers         the functions that write its batches into these, by their form
    taken           which of operands, kept arrays, gradients of results and what the adjoint leaves
                    the program of totals takes, and whether there is a row for each member in it
    """

    def __init__(
        self, signature: BatchSignature, types: Sequence[TensorType], wanted: Sequence[bool]
    ) -> None:
        name = signature.name
        with Graph(name) as graph:
            width = run_time_size("width")
            flags = [spec.__class__ is int for spec in signature.specs]
            shapes = [
                (width, *t.shape) if f else t.shape for t, f in zip(types, flags, strict=True)
            ]
            feeds = [placeholder(s, t.dtype) for s, t in zip(shapes, types, strict=True)]
            outs = run_batch(signature, tuple(feeds), width)
            floats = [y for y in outs if is_float(y.dtype)]
            seeds = [placeholder(y.shape, y.dtype) for y in floats] if any(wanted) else []
            chosen = [x for x, flag in zip(feeds, wanted, strict=True) if flag]
            found = gradients(floats, chosen, seeds) if chosen else []
        pulled = dict(zip([i for i, flag in enumerate(wanted) if flag], found, strict=True))
        pulled = {i: g.value for i, g in pulled.items() if g is not None}
        self.apart = [i for i in pulled if flags[i]]
        self.shared = [i for i in pulled if not flags[i]]
        self.flags = flags
        self.width = width
        self.operands = [x.value for x in feeds]
        self.seeds = [s.value for s in seeds]
        results = [y.value for y in outs]
        self._kept: list[Value] = []
        self.adjoint: Any = None
        if pulled:
            self._plan_adjoint(graph, results, pulled, name)
        self.left = list(dict.fromkeys([*results, *self._kept]))
        self.results = [self.left.index(y) for y in results]
        self.kept = [self.left.index(x) for x in self._kept]
        self.forms: dict[int, Any] = {}
        self.writers: dict[Any, Any] = {}
        self.total_form: Any = None
        self.forward = SizedProgram(Program(graph, self.left, self.operands), name, width)

    def _plan_adjoint(
        self, graph: Graph, results: list[Value], pulled: dict[int, Value], name: str
    ) -> None:
        grads = list(pulled.values())
        self._kept = find_residuals(
            graph, self.operands, results, self.seeds, grads, keeps_functions=True
        )
        self.given = given = [*self.operands, *self._kept, *self.seeds]
        apart, shared = [pulled[i] for i in self.apart], [pulled[i] for i in self.shared]
        frontier = self._between(graph, apart, shared, set(given)) if shared else []
        self.made = made = list(dict.fromkeys([*apart, *frontier]))  # some are both
        self.found = list(map(made.index, apart))
        self.adjoint = SizedProgram(Program(graph, made, given), name, self.width)
        at_hand = [*given, *made]
        taken = self._feeds_of(graph, shared, at_hand)
        self.totals = SizedProgram(Program(graph, shared, taken), name, self.width)
        has_rows = [bool(x.shape) and x.shape[0] is self.width for x in at_hand]
        self.taken = [(i, has_rows[i]) for i in map(at_hand.index, taken)]

    def _between(
        self, graph: Graph, apart: list[Value], shared: list[Value], given: set[Value]
    ) -> list[Value]:
        """Return values of the adjoint that the gradients of shared operands are computed from."""
        ours = set(graph.ancestors(apart, list(given)))
        later = self._behind_seeds(graph)
        met: dict[Value, bool] = {}
        pending = list(shared)
        while pending:
            value = pending.pop()
            if value in met or value in given:
                continue
            rows = bool(value.shape) and value.shape[0] is self.width
            met[value] = value.node in ours and value.node in later and rows
            if not met[value]:
                pending += [x for x in value.node.inputs if x is not None]
        return [value for value, chosen in met.items() if chosen]

    def _behind_seeds(self, graph: Graph) -> set[Any]:
        reached, found = set(self.seeds), set[Any]()
        for node in graph.nodes:
            if not reached.isdisjoint(node.inputs):
                found.add(node)
                reached.update(node.outputs)
        return found

    def _feeds_of(self, graph: Graph, wanted: list[Value], given: list[Value]) -> list[Value]:
        """Return which of the values at hand a program for the wanted ones takes."""
        needed = graph.ancestors(wanted, given)
        read = {x for node in needed for x in node.inputs if x is not None} | set(wanted)
        return [x for x in given if x in read]

    def added_up(self, saved: Sequence[SavedCell]) -> Iterator[list[Array]]:
        """Yield the gradients of shared operands, to be added up.

        Members of narrow batches are put one after another: one long product in place of many
        short ones.
        """
        for x in saved:
            if x.total is not None:
                yield x.total
        rest = [x for x in saved if x.left]
        if rest:
            yield self.totals.run(self._joined(rest), width_of_rest(sum(x.left for x in rest)))

    def _joined(self, saved: Sequence[SavedCell]) -> list[Array]:
        """Return what is left of several batches.

        It is filled up to a width by members that are there, with gradients of zero.
        """
        total = sum(x.left for x in saved)
        room = width_of_rest(total) - total
        first = len(self.operands) + len(self._kept)
        found = []
        for k, (i, has_rows) in enumerate(self.taken):
            parts = [x.rest[k] for x in saved]
            if not has_rows:
                found.append(parts[0])
                continue
            if room:
                last = parts[-1][-1:]
                parts.append(np.repeat(last if i < first else np.zeros_like(last), room, 0))
            found.append(in_order(parts[0]) if len(parts) == 1 else np.concatenate(parts))
        return found
