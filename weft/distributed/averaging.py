"""The mean of the gradients of all processes, in the place of each one's own.

In eager code `backward` says which gradients are final, and a complete bucket sets off while the
rest is computed. In graphs the same buckets are nodes, in the same order, so that processes of
which some run compiled and some run eagerly understand one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..autodiff.exchangers import GradientExchanger
from ..core.op import F
from ..core.row_sparse import RowSparse
from ..core.tensor import Tensor, wrap
from ..ops.collective.exchange import exchanged
from .buckets import Bucket, plan_buckets
from .compression import Travel
from .world import ProcessGroup


class GradientAverager(GradientExchanger):
    """Puts the mean of the gradients of all processes into `.grad` of parameters.

    named     the parameters with their names, in the same order on all processes
    travel    how a bucket is sent
    unused    whether processes may use different parameters: those without a gradient send zeros
    """

    def __init__(
        self,
        named: Sequence[tuple[str, Tensor]],
        group: ProcessGroup,
        travel: Travel,
        *,
        limit: float = 25.0,
        first: float = 1.0,
        unused: bool = False,
    ) -> None:
        self.named = [(name, p) for name, p in named if p.requires_grad]
        self._parameters = [p for _, p in self.named]
        self.group, self.travel, self.unused = group, travel, unused
        self.buckets = plan_buckets(self.named, limit, first)
        self._begun: list[tuple[Bucket, Any]] = []
        self._by_rows: list[Tensor] = []
        self._left: list[set[int]] = []
        self._next = 0

    @property
    def parameters(self) -> Sequence[Tensor]:
        """Return the parameters whose gradients it takes."""
        return self._parameters

    # -- while backward runs -----------------------------------------------------------------------

    def begin(self, used: Sequence[Tensor]) -> None:
        """Know which parameters will have gradients when backward ends."""
        known = {id(p) for p in used}
        self._used = used if not self.unused else self._parameters
        self._left = [{id(p) for p in b.parameters if id(p) in known} for b in self.buckets]
        self._begun, self._by_rows, self._next = [], [], 0
        self._send_complete()

    def ready(self, parameter: Tensor) -> None:
        """Know that `.grad` of a parameter is final; send what is complete, in order."""
        for left in self._left:
            left.discard(id(parameter))
        self._send_complete()

    def _send_complete(self) -> None:
        while self._next < len(self.buckets) and not self._left[self._next]:
            self._send(self.buckets[self._next].among(self._used))
            self._next += 1

    def _send(self, bucket: Bucket) -> None:
        grads = {id(p): self._gradient(p) for p in bucket.parameters}
        known = _ids(self._by_rows)  # one that travels in parts comes several times
        sparse = [p for p in bucket.parameters if isinstance(grads[id(p)], RowSparse)]
        self._by_rows += [p for p in sparse if id(p) not in known]
        whole = bucket.among([p for p in bucket.parameters if id(p) not in _ids(self._by_rows)])
        if whole.parameters:
            arrays = {key: g.numpy() for key, g in grads.items() if not isinstance(g, RowSparse)}
            begun = self.travel.start(self.group, whole.packed(arrays), whole.note)
            self._begun.append((whole, begun))
            if whole.is_last_of_its_rows:  # all is in buckets now: no need to have it twice
                for p in whole.parameters:
                    p.grad = None

    def _gradient(self, p: Tensor) -> Any:
        found = p.grad
        return wrap(np.zeros(p.shape, p.dtype)) if found is None else found

    def finish(self) -> None:
        """Put the means into `.grad` of all that were announced."""
        rows: dict[Tensor, list[Any]] = {}
        for bucket, begun in self._begun:
            parts = bucket.unpacked(self.travel.finish(begun))
            for p, g in zip(bucket.parameters, parts, strict=True):
                if bucket.rows is None:
                    p.grad = g
                else:
                    rows.setdefault(p, []).append(g.numpy())
        for p, arrays in rows.items():
            p.grad = wrap(np.concatenate(arrays))
        for p in self._by_rows:
            found: Any = self._mean_by_rows(p.grad)
            p.grad = found
        self._begun, self._by_rows = [], []

    # -- as operations -----------------------------------------------------------------------------

    def exchanged(self, grads: Mapping[Tensor, Any]) -> dict[Tensor, Any]:
        """Return the means of gradients, as operations on them."""
        given = dict(grads)
        if self.unused:
            given |= {p: F.zeros_like(p) for p in self._parameters if p not in given}
        rows = {p: g for p, g in given.items() if isinstance(g, RowSparse)}
        whole = [p for p in self._parameters if p in given and p not in rows]
        parts: dict[Tensor, list[Any]] = {}
        for bucket in (b.among(whole) for b in self.buckets):
            if bucket.parameters:
                flat = self.travel.in_graph(self.group, bucket.joined(given), bucket.note)
                for p, g in bucket.divided(flat).items():
                    parts.setdefault(p, []).append(g)
        found = {p: F.concat(gs, axis=0) if len(gs) > 1 else gs[0] for p, gs in parts.items()}
        found |= {p: self._mean_by_rows(rows[p]) for p in self._parameters if p in rows}
        return found

    def _mean_by_rows(self, g: RowSparse) -> RowSparse:
        """Return the rows of all processes one after another; each has read as many."""
        where = (self.group.number, self.group.size)
        rows = exchanged(g.rows, "gather", *where, note="rows of a table")
        values = exchanged(g.values, "gather", *where, note="gradients of rows")
        return RowSparse(rows, values / self.group.size, g.shape)


def _ids(tensors: Sequence[Tensor]) -> set[int]:
    return {id(tensor) for tensor in tensors}
