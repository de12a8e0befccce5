"""Virtual shards: the same bits on any number of processes.

A global batch is always computed as S equal shards, each by itself, and their gradients are added
as a balanced tree of neighbours. A process computes a part of the shards and adds the lower
branches, the exchange among processes adds the upper ones: the additions are the same on one, two
or four. Synchronised batch normalisation uses the statistics of all shards, added the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
from .lockstep import LockstepRuns
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
        self._held: list[list[Any]] = []  # sums of batches that are not exchanged yet
        self._before: list[Any] = []  # the gradients that were there before those
        self._left: list[Any] = []  # and those that stand for them meanwhile

    def backward(self, loss: Callable[..., Any], *batch: Any) -> Tensor:
        """Leave the gradients of the mean loss of all shards in `.grad`; return that loss."""
        recorder = current_recorder()
        if recorder is not None:
            recorder.refuse("each virtual shard is a program of its own")
        assert self.group.rank is not None
        averager, parts = self.averager, self._parts(batch)
        self._begin()
        first = self.group.rank * self.here
        works = [partial(self._one, loss, part, first + i) for i, part in enumerate(parts)]
        before, averager.is_on = averager.is_on, False
        try:
            # All shards draw from one place, other rows, and each has gradients of its own.
            found = LockstepRuns(self.count, self._state, self._set_state).run(works)
        finally:
            averager.is_on = before
        losses, grads = [loss for loss, _ in found], [grads for _, grads in found]
        total = [_tree_sum(list(column)) for column in zip(*grads, strict=True)]
        with no_grad():
            self._leave(total)
            mean: Tensor = all_reduce(_tree_sum(losses), "pairwise", group=self.group) / self.count
        return mean

    def _one(self, loss: Callable[..., Any], part: Any, place: int) -> tuple[Tensor, list[Any]]:
        """Compute one shard: its loss, and its own gradients."""
        with drawing_rows(rows_of(part, place, self.count)):
            found: Tensor = loss(*part)
            found.backward()
        grads = [p.grad for p in self.averager.parameters]
        return found.detach(), [None if g is None else dense(g) for g in grads]

    def _state(self) -> tuple[Any, list[Any]]:
        """Return what a shard changes while it is computed."""
        return default_generator.get_state(), [p.grad for p in self.averager.parameters]

    def _set_state(self, state: tuple[Any, list[Any]]) -> None:
        default_generator.set_state(state[0])
        for p, grad in zip(self.averager.parameters, state[1], strict=True):
            p.grad = grad

    def _begin(self) -> None:
        """Take away the gradients that are there; who has changed them has dropped what is held."""
        now = [p.grad for p in self.averager.parameters]
        if not self._held or any(a is not b for a, b in zip(now, self._left, strict=True)):
            self._held, self._before = [], now
        for p in self.averager.parameters:
            p.grad = None

    def _leave(self, total: list[Any]) -> None:
        """Exchange the sums over shards; what was there before is added.

        Sums of several batches (`no_sync`) are exchanged one by one, so that the additions do not
        depend on the number of processes. Until then this process's own mean stands for them.
        """
        self._held.append(total)
        found = self._before
        for held in self._held:
            found = [_plus(a, b) for a, b in zip(found, self._exchanged(held), strict=True)]
        if self.averager.is_on:
            self._held = []
        self._left = found
        for p, grad in zip(self.averager.parameters, found, strict=True):
            p.grad = grad

    def _exchanged(self, total: list[Any]) -> list[Any]:
        averager = self.averager
        if not averager.is_on:
            return [None if g is None else g / self.here for g in total]
        grads = {p: g for p, g in zip(averager.parameters, total, strict=True) if g is not None}
        found = averager.exchanged(grads)
        return [found.get(p) for p in averager.parameters]

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
        parts = [_plus(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def _plus(a: Any, b: Any) -> Any:
    return b if a is None else a if b is None else a + b
