"""Virtual shards: the same bits on any number of processes.

A global batch is always computed as S equal shards, each by itself, and their gradients are added
as a balanced tree of neighbours. A process computes a part of the shards and adds the lower
branches, the exchange among processes adds the upper ones: the additions are the same on one, two
or four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.draw_rows import drawing_rows
from ..core.errors import ArgumentError
from ..core.modes import current_recorder, no_grad
from ..core.rng import default_generator
from ..core.row_sparse import dense
from ..core.tensor import Tensor
from ..core.tree import tree_leaves, tree_map
from .averaging import GradientAverager
from .collectives import all_reduce
from .placing import rows_of
from .world import ProcessGroup


class ShardedBatch:
    """Computes the rows of this process as virtual shards.

    count   shards of the global batch
    """

    def __init__(self, averager: GradientAverager, group: ProcessGroup, count: Any) -> None:
        is_number = isinstance(count, int) and not isinstance(count, bool) and count > 0
        if not is_number or count & (count - 1) or count % group.size:
            raise ArgumentError(
                "parallel: shards must be a power of two that the number of processes divides. "
                f"Received: {count!r} for {group.size} processes"
            )
        self.averager, self.group, self.count = averager, group, count
        self.here = count // group.size

    def backward(self, loss: Callable[..., Any], *batch: Any) -> Tensor:
        """Leave the gradients of the mean loss of all shards in `.grad`; return that loss."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.refuse("each virtual shard is a program of its own")
        assert self.group.rank is not None
        averager, parts = self.averager, self._parts(batch)
        kept = [p.grad for p in averager.parameters]
        start = default_generator.get_state()
        losses, grads = list[Tensor](), list[list[Any]]()
        for i, part in enumerate(parts):
            default_generator.set_state(start)  # all shards draw from one place, other rows
            place = self.group.rank * self.here + i
            losses.append(self._one(loss, part, place))
            grads.append([None if p.grad is None else dense(p.grad) for p in averager.parameters])
        total = [_tree_sum(list(column)) for column in zip(*grads, strict=True)]
        with no_grad():
            self._leave(total, kept)
            mean: Tensor = all_reduce(_tree_sum(losses), "pairwise", group=self.group) / self.count
        return mean

    def _one(self, loss: Callable[..., Any], part: Any, place: int) -> Tensor:
        """Compute one shard: its loss, and its own gradients in `.grad`."""
        averager = self.averager
        for p in averager.parameters:
            p.grad = None
        before, averager.is_on = averager.is_on, False
        try:
            with drawing_rows(rows_of(part, place, self.count)):
                found: Tensor = loss(*part)
                found.backward()
        finally:
            averager.is_on = before
        return found.detach()

    def _leave(self, total: Sequence[Any], kept: Sequence[Any]) -> None:
        """Exchange the sums over shards; what was there before is added."""
        averager = self.averager
        grads = {p: g for p, g in zip(averager.parameters, total, strict=True) if g is not None}
        found = averager.exchanged(grads) if averager.is_on else grads
        for p, old in zip(averager.parameters, kept, strict=True):
            new = found.get(p)
            p.grad = new if old is None else old if new is None else old + new

    def _parts(self, batch: Any) -> list[Any]:
        """Return the rows of this process in equal parts."""
        for x in tree_leaves(batch):
            if isinstance(x, Tensor | np.ndarray) and (not x.shape or x.shape[0] % self.here):
                raise ArgumentError(
                    f"backward: the rows of this process must be divided by {self.here} shards. "
                    f"Received: shape {tuple(x.shape)}"
                )
        return [tree_map(lambda x, i=i: _rows(x, i, self.here), batch) for i in range(self.here)]


def _rows(x: Any, index: int, count: int) -> Any:
    if not isinstance(x, Tensor | np.ndarray):
        return x
    size = x.shape[0] // count
    return x[index * size : (index + 1) * size]


def _tree_sum(parts: list[Any]) -> Any:
    """Return the sum of neighbours, of sums of neighbours, and so on; None is nothing."""
    while len(parts) > 1:
        pairs = zip(parts[::2], parts[1::2], strict=True)
        parts = [b if a is None else a if b is None else a + b for a, b in pairs]
    return parts[0]
