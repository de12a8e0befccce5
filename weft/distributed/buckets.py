"""Buckets: the gradients of several parameters as one array, which is exchanged at once.

Few large messages are faster than many small ones, and several are better than one: the first is on
its way while backward computes what goes into the next. Buckets hold parameters from the last to
the first, the order in which backward finishes them. Nothing is left to compute when the last one
sets off; so a large parameter that would be in it travels in several, each some of its rows, and
compiled programs compute, and send, one after another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..core.op import F
from ..core.shape import Shape, size_of
from ..core.tensor import Tensor, wrap
from .programs import checksum
from .transport import Array

MIB = 1 << 20
PARTS = 4  # of a parameter in the last bucket, each of at least one MiB


class Bucket(NamedTuple):
    """Parameters whose gradients travel together, all of one dtype.

    rows   of the only one, if not all of it travels in this bucket: from which to which
    """

    parameters: tuple[Tensor, ...]
    names: tuple[str, ...]
    rows: tuple[int, int] | None = None

    def among(self, used: Iterable[Tensor]) -> Bucket:
        """Return the bucket with those parameters alone that are used."""
        known = {id(p) for p in used}
        kept = [i for i, p in enumerate(self.parameters) if id(p) in known]
        found = tuple(self.parameters[i] for i in kept), tuple(self.names[i] for i in kept)
        return Bucket(*found, self.rows)

    @property
    def is_last_of_its_rows(self) -> bool:
        """Tell whether nothing of its gradients is left for later buckets."""
        return self.rows is None or self.rows[1] == self.parameters[0].shape[0]

    @property
    def note(self) -> str:
        """Return what it holds, as a text that differs where buckets do."""
        ends = self.names[0] if len(self.names) == 1 else f"{self.names[0]} ... {self.names[-1]}"
        known = checksum("/".join(self.names)) % 16**6
        rows = "" if self.rows is None else f", rows {self.rows[0]} to {self.rows[1]}"
        return f"gradients of {len(self.names)} parameters, {ends}, {known:06x}{rows}"

    def packed(self, grads: Mapping[int, Any]) -> Array:
        """Return gradients, by the ids of parameters, as one new array."""
        parts = [np.ravel(self._own_rows(grads[id(p)])) for p in self.parameters]
        return np.concatenate(parts) if len(parts) > 1 else np.array(parts[0])

    def unpacked(self, flat: Array) -> list[Tensor]:
        """Return the parts of an array as gradients, or those rows that they are."""
        return [wrap(part.reshape(self._shape(p))) for p, part in self._parts(flat)]

    def joined(self, grads: Mapping[Tensor, Any]) -> Any:
        """Return gradients as one tensor, by operations on them."""
        parts = [F.reshape(self._own_rows(grads[p]), (-1,)) for p in self.parameters]
        return F.concat(parts, axis=0)

    def divided(self, flat: Any) -> dict[Tensor, Any]:
        """Return the parts of a tensor as gradients, or as rows of them, by operations on it."""
        return {p: F.reshape(part, self._shape(p)) for p, part in self._parts(flat)}

    def _own_rows(self, grad: Any) -> Any:
        return grad if self.rows is None else grad[slice(*self.rows)]

    def _shape(self, p: Tensor) -> Shape:
        if self.rows is None:
            return p.shape
        return (self.rows[1] - self.rows[0], *p.shape[1:])

    def _parts(self, flat: Any) -> list[tuple[Tensor, Any]]:
        found, start = [], 0
        for p in self.parameters:
            stop = start + size_of(self._shape(p))
            found.append((p, flat[start:stop]))
            start = stop
        return found


def plan_buckets(
    named: Sequence[tuple[str, Tensor]], limit: float = 25.0, first: float = 1.0
) -> list[Bucket]:
    """Return the buckets of parameters, from the last to the first, of at most so many MiB.

    The first one is smaller, so that something is on its way soon. A parameter that is larger has a
    bucket of its own; if it is the last one, it travels in parts.

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
    return [*buckets[:-1], *_in_rows(buckets[-1])] if buckets else []


def _in_rows(last: Bucket) -> list[Bucket]:
    """Return the last bucket, and parts of the last parameter, if that is large."""
    p, name = last.parameters[-1], last.names[-1]
    size = size_of(p.shape) * p.dtype.itemsize
    count = min(PARTS, p.shape[0] if p.ndim > 1 else 1)
    if size <= PARTS * MIB or count == 1:
        return [last]
    bounds = [p.shape[0] * i // count for i in range(count + 1)]
    before = Bucket(last.parameters[:-1], last.names[:-1])
    parts = [Bucket((p,), (name,), rows) for rows in pairwise(bounds)]
    return [before, *parts] if before.parameters else parts
