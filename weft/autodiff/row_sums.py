"""Gradients of a weight that several operations used, as one product in the place of many.

A weight that each step of a loop multiplies with a few rows gets a gradient from each of them: a
product of these rows, and an addition as large as the weight, which takes about as long. The sum of
products is the product of all rows. So from the second one on, rows wait until they are many.

Only leaves are summed so: nobody reads their gradients before the walk is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.dtype import Array
from ..core.facts import ROW_SUMS
from ..core.large import LARGE
from ..core.op import F
from ..core.tape import Leaf, TapeNode, make_node

# Elements of a gradient. Sizes alone must decide about bits, and where there is a large gradient
# there was a large tensor, so that the door is open (core/large.py).
LEAST_SIZE = LARGE
ENOUGH_ROWS = 256  # beside a product of so many, the addition of its result is nothing

Factors = tuple[Array, Array]


class RowSums:
    """The rows of one walk that wait to be multiplied, for each leaf whose gradient they make.

    pending   the gradients of the walk
    owned     of which of these the walk may add to in place
    """

    def __init__(self, pending: dict[Any, Any], owned: set[Any]) -> None:
        self.pending = pending
        self.owned = owned
        self.waiting: dict[Leaf, list[Factors]] = {}

    def backward(self, node: TapeNode, g: Array) -> Sequence[Any]:
        """Return the gradients of a node's inputs, without the one whose rows will wait."""
        position, _ = ROW_SUMS[node.op]
        leaf = node.parents[position]
        known = self.pending.get(leaf)
        if leaf.__class__ is Leaf and known.__class__ is np.ndarray and known.size >= LEAST_SIZE:
            factors = _factors(node, g)
            if factors is not None and len(factors[0]) < ENOUGH_ROWS:
                self._keep(leaf, factors)
                node = _without(node, position)
        found: Sequence[Any] = node.op.backward(node, node.saved, g)
        return found

    def complete(self) -> None:
        """Add what still waits to the gradients."""
        for leaf in [*self.waiting]:
            self._add(leaf)

    def _keep(self, leaf: Leaf, factors: Factors) -> None:
        rows = self.waiting.setdefault(leaf, [])
        rows.append(factors)
        if sum(len(left) for left, _ in rows) >= ENOUGH_ROWS:
            self._add(leaf)

    def _add(self, leaf: Leaf) -> None:
        """Multiply the rows that wait, and add the product to the gradient."""
        left, right = (_joined(parts) for parts in zip(*self.waiting.pop(leaf), strict=True))
        product = F.matmul(left.T, right)
        if leaf in self.owned:
            self.pending[leaf] += product
        else:
            self.pending[leaf] = F.add(self.pending[leaf], product)
            self.owned.add(leaf)


def _factors(node: TapeNode, g: Array) -> Factors | None:
    """Return the matrices whose rows are multiplied, if the gradient is a sum of such."""
    _, rule = ROW_SUMS[node.op]
    saved = dict(zip(node.op.saves, node.saved, strict=True))
    names = rule.__code__.co_varnames[1 : rule.__code__.co_argcount]
    found: Factors | None = rule(g, *[saved[name] for name in names])
    return found


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _without(node: TapeNode, position: int) -> TapeNode:
    """Return a node like another one, with an input that wants no gradient."""
    parents = tuple(None if i == position else x for i, x in enumerate(node.parents))
    attrs = node.attrs if node.op.attrs else ()
    return make_node(node.op, parents, node.saved, attrs, shapes=getattr(node, "shapes", None))
