"""Backward that tells of a gradient as soon as it is final, while it computes the others.

The gradient of a leaf is final when all operations that used the leaf are behind the walk. Where
one operation did, that is known at once; the others are final when the walk ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.device_array import on_devices
from ..core.modes import no_grad
from ..core.row_sparse import dense
from ..core.tape import Leaf, TapeNode
from ..core.tensor import Tensor
from .engine import AnyNode, nodes_behind
from .exchangers import GradientExchanger, active_exchangers
from .reverse import TapeWalk, accumulate


class _Heap(list[Any]):
    """The nodes to visit; asked whether there are any, it looks what is behind the walk by now."""

    def __init__(self, finals: list[tuple[int, Leaf]], tell: Callable[[Leaf], None]) -> None:
        super().__init__()
        self._finals = finals  # by the order of the operation, the earliest first
        self._tell = tell

    def __bool__(self) -> bool:
        if not len(self):
            return False
        finals, latest = self._finals, -self[0][0]
        while finals and finals[-1][0] > latest:
            self._tell(finals.pop()[1])
        return True


class EarlyWalk(TapeWalk):
    """A walk over the tape that tells somebody of leaves whose gradients are final."""

    def __init__(self, finals: list[tuple[int, Leaf]], tell: Callable[[Leaf], None], retain: bool):
        raw = not on_devices()
        super().__init__(raw=raw, retain=retain, rows=raw)
        self._announce = tell
        self.heap = _Heap(finals, self._tell)

    def release(self) -> None:
        """Let go of gradients: the heap knows the walk, so that both would stay for a while."""
        self.heap, self.pending = [], {}

    def _tell(self, leaf: Leaf) -> None:
        """Put a gradient in its place, as the end of the walk would."""
        if leaf in self.pending:
            accumulate(leaf, self._settled(leaf, self.pending.pop(leaf)))
            self._announce(leaf)

    def _settled(self, leaf: Leaf, given: Any) -> Any:
        g = given if self.rows else dense(given)
        return g if leaf.watch is None else self._settle(leaf, g)


def backward_and_exchange(root: Tensor, seed: Tensor, *, retain: bool, create_graph: bool) -> None:
    """Do what `backward` does, with those told who exchange gradients."""
    behind = nodes_behind([root._node])
    involved = [each for each in _Involved.all() if each.is_reached(behind)]
    if create_graph:
        walk = TapeWalk(raw=False, retain=retain, rows=False)
        _accumulate_all(walk.run([root._node], [seed], record=True))
        for each in involved:
            each.exchange_after()
        return
    told = {leaf: each for each in involved for leaf in each.leaves}
    for each in involved:
        each.begin(behind)
    early = EarlyWalk(_finals(behind, told), lambda leaf: told[leaf].ready(leaf), retain)
    try:
        left = early.run([root._node], [seed], record=False)
    finally:
        early.release()
    _accumulate_all(left)
    for leaf in left:
        if leaf in told:
            told[leaf].ready(leaf)
    for each in involved:
        each.finish()


def _accumulate_all(found: dict[AnyNode, Any]) -> None:
    for leaf, grad in found.items():
        accumulate(leaf, grad)


def _finals(behind: set[AnyNode], told: dict[Leaf, Any]) -> list[tuple[int, Leaf]]:
    """Return leaves that one operation used, by the order of that, the earliest first."""
    uses: dict[Leaf, list[int]] = {}
    for node in behind:
        if isinstance(node, TapeNode):
            for parent in node.parents:
                if parent.__class__ is Leaf and parent in told:
                    uses.setdefault(parent, []).append(node.order)
    once = [(orders[0], leaf) for leaf, orders in uses.items() if len(orders) == 1]
    return sorted(once, key=lambda pair: pair[0])


class _Involved:
    """An exchanger in one walk, with the leaves of its parameters."""

    def __init__(self, exchanger: GradientExchanger) -> None:
        self._exchanger = exchanger
        self.leaves: dict[Leaf, Tensor] = {
            p._node: p for p in exchanger.parameters if isinstance(p._node, Leaf)
        }

    @staticmethod
    def all() -> list[_Involved]:
        return [_Involved(exchanger) for exchanger in active_exchangers()]

    def is_reached(self, behind: set[AnyNode]) -> bool:
        return not behind.isdisjoint(self.leaves)

    def begin(self, behind: set[AnyNode]) -> None:
        """Say which parameters will have gradients; those that have some already are final."""
        waiting = [leaf for leaf in self.leaves if leaf in behind]
        kept = [leaf for leaf in self.leaves if leaf not in behind and leaf.grad is not None]
        self._exchanger.begin([self.leaves[leaf] for leaf in (*waiting, *kept)])
        for leaf in kept:
            self.ready(leaf)

    def ready(self, leaf: Leaf) -> None:
        self._exchanger.ready(self.leaves[leaf])

    def finish(self) -> None:
        self._exchanger.finish()

    def exchange_after(self) -> None:
        """Exchange gradients that can be differentiated again, by operations on them."""
        grads = {p: p.grad for leaf, p in self.leaves.items() if leaf.grad is not None}
        for p, g in self._exchanger.exchanged(grads).items():
            p.grad = g


def exchange_recorded(reached: Sequence[Tensor]) -> None:
    """Exchange the gradients that a recorded backward has left, if it reached some of them."""
    known = {id(p) for p in reached}
    for exchanger in active_exchangers():
        if any(id(p) in known for p in exchanger.parameters):
            grads = {p: p.grad for p in exchanger.parameters}
            given = {p: g for p, g in grads.items() if g is not None}
            with no_grad():
                for p, g in exchanger.exchanged(given).items():
                    p.grad = g


class ExchangerTest:
    """Tests that those exchange gradients who did when the recording of a program began."""

    def __init__(self) -> None:
        self._found = set(map(id, active_exchangers()))

    def __call__(self) -> bool:
        """Tell whether they do."""
        return set(map(id, active_exchangers())) == self._found
