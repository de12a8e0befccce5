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

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

from ..core.op import Op, elementwise, movement
from ..ops.elementwise.selection import where
from .rules import RuleCall

WHERE = where


class WhereMasks:
    """The masks of gradients on their way, by the keys of the values they belong to.

    of        the functions of arrays (NumPy) or of tensors (F), by their common names
    sum_to    undoes a broadcast
    """

    def __init__(self, of: Any, sum_to: Callable[[Any, Any], Any]) -> None:
        self.of = of
        self.sum_to = sum_to
        self.masks: dict[Any, Any] = {}

    def pull_back(
        self,
        key: Any,
        op: Any,
        rule: Callable[..., Sequence[Any]],
        call: Any,
        saved: Any,
        g: Any,
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the gradients of an operation's operands, and the mask of each or None.

        rule   takes the call, what it saved, and the gradient of its result
        """
        mask = self.masks.pop(key, None)
        concerned = (mask is not None or op is WHERE) and not isinstance(g, list)
        kind = getattr(op, "kind", None) if concerned else None
        if kind not in (elementwise, movement):  # or it has several results
            grads = rule(call, saved, g)
            return grads, [None] * len(grads)
        if kind == elementwise and not op.linear:  # of a linear one zeros stay zeros
            grads = self._within(rule, call, saved, g, mask)
            masks = [mask] * len(grads)
        else:
            grads = rule(call, saved, g)
            masks = [mask] * len(grads)
        if op is WHERE:
            masks = self._sides(saved[0], g, mask, grads)
        elif kind == movement:
            masks = self._moved(rule, call, saved, self.of.where(mask, self.of.ones_like(g), 0))
        fitting = [
            None if x is None or m is None or x.shape != m.shape else m
            for x, m in zip(grads, masks, strict=True)
        ]
        return grads, fitting

    def pull_back_by(
        self, key: Any, op: Any, pullback: Any, g: Any
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Do the same by what `Operation.pullback` returned."""
        if not isinstance(pullback, partial) or not isinstance(op, Op):
            self.masks.pop(key, None)
            grads = pullback(g)
            return grads, [None] * len(grads)
        call, saved = pullback.args
        return self.pull_back(key, op, pullback.func, call, saved, g)

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

    def _moved(
        self, rule: Callable[..., Sequence[Any]], call: Any, saved: Any, taken: Any
    ) -> list[Any]:
        """Return the masks of the operands of what only moves elements: they move likewise."""
        places = rule(call, saved, taken)
        return [None if x is None else self.of.not_equal(x, 0) for x in places]

    def _within(
        self, rule: Callable[..., Sequence[Any]], call: Any, saved: Any, g: Any, mask: Any
    ) -> list[Any]:
        """Apply a rule, with nothing outside of a mask; only then undo broadcasts."""
        shapes = getattr(call, "shapes", None)
        whole = RuleCall(call.parents, getattr(call, "attrs", ()), None)
        found = [
            None if x is None else self.of.where(mask, x, 0) if x.shape == mask.shape else x
            for x in rule(whole, saved, g)
        ]
        if shapes is None:
            return found
        pairs = zip(found, shapes, strict=True)
        return [None if x is None else self.sum_to(x, shape) for x, shape in pairs]

    def arrive(self, key: Any, mask: Any, pending: Collection[Any]) -> None:
        """Note the mask, or None, of a gradient that is about to be added to those pending."""
        if key not in pending:
            if mask is not None:
                self.masks[key] = mask
            return
        known = self.masks.pop(key, None)
        if known is not None and mask is not None:
            self.masks[key] = mask if known is mask else self.of.logical_or(known, mask)
