"""Steps by row-sparse gradients: a rule is applied to the rows that have one, and to their states.

The rule is the one that dense gradients take; it sees the gathered rows of a parameter and of its
slots, each row once, and what it gives is scattered back. So a step takes time and memory by the
rows of a batch. A rule that would change other rows too says why (`GradientTransform.whole`).
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import getrefcount
from typing import Any

import numpy as np

from ..core.device_array import is_placed
from ..core.dtype import Array
from ..core.errors import GradientError, IndexOutOfRange
from ..core.op import F
from ..core.row_sparse import FEW_AGAIN, RowSparse, as_array, row_totals, write_rows
from ..core.tensor import Tensor
from ..ops.index.rows import with_rows_at
from .transform import GradientTransform, State


def check_forms(
    optimizer: Any,
    group: Mapping[str, Any],
    rule: GradientTransform,
    grads: Mapping[Tensor, Any],
) -> None:
    """Raise if an optimizer does not take a gradient in the form, dense or by rows, that it has."""
    if rule.whole is None and optimizer.takes_dense:
        return
    for p, g in grads.items():
        name = type(optimizer).__name__
        if not isinstance(g, RowSparse):
            if not optimizer.takes_dense:
                way = "build its layer with sparse=True"
                if is_placed(p._value):
                    way = f"on {str(p.device)!r} all are dense; leave the layer on the CPU"
                raise GradientError(
                    f"{name} takes row-sparse gradients alone; {_shown(group, p)}, has a "
                    f"dense one: {way}, or give it to Adam"
                )
        elif rule.whole is not None:
            raise GradientError(
                f"{name} cannot take the row-sparse gradient of {_shown(group, p)}: {rule.whole}. "
                "Use SGD, Adagrad, Adam or SparseAdam without weight decay for it (in a group of "
                "its own if need be), or build its layer with sparse=False"
            )


def _shown(group: Mapping[str, Any], p: Tensor) -> str:
    names = group.get("param_names")
    place = next(i for i, q in enumerate(group["params"]) if q is p)
    return f"parameter {names[place] if names else f'number {place}'}, of shape {p.shape}"


# -- eagerly, on arrays ----------------------------------------------------------------------------


def _holders(slots: Mapping[str, Any], name: str) -> int:
    value = slots[name]
    return getrefcount(value)


ALONE = _holders({"slot": np.empty(0)}, "slot")  # references to what nobody else holds


def _check_rows(p: Tensor, rows: Array) -> None:
    """Raise unless rows are those of a parameter: anyone may set `.grad`."""
    least, most = (int(rows.min()), int(rows.max())) if rows.size else (0, -1)
    if least < 0 or most >= len(p._value):
        wrong = least if least < 0 else most
        raise IndexOutOfRange(
            f"a row-sparse gradient of a parameter of shape {p.shape} has rows from 0 to "
            f"{len(p._value) - 1}. Received: row {wrong}"
        )


def _parts(g: RowSparse, elementwise: bool) -> tuple[Array, Array]:
    """Return rows and the sum of what goes to each, as a rule takes them."""
    few = len(g.rows) * FEW_AGAIN <= g.shape[0]  # of a large table: not many stand again
    if elementwise and few and not g.is_coalesced:
        return row_totals(as_array(g.rows), as_array(g.values))
    once = g.coalesce()
    return as_array(once.rows), as_array(once.values)


class RowPart:
    """What a rule sees of a parameter: the rows that have a gradient.

    elementwise   whether a rule may see a row several times, with the same numbers each time
    """

    def __init__(self, p: Tensor, slots: State, precision: Any, elementwise: bool) -> None:
        self.p, self.slots = p, slots
        self.rows, gradient = _parts(p.grad, elementwise)
        _check_rows(p, self.rows)
        self.value = p._value.take(self.rows, 0).astype(precision, copy=False)
        self.gradient = gradient.astype(precision, copy=False)
        self.state = {
            name: slot.take(self.rows, 0) if self._is_table(slot) else slot
            for name, slot in slots.items()
        }

    def _is_table(self, slot: Any) -> bool:
        return isinstance(slot, np.ndarray) and slot.shape == self.p.shape

    def write(self, update: Any, changed: State) -> None:
        """Put the new rows of the parameter and of its slots in their places."""
        table = self.p._exclusive()
        if table is None:
            table = self.p._value = self.p._value.copy()
        write_rows(table, self.rows, self._added(update))
        for name, new in changed.items():
            self.slots[name] = self._written(name, new) if self._is_table(self.slots[name]) else new

    def _added(self, update: Any) -> Array:
        """Return the new rows, in the memory of the old ones: what is not fresh is in the cache."""
        shared = _holders(self.__dict__, "value") > ALONE
        new: Array = np.add(self.value, update, out=None if shared else self.value)
        return new

    def _written(self, name: str, new: Any) -> Array:
        shared = _holders(self.slots, name) > ALONE
        slot: Array = self.slots[name]
        slot = slot.copy() if shared or not slot.flags.writeable else slot
        write_rows(slot, self.rows, new)
        return slot


# -- in a graph ------------------------------------------------------------------------------------


def rows_of(table: Any, g: RowSparse) -> Any:
    """Return the rows of a table that have a gradient, as a symbol."""
    return F.take(table, g.rows, 0)


def with_rows(table: Any, g: RowSparse, new: Any) -> Any:
    """Return a table with other values in these rows.

    In a graph a row may have several places, of which the last counts (`RowSparse.coalesce`).
    """
    return with_rows_at(table, g.rows, new)
