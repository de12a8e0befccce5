"""Reverse mode: one walk from outputs to what they depend on, latest operation first.

Whatever is differentiated stands as nodes of the tape's form (core/tape.py): plain eager code
leaves them, a recording inside other transforms makes them of what it runs, a graph of its nodes.
A node is visited once, after all its consumers, and a chain of any length needs no recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..core.errors import GradientError, format_site
from ..core.facts import ROW_SUMS
from ..core.large import LARGE, door
from ..core.modes import GradMode, modes
from ..core.op import F
from ..core.row_sparse import RowSparse, add_gradients, dense
from ..core.tape import FREED, OUTPUT, FanNode, Leaf, TapeNode
from ..core.tensor import Tensor, placed_like, wrap
from .row_sums import RowSums
from .where_mask import ON_ARRAYS, ON_TENSORS, WHERE, WhereMask

AnyNode = TapeNode | Leaf
GradientsOf = Callable[[Any, Any], Iterable[Any]]
IN_PLACE_BYTES = 1 << 15  # below, NumPy adds into a fresh array faster than into an old one


class ReverseWalk:
    """One traversal of nodes from outputs towards leaves.

    raw      whether gradients are arrays, on which rules are fast; else tensors or symbols
    retain   whether nodes keep what they saved
    rows     whether leaves take row-sparse gradients as they are; else those are made dense
    record   whether gradients can be differentiated again
    """

    record = False

    def __init__(self, *, raw: bool = False, retain: bool = True, rows: bool = False) -> None:
        self.raw = raw
        self.retain = retain
        self.rows = rows
        self.pending: dict[AnyNode, Any] = {}  # gradients of nodes not yet visited
        self.heap: list[tuple[int, TapeNode]] = []
        self.masks: dict[AnyNode, Any] = {}  # what was taken of them by a `where`
        self.useful: set[AnyNode] | None = None  # where the walk may go; None = everywhere

    def run(
        self,
        roots: Sequence[AnyNode | None],
        seeds: Sequence[Any],
        wanted: set[AnyNode] | None = None,
    ) -> dict[AnyNode, Any]:
        """Return the gradients of all leaves, or of the wanted nodes if there are any named.

        A root without a node or without a seed, a tensor to start with, is passed over.
        """
        if wanted is not None:
            self.wanted, self.found = wanted, dict[AnyNode, Any]()
            self.useful = leading_to(wanted, roots)
        self._start(roots, seeds)
        self._walk(self._special())
        return self._finish()

    def _start(self, roots: Sequence[AnyNode | None], seeds: Sequence[Any]) -> None:
        pending, useful = self.pending, self.useful
        for node, seed in zip(roots, seeds, strict=True):
            if node is None or seed is None or (useful is not None and node not in useful):
                continue
            g = seed._value if self.raw else seed
            if node in pending:
                pending[node] = pending[node] + g
            else:
                pending[node] = g
                if node.__class__ is not Leaf:
                    heappush(self.heap, (-node.order, node))  # type: ignore[misc]  # no Leaf

    def _walk(self, special: GradientsOf | None) -> None:  # noqa: C901, PLR0912, PLR0915  (see below)
        """Visit nodes from the latest to the earliest: here backward spends its time."""
        # One flat loop on purpose: a function call per node would cost a tenth of the whole.
        heap, pending, useful, retain = self.heap, self.pending, self.useful, self.retain
        plus: Any = np.add if self.raw else add_gradients
        owned: set[AnyNode] = set()  # sums made by this walk, which it may add to in place
        masks = self.masks
        # Of large gradients only, which there are none of while the door is shut.
        sums = RowSums(pending, owned) if door.open and special is None else None
        while heap:
            node = heappop(heap)[1]
            g = pending.pop(node)
            if node.watch is not None or useful is not None:
                g = self._settle(node, g)
                if useful is not None and useful.isdisjoint(node.parents):
                    continue  # nothing asked for lies further on
            op, saved = node.op, node.saved
            if op is OUTPUT:
                self._deposit(node, g)
                continue
            if node.__class__ is FanNode:
                g = self._complete(node, g)
            if saved is FREED:
                raise freed_error(node)
            if special is not None:
                grads = special(node, g)
            elif masks or op is WHERE:
                grads = self._gradients(node, g)
            elif sums is not None and op in ROW_SUMS:
                grads = sums.backward(node, g)
            else:
                grads = op.backward(node, saved, g)
            if not retain:
                node.saved = FREED
            for parent, grad in zip(node.parents, grads):  # noqa: B905  (`strict` costs a tenth)
                if parent is None or grad is None:
                    continue
                if parent not in pending:
                    if useful is None or parent in useful:
                        pending[parent] = grad
                        if parent.__class__ is not Leaf:
                            heappush(heap, (-parent.order, parent))
                elif parent in owned:
                    total = pending[parent]
                    total += grad
                    pending[parent] = total
                else:
                    add = _add_large if special is None and grad.size >= LARGE else plus
                    pending[parent] = total = add(pending[parent], grad)
                    if special is None and total.nbytes > IN_PLACE_BYTES:
                        owned.add(parent)
        if sums is not None:
            sums.complete()

    def _special(self) -> GradientsOf | None:
        """Return how to differentiate a node where the rules on raw arrays are not enough."""
        return None if self.raw else self._gradients

    def _gradients(self, node: Any, g: Any) -> Sequence[Any]:
        """Apply the rule of one node, with an eye on the sides of a `where` that were not taken."""
        rule, saved = self._rule(node)
        mask = self.masks.pop(node, None)
        if mask is None and node.op is not WHERE:
            grads, masks = rule(node, saved, g), None
        else:
            grads, masks = self._how.pull_back(node, mask, rule, saved, g)
        if masks is not None or self.masks:
            self._note_masks(node, grads, masks or [None] * len(grads))
        return grads

    @property
    def _how(self) -> WhereMask:
        return ON_ARRAYS if self.raw else ON_TENSORS

    def _note_masks(self, node: Any, grads: Sequence[Any], masks: Sequence[Any]) -> None:
        """Remember the masks of gradients that are about to be added to those pending."""
        met = set[AnyNode]()
        for parent, grad, mask in zip(node.parents, grads, masks, strict=True):
            if grad is None or not isinstance(parent, TapeNode):
                continue
            known = parent in met or parent in self.pending
            total = self._how.joined(self.masks.pop(parent, None), mask) if known else mask
            if total is not None:
                self.masks[parent] = total
            met.add(parent)

    def _rule(self, node: Any) -> tuple[Callable[..., Sequence[Any]], Any]:
        """Return the rule of a node, a function of the node, what it saved, and g; and the saved.

        What a node saved may be the rule itself, a function of g.
        """
        return (_by_itself if callable(node.saved) else node.op.linked), node.saved

    def _deposit(self, output: TapeNode, g: Any) -> None:
        """Hand the gradient of one of several outputs to the operation that made them."""
        (node,) = output.parents
        if self.useful is not None and node not in self.useful:
            return
        if node not in self.pending:
            self.pending[node] = [None] * len(node.outputs)
            heappush(self.heap, (-node.order, node))
        parts, i = self.pending[node], output.saved
        parts[i] = g if parts[i] is None else parts[i] + g

    def _complete(self, node: FanNode, parts: list[Any]) -> list[Any]:
        """Return the gradients of all outputs, zero for those that nothing depends on."""
        for i, part in enumerate(parts):
            if part is None:
                shape, dtype = node.outputs[i]
                zeros = np.broadcast_to(np.zeros((), dtype), shape)
                parts[i] = zeros if self.raw else self._beside(parts, wrap(zeros))
        return parts

    def _beside(self, parts: Sequence[Any], zeros: Tensor) -> Tensor:
        """Return zeros where the gradients are that are known."""
        known = next((g for g in parts if g is not None), None)
        return zeros if modes.base is None or known is None else placed_like(known, zeros)

    def _settle(self, node: AnyNode, g: Any) -> Any:
        """Run the hooks on a complete gradient, and keep it where that was asked for."""
        watch = node.watch
        if watch is not None:
            for hook in tuple(watch.hooks.values()):
                g = self._run_hook(hook, g)
                self.masks.pop(node, None)  # it may put something where nothing was
            if watch.retain and isinstance(node, TapeNode):
                watch.grad = as_tensor(g) if watch.grad is None else watch.grad + as_tensor(g)
        if self.useful is not None and node in self.wanted:
            self.found[node] = g
        return g

    def _run_hook(self, hook: Callable[[Tensor], Any], g: Any) -> Any:
        with GradMode(self.record):
            result = hook(as_tensor(g))
        if result is None:
            return g
        if not isinstance(result, (Tensor, RowSparse)) or result.shape != g.shape:
            is_gradient = isinstance(result, (Tensor, RowSparse))
            received = f"shape {result.shape}" if is_gradient else repr(result)
            raise GradientError(
                f"a hook must return None or a tensor of the gradient's shape {g.shape}. "
                f"Received: {received}"
            )
        result = result.to(g.dtype)
        if isinstance(result, RowSparse):
            return result.on_arrays() if self.raw else result
        return result._value if self.raw else result

    def _finish(self) -> dict[AnyNode, Any]:
        """Return what was asked for; all that is pending now are leaves."""
        for leaf, given in self.pending.items():
            g = given if self._stays_by_rows(given) else dense(given)
            self.pending[leaf] = g
            if leaf.watch is not None or self.useful is not None:
                self.pending[leaf] = self._settle(leaf, g)
        return self.pending if self.useful is None else self.found

    def _stays_by_rows(self, given: Any) -> bool:
        """Tell whether a gradient of a leaf is left by rows, if it is one."""
        return self.rows


def _add_large(a: Any, b: Any) -> Any:
    """Return the sum of two gradients on arrays; of large ones by machine code."""
    return add_gradients(a, b) if RowSparse in (a.__class__, b.__class__) else F.add(a, b)


def as_tensor(g: Any) -> Any:
    """Return a gradient, raw or not, as a tensor; one by rows, with tensors as its parts."""
    if g.__class__ is RowSparse:
        return g.on_tensors()
    return g if isinstance(g, Tensor) else wrap(np.asarray(g))


def _by_itself(node: Any, rule: Callable[[Any], Sequence[Any]], g: Any) -> Sequence[Any]:
    return rule(g)


def freed_error(node: Any) -> GradientError:
    """Return the error for a second walk through a graph that the first one freed."""
    where = format_site(node.site)
    return GradientError(
        f"the graph behind {node.op.name}{f' (from {where})' if where else ''} was freed by an "
        "earlier backward; pass retain_graph=True there, or compute the result again",
        freed=node.op.name,
    )


def leading_to(wanted: set[AnyNode], roots: Iterable[AnyNode | None]) -> set[AnyNode]:
    """Return the nodes on a path from the roots to a wanted node, both ends included."""
    oldest = min((node.order for node in wanted), default=0)
    useful: set[AnyNode] = set()
    for node in sorted(nodes_behind(roots, oldest), key=lambda n: n.order):
        if node in wanted or (isinstance(node, TapeNode) and not useful.isdisjoint(node.parents)):
            useful.add(node)
    return useful


def nodes_behind(roots: Iterable[AnyNode | None], oldest: int = 0) -> set[AnyNode]:
    """Return the nodes that roots depend on, themselves included, as far back as the oldest."""
    reached: set[AnyNode] = set()
    stack = [root for root in roots if root is not None and root.order >= oldest]
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            parents = node.parents if isinstance(node, TapeNode) else ()
            stack.extend(p for p in parents if p is not None and p.order >= oldest)
    return reached
