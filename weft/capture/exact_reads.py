"""Which values Python may read exactly, as a number or an array: those that calls have in common.

A path that holds for one value of a float holds for hardly any other call, so a function that reads
one is better run eagerly. Truth values are asked for instead (`if loss > 3`), and `item()` gives a
number that follows its value. Integers are read: an index has few values.
"""

from __future__ import annotations

from collections.abc import Collection

from ..core.dtype import is_float
from ..core.tensor import Tensor
from ..graph.node import Node, Value
from ..graph.special import PLACEHOLDER, STATE

NUMBER = (
    "needs the value of a number that it read from a tensor, which is another in nearly each call; "
    "let tensors compute it"
)
TENSOR = (
    "reads floats out of a tensor, which are others in nearly each call; use x.item(), which "
    "follows the value, or return the tensor"
)


class ExactReads:
    """Tells which values of a graph that grows differ from call to call."""

    def __init__(self) -> None:
        self._differs: dict[Node, bool] = {}

    def is_pinned(
        self,
        value: Value,
        written: Collection[tuple[int, str]] = (),
        *,
        any_number: bool = False,
    ) -> bool:
        """Tell whether a path that knows a value exactly holds for hardly any other call.

        written      keys of states that the function writes
        any_number   whether that is said of integers as well
        """
        exact = any_number or is_float(value.dtype) or value.dtype.kind == "c"
        return exact and (self._follows(value.node) or _reads_any(value.node, written))

    def _follows(self, node: Node) -> bool:
        """Tell whether a node depends on what calls are given, on parameters or on chance."""
        pending = [node]
        while pending:
            last = pending[-1]
            unknown = [x.node for x in last.inputs if x is not None and x.node not in self._differs]
            if unknown:
                pending += unknown
                continue
            pending.pop()
            taken = [self._differs[x.node] for x in last.inputs if x is not None]
            self._differs[last] = any(taken) or _changes(last)
        return self._differs[node]


def _changes(node: Node) -> bool:
    """Tell whether a source is another in nearly each call; a tensor from outside seldom is."""
    if node.op is not STATE:
        return node.op is PLACEHOLDER
    owner = node.attrs[0].owner
    return not isinstance(owner, Tensor) or owner.requires_grad


def _reads_any(node: Node, states: Collection[tuple[int, str]]) -> bool:
    """Tell whether a node depends on one of some states."""
    if not states:
        return False
    seen, pending = {node}, [node]
    while pending:
        last = pending.pop()
        if last.op is STATE and last.attrs[0].key in states:
            return True
        new = {x.node for x in last.inputs if x is not None} - seen
        seen |= new
        pending += new
    return False
