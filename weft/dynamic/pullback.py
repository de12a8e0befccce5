"""The way back through a run: one node of the tape, whose outputs are the arenas.

On arrays the batches are gone through in reverse order. Each has its results' gradients side by
side, and adds to those of its operands, in place where these lie side by side, else by scattering.
To be differentiated again, the run is repeated on tensors (blocks.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..autodiff.reverse import gradients
from ..core.dtype import Array, is_float
from ..core.errors import user_site
from ..core.modes import enable_grad
from ..core.op import F
from ..core.tape import FanNode, make_node, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from ..ops.index.scatter_add import scatter_add_rows
from .blocks import Blocks
from .signatures import BatchSignature, Slot

if TYPE_CHECKING:
    from .arenas import Arenas


class RanBatch(NamedTuple):
    """A batch that ran, with what it needs to be pulled back or repeated.

    kernel   what ran it
    saved    what that left for the way back; None if no gradient is wanted
    rows     for each operand in an arena where its members lie: a slice, or indices
    shared   for each other operand the tensor
    outs     where its results lie: type and slice
    """

    signature: BatchSignature
    kernel: Any
    saved: Any
    rows: list[Any]
    shared: list[Any]
    outs: list[tuple[int, slice]]
    size: int


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


class SavedRun:
    """The batches of a run, and what went into them."""

    def __init__(self, arenas: Arenas) -> None:
        self.table = arenas.table
        self.arrays = dict(arenas.arrays)
        self.steps = list(arenas.steps)
        self.brought = list(arenas.brought)
        self.shared = {i: (x._value, x._node) for i, x in arenas.shared.items()}
        self.kinds = [kind for kind, x in arenas.arrays.items() if is_float(x.dtype)]

    def parents(self) -> tuple[Any, ...]:
        """Return the tape nodes of what the run took."""
        brought = [x._node for _, _, x in self.brought]
        return (*[node for _, node in self.shared.values()], *brought)

    # -- on arrays ---------------------------------------------------------------------------------

    def pull_back(self, g: Sequence[Array]) -> list[Any]:
        """Return the gradients of the parents."""
        grads = {kind: _own(part) for kind, part in zip(self.kinds, g, strict=True)}
        totals: dict[int, Any] = {}
        ran = [step for step in self.steps if isinstance(step, RanBatch) and step.saved is not None]
        for batch in reversed(ran):
            self._pull(batch, grads, totals)
        for kernel in dict.fromkeys([batch.kernel for batch in ran]):
            saved = [batch.saved for batch in ran if batch.kernel is kernel]
            for slot, total in kernel.totals(saved):
                _add(totals, slot, total)
        rows = [grads[kind][row] for kind, row, _ in self.brought]
        return [*[totals.get(slot) for slot in self.shared], *rows]

    def _pull(self, batch: RanBatch, grads: dict[int, Array], totals: dict[int, Any]) -> None:
        width = batch.kernel.width(batch.size)
        seeds = [_seed(grads[kind], block, width) for kind, block in batch.outs if kind in grads]
        found = batch.kernel.pull(batch.saved, seeds, True)
        places = iter(batch.rows)
        for spec, g in zip(batch.signature.specs, found, strict=True):
            where = next(places) if spec.__class__ is int else None
            if g is None:
                continue
            if where is None:
                _add(totals, spec.index, g)
            else:
                _add_rows(grads[spec], where, g)

    # -- on tensors --------------------------------------------------------------------------------

    def repeated(self, node: Any, g: Sequence[Tensor]) -> list[Any]:
        """Return the gradients of the parents, as tensors of a run on tensors."""
        with enable_grad():
            count = len(self.shared)
            parents = node.parents
            pairs = zip(self.shared.items(), parents[:count], strict=True)
            shared = {i: F.positive(wrap_with_node(x, parent)) for (i, (x, _)), parent in pairs}
            brought = [
                F.positive(wrap_with_node(x._value, parent))
                for (_, _, x), parent in zip(self.brought, parents[count:], strict=True)
            ]
            blocks = self._repeat(shared, brought)
            outs = [blocks.whole(kind) for kind in self.kinds]
            wanted = [*shared.values(), *brought]
            return list(gradients(outs, wanted, list(g), create_graph=True))

    def _repeat(self, shared: dict[int, Tensor], brought: list[Tensor]) -> Blocks:
        blocks = Blocks(self.table)
        where = {(kind, row): x for (kind, row, _), x in zip(self.brought, brought, strict=True)}
        for step in self.steps:
            if not isinstance(step, RanBatch):
                kind, block = step
                blocks.add(kind, self._data(kind, block, where))
                continue
            held = [
                shared.get(s.index, step.shared[i]) if s.__class__ is Slot else None
                for i, s in enumerate(step.signature.specs)
            ]
            rows = [_indices(place) for place in step.rows]
            blocks.run(step.signature, rows, held, step.size)
        return blocks

    def _data(self, kind: int, block: slice, where: dict[tuple[int, int], Tensor]) -> Any:
        values = wrap(self.arrays[kind][block])
        if not any(key[0] == kind and block.start <= key[1] < block.stop for key in where):
            return values
        rows = range(block.start, block.stop)
        return F.stack([where.get((kind, row), values[row - block.start]) for row in rows])


def _own(part: Array) -> Array:
    """Return gradients that may be added to in place."""
    return np.zeros(part.shape, part.dtype) if not any(part.strides) else np.array(part)


def _seed(grads: Array, block: slice, width: int) -> Array:
    """Return the gradients of a block, as many rows as a kernel is to be given: zeros fill up."""
    found = grads[block]
    if len(found) == width:
        return found
    filled = np.zeros((width, *found.shape[1:]), found.dtype)
    filled[: len(found)] = found
    return filled


def _add(totals: dict[int, Any], slot: int, g: Any) -> None:
    known = totals.get(slot)
    if known is None:
        totals[slot] = g
    else:
        totals[slot] = known + g


def _add_rows(total: Array, where: Any, g: Array) -> None:
    """Add gradients to rows, each as often as it is named."""
    if where.__class__ is slice:
        total[where] += g
        return
    rows, inverse = np.unique(where, return_inverse=True)
    if len(rows) == len(where):
        total[where] += g
    else:
        total[rows] += scatter_add_rows((len(rows), *total.shape[1:]), inverse, g, total.dtype)


def _indices(place: Any) -> Any:
    return np.arange(place.start, place.stop) if place.__class__ is slice else place
