"""Keep the side of a `where` that was not taken out of gradients.

Of `where(x > 0, log(x), 0)` forward mode never sees the derivative of `log` at 0: the tangent of
the other side is chosen. In reverse mode a zero meets it, and 0 * inf is NaN. But that zero is no
number that happens to be 0: the result does not depend on that side. So a gradient that has come
through a `where` carries a mask of the elements that were taken, and as long as it goes through
elementwise operations, whose elements stay apart, their results are zero outside of it too; what
moves elements moves the mask. It ends behind all other operations, and where a gradient without a
mask is added.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.dispatch import sum_to
from ..core.op import F, elementwise, movement
from ..core.tape import make_node
from ..ops.elementwise.selection import where

WHERE = where
Rule = Callable[..., Sequence[Any]]


class WhereMask:
    """How masks pass through operations, on arrays or on tensors.

    of        the functions of arrays (NumPy) or of tensors (F), by their common names
    sum_to    undoes a broadcast
    """

    def __init__(self, of: Any, sum_to: Callable[[Any, Any], Any]) -> None:
        self.of = of
        self.sum_to = sum_to

    def pull_back(
        self, node: Any, mask: Any, rule: Rule, saved: Any, g: Any
    ) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Return the gradients of a node's operands, and the mask of each; None if none has one.

        mask   of the gradient of its result; None only for a `where`
        rule   takes the node, what it saved, and that gradient
        """
        op = node.op
        kind = getattr(op, "kind", None)
        if kind not in (elementwise, movement) or isinstance(g, list):  # of several results
            return rule(node, saved, g), None
        # The derivative of what is linear is a finite number: zeros stay zeros.
        apart = kind == elementwise and not op.linear
        grads = self._within(node, rule, saved, g, mask) if apart else rule(node, saved, g)
        masks: Sequence[Any] = [mask] * len(grads)
        if op is WHERE:
            masks = self._sides(saved[0], g, mask, grads)
        elif kind == movement:  # what only moves elements moves the mask likewise
            moved = rule(node, saved, self.of.where(mask, self.of.ones_like(g), 0))
            masks = [None if x is None else self.of.not_equal(x, 0) for x in moved]
        fitting = [
            None if x is None or m is None or x.shape != m.shape else m
            for x, m in zip(grads, masks, strict=True)
        ]
        return grads, fitting

    def _sides(self, condition: Any, g: Any, mask: Any, grads: Sequence[Any]) -> list[Any]:
        """Return the masks of the operands of a `where`, whose gradients are given."""
        of = self.of
        taken = condition if condition.shape == g.shape else of.broadcast_to(condition, g.shape)
        sides = [taken, of.logical_not(taken)]
        if mask is not None:
            sides = [of.logical_and(side, mask) for side in sides]
        return [None, *map(self._fitted, sides, grads[1:])]

    def _fitted(self, side: Any, grad: Any) -> Any:
        """Return the mask of an operand that was broadcast: what is taken of it somewhere."""
        if grad is None or grad.shape == side.shape:
            return side
        counts = self.sum_to(
            self.of.where(side, self.of.ones_like(side, dtype=grad.dtype), 0), grad.shape
        )
        return self.of.not_equal(counts, 0)

    def _within(self, node: Any, rule: Rule, saved: Any, g: Any, mask: Any) -> list[Any]:
        """Apply a rule, with nothing outside of a mask; only then undo broadcasts."""
        whole = make_node(node.op, node.parents, saved, getattr(node, "attrs", ()))
        found = [
            None if x is None else self.of.where(mask, x, 0) if x.shape == mask.shape else x
            for x in rule(whole, saved, g)
        ]
        shapes = getattr(node, "shapes", None)  # which a node of one operand need not have
        if shapes is None:
            return found
        pairs = zip(found, shapes, strict=True)
        return [None if x is None else self.sum_to(x, shape) for x, shape in pairs]

    def joined(self, a: Any, b: Any) -> Any:
        """Return the mask of a sum; None where one of the two has none."""
        if a is None or b is None:
            return None
        return a if a is b else self.of.logical_or(a, b)


def _sum_tensor_to(x: Any, shape: Any) -> Any:
    return F.sum_to(x, shape)  # looked up when first called: `import weft` generates no function


ON_ARRAYS = WhereMask(np, sum_to)
ON_TENSORS = WhereMask(F, _sum_tensor_to)
