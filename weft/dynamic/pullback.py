"""The way back through a run: one node of the tape, whose outputs are the arenas.

On arrays the batches are gone through in reverse order. Each has its results' gradients side by
side, and adds to those of its operands, in place where these lie side by side, else by scattering.
To be differentiated again, the run is repeated on tensors (blocks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..autodiff.reverse import gradients
from ..core.config import config
from ..core.dtype import Array, is_float
from ..core.errors import user_site
from ..core.modes import enable_grad
from ..core.op import F
from ..core.tape import FanNode, make_node, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from ..ops.index.scatter_add import scatter_add_rows
from .blocks import Blocks
from .room import room_for, zeros_for
from .schedule import PlacedBatch
from .signatures import Slot

if TYPE_CHECKING:
    from .arenas import Arenas


class RanBatch(NamedTuple):
    """A batch that ran, with what it needs to be pulled back or repeated.

    batch    what ran, and where its operands lie
    kernel   what ran it
    saved    what that left for the way back; None if no gradient is wanted
    shared   for each operand that is in no arena the tensor
    outs     where its results lie: type and slice
    """

    batch: PlacedBatch
    kernel: Any
    saved: Any
    shared: list[Any]
    outs: list[tuple[int, slice]]


class RunGradient:
    """What a run left for its gradient: the `op` of its node."""

    name = "batched"
    saves = None

    def backward(self, node: Any, run: SavedRun, g: Sequence[Array]) -> list[Any]:
        """Return the gradients of what the run took, as arrays."""
        return run.pull_back(g)

    def linked(self, node: Any, run: SavedRun, g: Sequence[Tensor]) -> list[Any]:
        """Return the gradients as tensors, to be differentiated again."""
        return run.repeated(node, g)


GRADIENT = RunGradient()


def recorded_arenas(arenas: Arenas) -> dict[int, Tensor] | None:
    """Return the arenas of a run as tensors behind its node; None if there are no gradients."""
    if not arenas.shared and not arenas.brought:
        return None
    saved = SavedRun(arenas)
    outputs = [arenas.arrays[kind][: arenas.ends[kind]] for kind in saved.kinds]
    node = make_node(GRADIENT, saved.parents(), saved, outputs=outputs, site=user_site())
    assert isinstance(node, FanNode)
    found: dict[int, Tensor] = {}
    for kind, array in arenas.arrays.items():
        values = array[: arenas.ends[kind]]
        if kind in saved.kinds:
            found[kind] = wrap_with_node(values, output_node(node, saved.kinds.index(kind)))
        else:
            found[kind] = wrap(values)
    return found


class BroughtTensor(NamedTuple):
    """A tensor with gradients that examples brought: its type, its node, and where it lies."""

    kind: int
    tensor: Tensor
    node: Any
    rows: list[int]


class SavedRun:
    """The batches of a run, and what went into them."""

    def __init__(self, arenas: Arenas) -> None:
        self.table = arenas.table
        self.arrays = dict(arenas.arrays)
        self.steps = list(arenas.steps)
        self.brought: dict[int, BroughtTensor] = {}  # by identity: examples may share one
        for kind, row, x in arenas.brought:
            self.brought.setdefault(id(x), BroughtTensor(kind, x, x._node, [])).rows.append(row)
        self.shared = {i: (x._value, x._node) for i, x in arenas.shared.items()}
        self.is_at_once = arenas.rounds == 1  # so that it is known who reads a value last
        self.kinds = [kind for kind, x in arenas.arrays.items() if is_float(x.dtype)]

    def parents(self) -> tuple[Any, ...]:
        """Return the tape nodes of what the run took."""
        brought = [x.node for x in self.brought.values()]
        return (*[node for _, node in self.shared.values()], *brought)

    # -- on arrays ---------------------------------------------------------------------------------

    def pull_back(self, g: Sequence[Array]) -> list[Any]:
        """Return the gradients of the parents."""
        ran = [step for step in self.steps if isinstance(step, RanBatch) and step.saved is not None]
        grads = {kind: _own(part) for kind, part in zip(self.kinds, g, strict=True)}
        # Nothing was added to a row before the one who read it last: that may write there.
        pairs = zip(self.kinds, g, strict=True)
        blank = {kind for kind, part in pairs if self.is_at_once and not any(part.strides)}
        totals: dict[int, Any] = {}
        for batch in reversed(ran):
            self._pull(batch, grads, totals, blank)
        for kernel in dict.fromkeys([batch.kernel for batch in ran]):
            saved = [batch.saved for batch in ran if batch.kernel is kernel]
            for slot, total in kernel.totals(saved):
                _add(totals, slot, total)
        rows = [_of_rows(grads[x.kind], x.rows) for x in self.brought.values()]
        return [*[totals.get(slot) for slot in self.shared], *rows]

    def _pull(
        self, ran: RanBatch, grads: dict[int, Array], totals: dict[int, Any], blank: set[int]
    ) -> None:
        batch = ran.batch
        width = ran.kernel.width(batch.size)
        seeds = [_seed(grads[kind], block, width) for kind, block in ran.outs if kind in grads]
        found = ran.kernel.pull(ran.saved, seeds, True)
        pairs = [*zip(batch.signature.specs, found, strict=True)]
        for spec, g in pairs:
            if g is not None and spec.__class__ is not int:
                _add(totals, spec.index, g)
        rest = [pair for pair in pairs if pair[0].__class__ is int]
        # The last operand first: who reads a value last writes.
        ends = [*accumulate(batch.signature.runs)]
        flags = zip(batch.places, batch.distinct, batch.last, [0, *ends[:-1]], ends, strict=True)
        for where, distinct, last, begin, end in reversed([*flags]):
            kind, g = rest[begin][0], _together([g for _, g in rest[begin:end]])
            if g is None:
                continue
            if last and kind in blank:
                grads[kind][where] = g
            else:
                _add_rows(grads[kind], where, g, distinct)

    # -- on tensors --------------------------------------------------------------------------------

    def repeated(self, node: Any, g: Sequence[Tensor]) -> list[Any]:
        """Return the gradients of the parents, as tensors of a run on tensors."""
        with enable_grad():
            count = len(self.shared)
            parents = node.parents
            pairs = zip(self.shared.items(), parents[:count], strict=True)
            shared = {i: F.positive(wrap_with_node(x, parent)) for (i, (x, _)), parent in pairs}
            again = [
                F.positive(wrap_with_node(x.tensor._value, parent))
                for x, parent in zip(self.brought.values(), parents[count:], strict=True)
            ]
            blocks = self._repeat(shared, again)
            outs = [blocks.whole(kind) for kind in self.kinds]
            wanted = [*shared.values(), *again]
            return list(gradients(outs, wanted, list(g), create_graph=True))

    def _repeat(self, shared: dict[int, Tensor], again: list[Tensor]) -> Blocks:
        blocks = Blocks(self.table)
        pairs = zip(self.brought.values(), again, strict=True)
        where = {(x.kind, row): y for x, y in pairs for row in x.rows}
        for step in self.steps:
            if not isinstance(step, RanBatch):
                kind, block = step
                blocks.add(kind, self._data(kind, block, where))
                continue
            held = [
                shared.get(s.index, step.shared[i]) if s.__class__ is Slot else None
                for i, s in enumerate(step.batch.signature.specs)
            ]
            blocks.run(step.batch, held)
        return blocks

    def _data(self, kind: int, block: slice, where: dict[tuple[int, int], Tensor]) -> Any:
        values = wrap(self.arrays[kind][block])
        if not any(key[0] == kind and block.start <= key[1] < block.stop for key in where):
            return values
        rows = range(block.start, block.stop)
        return F.stack([where.get((kind, row), values[row - block.start]) for row in rows])


def _together(gs: list[Any]) -> Any:
    """Return the gradients of a run of operands: None if there are none, those of one as it is."""
    if len(gs) == 1:
        return gs[0]
    some = next((g for g in gs if g is not None), None)
    return None if some is None else np.stack([np.zeros_like(some) if g is None else g for g in gs])


def _own(part: Array) -> Array:
    """Return gradients that may be added to in place, with room for the widest batch behind."""
    if not any(part.strides):  # it is zero everywhere
        return zeros_for(len(part), part.shape[1:], part.dtype)
    found = room_for(len(part), part.shape[1:], part.dtype)
    found[: len(part)] = part
    return found


def _seed(grads: Array, block: slice, width: int) -> Array:
    """Return the gradients of a block, as many rows as a kernel is to be given.

    What is behind the block fills up, and is not looked at; zeros, if NaNs are looked for.
    """
    found = grads[block.start : block.start + width]
    if config.nan_trap and len(found) > block.stop - block.start:
        found = found.copy()
        found[block.stop - block.start :] = 0
    return found


def _add(totals: dict[int, Any], slot: int, g: Any) -> None:
    known = totals.get(slot)
    if known is None:
        totals[slot] = g
    else:
        totals[slot] = known + g


def _add_rows(total: Array, where: Any, g: Array, distinct: bool) -> None:
    """Add gradients to rows, each as often as it is named."""
    if distinct or where.__class__ is slice:
        total[where] += g
        return
    rows, inverse = np.unique(where, return_inverse=True)
    if len(rows) == where.size:
        total[where] += g
    else:
        total[rows] += scatter_add_rows((len(rows), *total.shape[1:]), inverse, g, total.dtype)


def _of_rows(grads: Array, rows: list[int]) -> Array:
    """Return the gradient of a tensor that lies in some rows."""
    found: Array = grads[rows[0]] if len(rows) == 1 else grads[rows].sum(0)
    return found
