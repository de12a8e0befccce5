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
from ..core.dtype import Array, is_float
from ..core.errors import user_site
from ..core.modes import current_transform, enable_grad, is_grad_enabled
from ..core.op import F
from ..core.tape import FanNode, make_node, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .blocks import Blocks
from .gradient_rows import GradientRows
from .launch_forms import alone
from .launching_back import AdjointLaunches
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
        """Return the gradients as tensors, to be differentiated again if somebody records."""
        if is_grad_enabled() or current_transform() is not None:
            return run.repeated(node, g)
        # Where something is on a device all gradients are tensors; those of arenas never are there.
        return [None if x is None else wrap(x) for x in run.pull_back([x._value for x in g])]


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
        pairs = zip(self.kinds, g, strict=True)
        grads = {kind: GradientRows(part, self.is_at_once) for kind, part in pairs}
        totals: dict[int, Any] = {}
        launches = AdjointLaunches(ran, grads)
        ran = [x if launches.takes(x) else x._replace(saved=alone(x.saved)) for x in ran]
        for batch in reversed(ran):
            if launches.takes(batch):
                launches.add(batch)
            else:
                launches.run()
                self._pull(batch, grads, totals)
        launches.run()
        for slot, total in launches.totals():
            _add(totals, slot, total)
        ran = [batch for batch in ran if not launches.takes(batch)]
        for kernel in dict.fromkeys([batch.kernel for batch in ran]):
            saved = [batch.saved for batch in ran if batch.kernel is kernel]
            for slot, total in kernel.totals(saved):
                _add(totals, slot, total)
        rows = [grads[x.kind].total(x.rows) for x in self.brought.values()]
        return [*[totals.get(slot) for slot in self.shared], *rows]

    def _pull(self, ran: RanBatch, grads: dict[int, GradientRows], totals: dict[int, Any]) -> None:
        batch = ran.batch
        width = ran.kernel.width(batch.size)
        seeds = [grads[kind].seed(block, width) for kind, block in ran.outs if kind in grads]
        found = ran.kernel.pull(ran.saved, seeds, True)
        if ran.kernel.takes_stack:
            if found[0] is not None:
                _give(grads, batch.signature.specs[0], 0, batch, np.swapaxes(found[0], 0, 1))
            return
        pairs = [*zip(batch.signature.specs, found, strict=True)]
        for spec, g in pairs:
            if g is not None and spec.__class__ is not int:
                _add(totals, spec.index, g)
        rest = [pair for pair in pairs if pair[0].__class__ is int]
        # The last operand first: who reads a value last writes.
        ends = [*accumulate(batch.signature.runs)]
        begins = [0, *ends[:-1]]
        for i in reversed(range(len(ends))):
            own = rest[begins[i] : ends[i]]
            g = _together([g for _, g in own])
            if g is not None:
                _give(grads, own[0][0], i, batch, g)

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
                shared.get(s.index, x) if s.__class__ is Slot else x
                for s, x in zip(step.batch.signature.specs, step.shared, strict=True)
            ]
            blocks.run(step.batch, held)
        return blocks

    def _data(self, kind: int, block: slice, where: dict[tuple[int, int], Tensor]) -> Any:
        values = wrap(self.arrays[kind][block])
        if not any(key[0] == kind and block.start <= key[1] < block.stop for key in where):
            return values
        rows = range(block.start, block.stop)
        return F.stack([where.get((kind, row), values[row - block.start]) for row in rows])


def _give(grads: dict[int, GradientRows], kind: int, i: int, batch: PlacedBatch, g: Array) -> None:
    """Let the values in a run of operands have their gradients."""
    if batch.last[i] and grads[kind].is_blank:
        grads[kind].write(batch.places[i], g)
    else:
        grads[kind].add(batch.places[i], g, batch.distinct[i])


def _together(gs: list[Any]) -> Any:
    """Return the gradients of a run of operands: None if there are none, those of one as it is."""
    if len(gs) == 1:
        return gs[0]
    some = next((g for g in gs if g is not None), None)
    return None if some is None else np.stack([np.zeros_like(some) if g is None else g for g in gs])


def _add(totals: dict[int, Any], slot: int, g: Any) -> None:
    known = totals.get(slot)
    if known is None:
        totals[slot] = g
    else:
        totals[slot] = known + g
