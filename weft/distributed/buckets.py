"""Buckets: the gradients of several parameters as one array, which is exchanged at once.

Few large messages are faster than many small ones, and several are better than one: the first is on
its way while backward computes what goes into the next. Buckets hold parameters from the last to
the first, the order in which backward finishes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.op import F
from ..core.shape import size_of
from ..core.tensor import Tensor, wrap
from .programs import checksum
from .transport import Array

MIB = 1 << 20


class Bucket(NamedTuple):
    """Parameters whose gradients travel together, all of one dtype."""

    parameters: tuple[Tensor, ...]
    names: tuple[str, ...]

    def among(self, used: Iterable[Tensor]) -> Bucket:
        """Return the bucket with those parameters alone that are used."""
        known = {id(p) for p in used}
        kept = [i for i, p in enumerate(self.parameters) if id(p) in known]
        return Bucket(tuple(self.parameters[i] for i in kept), tuple(self.names[i] for i in kept))

    @property
    def note(self) -> str:
        """Return what it holds, as a text that differs where buckets do."""
        ends = self.names[0] if len(self.names) == 1 else f"{self.names[0]} ... {self.names[-1]}"
        known = checksum("/".join(self.names)) % 16**6
        return f"gradients of {len(self.names)} parameters, {ends}, {known:06x}"

    def packed(self, grads: Mapping[int, Any]) -> Array:
        """Return gradients, by the ids of parameters, as one new array."""
        parts = [np.ravel(grads[id(p)]) for p in self.parameters]
        return np.concatenate(parts) if len(parts) > 1 else np.array(parts[0])

    def unpacked(self, flat: Array) -> list[Tensor]:
        """Return the parts of an array as gradients."""
        return [wrap(part.reshape(p.shape)) for p, part in self._parts(flat)]

    def joined(self, grads: Mapping[Tensor, Any]) -> Any:
        """Return gradients as one tensor, by operations on them."""
        return F.concat([F.reshape(grads[p], (-1,)) for p in self.parameters], axis=0)

    def divided(self, flat: Any) -> dict[Tensor, Any]:
        """Return the parts of a tensor as gradients, by operations on it."""
        return {p: F.reshape(part, p.shape) for p, part in self._parts(flat)}

    def _parts(self, flat: Any) -> list[tuple[Tensor, Any]]:
        found, start = [], 0
        for p in self.parameters:
            stop = start + size_of(p.shape)
            found.append((p, flat[start:stop]))
            start = stop
        return found


def plan_buckets(
    named: Sequence[tuple[str, Tensor]], limit: float = 25.0, first: float = 1.0
) -> list[Bucket]:
    """Return the buckets of parameters, from the last to the first, of at most so many MiB.

    The first one is smaller, so that something is on its way soon. A parameter that is larger has a
    bucket of its own.

    >>> import weft as wf
    >>> layer = wf.nn.Linear(600, 600)
    >>> [bucket.names for bucket in plan_buckets(list(layer.named_parameters()))]
    [('bias',), ('weight',)]
    """
    buckets: list[Bucket] = []
    names: list[str] = []
    chosen: list[Tensor] = []
    room = first * MIB

    def close() -> None:
        if chosen:
            buckets.append(Bucket(tuple(chosen), tuple(names)))
            chosen.clear()
            names.clear()

    for name, p in reversed(named):
        size = size_of(p.shape) * p.dtype.itemsize
        if chosen and (size > room or p.dtype != chosen[0].dtype):
            close()
            room = limit * MIB
        chosen.append(p)
        names.append(name)
        room -= size
    close()
    return buckets
