"""Local SGD: every rank takes steps of its own, and now and then parameters are averaged."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...optim import Optimizer
from ..faults import survivors
from ..launcher.heartbeat import pulse
from ..world import ProcessGroup, world

_Array = np.ndarray[Any, Any]


class LocalUpdates:
    """Average the parameters of all ranks after every so many steps of an optimizer.

    every      steps between averages; 1 averages after each
    slots      whether what the optimizer keeps (momentum ...) is averaged too

    A rank that is lost is left out of later averages, if the ranks were started with
    `weft launch --survive`.
    """

    def __init__(self, optimizer: Optimizer, *, every: Any = 8, slots: bool = True) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                f"local updates are those of an optimizer. Received: {type(optimizer).__name__}"
            )
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ArgumentError(f"every must be a number of steps, 1 or more. Received: {every!r}")
        self.optimizer = optimizer
        self.every: int = every
        self.slots = slots
        self.group: ProcessGroup = world()
        self.averages = 0
        self._steps = 0
        self._spread()
        self._hook = optimizer.register_step_post_hook(self._count)

    def _spread(self) -> None:
        """Begin with the parameters of the first rank."""
        exchanges = self.group.exchanges
        for p in self.optimizer.parameters():
            array = np.ascontiguousarray(p.numpy())
            p._value = exchanges.run(partial(exchanges.transport.broadcast, array, 0))

    def _count(self, _: Optimizer) -> None:
        self._steps += 1
        pulse.count += 1
        if self._steps % self.every == 0:
            self.average()

    def average(self) -> None:
        """Average now; all ranks must."""
        arrays = [p.numpy() for p in self.optimizer.parameters()]
        slots = self._slots()
        arrays += [state[name] for state, name in slots]
        averaged = survivors(lambda group: _mean(arrays, group), self)
        for p in self.optimizer.parameters():
            p._value = averaged.pop(0)
        for (state, name), array in zip(slots, averaged, strict=True):
            state[name] = array
        self.averages += 1

    def _slots(self) -> list[tuple[Any, str]]:
        """Return what the optimizer keeps and is averaged: arrays of floats."""
        if not self.slots:
            return []
        states = [self.optimizer.state.get(p, {}) for p in self.optimizer.parameters()]
        return [(s, name) for s in states for name in sorted(s) if _is_averaged(s[name])]

    def step(self) -> None:
        """Take a step of one's own; all ranks average after every so many."""
        self.optimizer.step()

    def finish(self) -> None:
        """Average a last time, and let steps be the optimizer's own again."""
        if self._steps % self.every:
            self.average()
        self._hook.remove()


def _is_averaged(slot: Any) -> bool:
    return isinstance(slot, np.ndarray) and slot.dtype.kind not in "iub"


def _mean(arrays: list[_Array], group: ProcessGroup) -> list[_Array]:
    """Return the mean of each array over a group, in one exchange for each dtype."""
    exchanges = group.exchanges
    result: dict[int, _Array] = {}
    for dtype in dict.fromkeys(array.dtype for array in arrays):
        same = [i for i, array in enumerate(arrays) if array.dtype == dtype]
        line = np.concatenate([arrays[i].reshape(-1) for i in same])
        total = exchanges.run(partial(exchanges.transport.reduce, line, "sum")) / group.size
        edges = np.cumsum([arrays[i].size for i in same])[:-1]
        for i, part in zip(same, np.split(total.astype(dtype, copy=False), edges), strict=True):
            result[i] = part.reshape(arrays[i].shape)
    return [result[i] for i in range(len(arrays))]
