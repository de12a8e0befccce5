"""Cells on arrays, as machine code: forward, adjoint, and the gradients of what members share.

The graph of one member becomes that of many by vmap, its width a size that every run is told.
Three programs are made of it and of its adjoint: one for the results and what the adjoint takes of
them, one for the gradients of operands that differ between members, batch by batch, and one for
those of shared operands, weights above all, which runs once for the members of all batches: one
long product in place of many short ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..autodiff.reverse import gradients
from ..core.config import config
from ..core.dim import LEAST, run_time_size
from ..core.dispatch import ERRORS
from ..core.dtype import Array, is_float
from ..core.errors import is_from_signal
from ..core.shape import TensorType
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


def filling(most: int) -> int:
    """Return how many members batches of up to so many are filled up with, at most."""
    return max(most // STEPS, LEAST)


class CellKernel:
    """Runs batches of a cell, and pulls their gradients back."""

    def __init__(self, signature: BatchSignature, types: Sequence[TensorType]) -> None:
        self.signature = signature
        self.types = types
        self.flags = tuple([spec.__class__ is int for spec in signature.specs])
        self._code: dict[tuple[bool, ...], CellCode] = {}

    def width(self, size: int) -> int:
        """Return how many rows it is to be given for so many members."""
        return width_for(size)

    def run(
        self, operands: Sequence[Array], size: int, wanted: Sequence[bool]
    ) -> tuple[list[Array], Any]:
        """Return the results, and what `pull` needs to find the gradients of what is wanted."""
        code = self._code_for(tuple(wanted))
        given = [in_order(x) for x in operands]
        found = code.forward.run(given, width_for(size))
        count = len(self.signature.outs)
        results = [y[:size] for y in found[:count]]
        if code.adjoint is None:
            return results, None
        return results, SavedCell(code, given, [found[i] for i in code.kept], size)

    def pull(self, saved: SavedCell, seeds: Sequence[Array], retain: bool) -> list[Any]:
        """Return the gradients of the operands that differ between members."""
        code = saved.code
        saved.seeds = [in_order(seed) for seed in seeds]
        given = [*saved.operands, *saved.kept, *saved.seeds]
        made = code.adjoint.run(given, width_for(saved.size))
        saved.frontier = made[len(code.apart) :]
        found: list[Any] = [None] * len(self.flags)
        for i, g in zip(code.apart, made, strict=False):
            found[i] = g[: saved.size]
        return found

    def totals(self, saved: Sequence[SavedCell]) -> list[tuple[int, Array]]:
        """Return the gradients of shared operands, added up over batches."""
        found: list[tuple[int, Array]] = []
        for code in dict.fromkeys([x.code for x in saved]):
            if code.shared:
                slots = [self.signature.specs[i].index for i in code.shared]
                for arrays, width in code.pieces([x for x in saved if x.code is code]):
                    found += zip(slots, code.totals.run(arrays, width), strict=True)
        return found

    def _code_for(self, wanted: tuple[bool, ...]) -> CellCode:
        found = self._code.get(wanted)
        if found is None:
            if any(wanted) and len(self._code) > MOST_WANTED:
                wanted = tuple([is_float(t.dtype) for t in self.types])
            found = self._code.setdefault(wanted, CellCode(self.signature, self.types, wanted))
        return found


class SizedProgram:
    """A program whose code for the widths that were met is at hand."""

    def __init__(self, program: Program, what: str) -> None:
        self._call = ProgramCall(program, what)
        self._known: dict[int, Any] = {}

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
    """What a batch left for its gradient: arrays of its width, of which `size` rows count."""

    def __init__(
        self, code: CellCode, operands: Sequence[Array], kept: Sequence[Array], size: int
    ) -> None:
        self.code = code
        self.operands = operands
        self.kept = kept
        self.size = size
        self.seeds: Sequence[Array] = ()
        self.frontier: Sequence[Array] = ()

    def arrays(self) -> list[Array]:
        """Return what it left, and what its gradient made."""
        return [*self.operands, *self.kept, *self.seeds, *self.frontier]


class CellCode:
    """The programs of a cell for the gradients of some operands.

    apart, shared   the operands with gradients: those that differ between members, and the others
    kept            which of the arrays that the first program makes the others take
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
        self._operands = [x.value for x in feeds]
        self._seeds = [s.value for s in seeds]
        results = [y.value for y in outs]
        self._kept: list[Value] = []
        self.adjoint: Any = None
        if pulled:
            self._plan_adjoint(graph, results, pulled, name)
        left = list(dict.fromkeys([*results, *self._kept]))
        self._has_twice = len(left) < len(results)
        self.kept = [left.index(x) for x in self._kept]
        self.forward = SizedProgram(Program(graph, left, self._operands), name)

    def _plan_adjoint(
        self, graph: Graph, results: list[Value], pulled: dict[int, Value], name: str
    ) -> None:
        grads = list(pulled.values())
        self._kept = find_residuals(graph, self._operands, results, self._seeds, grads)
        given = [*self._operands, *self._kept, *self._seeds]
        apart, shared = [pulled[i] for i in self.apart], [pulled[i] for i in self.shared]
        self._frontier = self._between(graph, apart, shared, set(given)) if shared else []
        self.adjoint = SizedProgram(Program(graph, [*apart, *self._frontier], given), name)
        self._taken = self._feeds_of(graph, shared, [*given, *self._frontier])
        self.totals = SizedProgram(Program(graph, shared, self._taken), name)

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
        reached, found = set(self._seeds), set[Any]()
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

    def pieces(self, saved: Sequence[SavedCell]) -> Iterator[tuple[list[Array], int]]:
        """Yield what the program of totals takes, for parts of all members, with their numbers.

        Wide batches are taken where they lie. What is left of them, and narrow ones, are put one
        after another: one long product in place of many short ones.
        """
        rest: list[tuple[SavedCell, int]] = []
        for x in saved:
            width = width_within(x.size) if x.size >= WIDE else 0
            if width:
                given = x.arrays()
                yield [given[i][:width] if rows else given[i] for i, rows in self._places()], width
            if width < x.size:
                rest.append((x, width))
        if rest:
            yield self._joined(rest), width_for(sum(x.size - begin for x, begin in rest))

    def _places(self) -> list[tuple[int, bool]]:
        """Return where the program of totals finds what it takes, and whether members have rows."""
        given = [*self._operands, *self._kept, *self._seeds, *self._frontier]
        has_rows = [bool(x.shape) and x.shape[0] is self.width for x in given]
        return [(i, has_rows[i]) for i in map(given.index, self._taken)]

    def _joined(self, saved: Sequence[tuple[SavedCell, int]]) -> list[Array]:
        """Return members of several batches, each from some one on, one after another.

        They are filled up to a width by members that are there, with gradients of zero.
        """
        columns = [(x.arrays(), begin, x.size) for x, begin in saved]
        total = sum(end - begin for _, begin, end in columns)
        room = width_for(total) - total
        first = len(self._operands) + len(self._kept)
        found = []
        for i, has_rows in self._places():
            if not has_rows:
                found.append(columns[0][0][i])
                continue
            parts = [arrays[i][begin:end] for arrays, begin, end in columns]
            if room:
                last = parts[-1][-1:]
                parts.append(np.repeat(last if i < first else np.zeros_like(last), room, 0))
            found.append(in_order(parts[0]) if len(parts) == 1 else np.concatenate(parts))
        return found
