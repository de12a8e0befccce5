"""Reverse mode on the tape: walk from the outputs to the leaves, latest operation first.

One walk serves two purposes. On raw arrays it is fast and frees what it has used; with
`create_graph` the same rules run on tensors, so that the gradients can be differentiated again.
The walk is iterative and keeps a heap ordered by creation number: a node is visited once, after all
its consumers, and a chain of any length needs no recursion.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from ..core.anomaly import detecting_anomaly
from ..core.dispatch import sum_to
from ..core.errors import ArgumentTypeError, GradientError, ShapeError, format_site
from ..core.late import late_function
from ..core.modes import GradMode
from ..core.op import F
from ..core.tape import FREED, OUTPUT, FanNode, Leaf, Node, output_node
from ..core.tensor import Tensor, wrap, wrap_with_node
from .anomaly import checked
from .matching import array_of
from .where_mask import WHERE, WhereMasks

AnyNode = Node | Leaf
GradientsOf = Callable[[Any, Any], Iterable[Any]]
IN_PLACE_BYTES = 1 << 15  # below, NumPy adds into a fresh array faster than into an old one


def backward(
    tensor: Tensor,
    gradient: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the gradients of `tensor` to `.grad` of every leaf it depends on.

    A tensor with one element needs no `gradient`; for others pass the gradient of the final
    objective with respect to this tensor. The graph is freed unless `retain_graph` is set, which is
    the default with `create_graph`.

    >>> import weft as wf
    >>> x = wf.tensor([5.0], requires_grad=True)
    >>> (x**2 + x).backward()
    >>> x.grad
    tensor([11.])
    """
    if tensor._node is None:
        raise GradientError(
            "backward: this tensor does not depend on any leaf that requires gradients; create "
            "one with requires_grad=True, and compute outside of no_grad()"
        )
    seed = initial_gradient(tensor, gradient, "backward")
    walk = Walk(retain=create_graph if retain_graph is None else retain_graph, create=create_graph)
    for leaf, grad in walk.run([tensor._node], [seed]).items():
        accumulate(leaf, grad)


def gradients(
    ys: Tensor | Sequence[Tensor],
    xs: Tensor | Sequence[Tensor],
    grad_ys: Any = None,
    *,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> Any:
    """Return the gradients of the sum of `ys` with respect to each of `xs`; `.grad` is untouched.

    Returns a list as long as `xs` (one tensor if `xs` is one), with None where no path leads from
    a y to that x. Only the part of the graph between them is walked. Of symbols, gradients are
    symbols: nodes that extend the graph, which must be open.

    >>> import weft as wf
    >>> x = wf.tensor(3.0, requires_grad=True)
    >>> wf.gradients(x**3, x)
    tensor(27.)
    """
    outputs, inputs = as_tensors(ys, "ys"), as_tensors(xs, "xs")
    given = _given_seeds(outputs, grad_ys)
    if any(tensor.symbolic for tensor in (*outputs, *inputs)):
        made = late_function("autodiff", "symbol_gradients")(outputs, inputs, given)
        return made[0] if isinstance(xs, Tensor) else made
    if any(tensor.batched for tensor in (*outputs, *inputs)):
        options = {"retain_graph": retain_graph, "create_graph": create_graph}
        made = late_function("autodiff", "gradients_of_batches")(outputs, inputs, given, options)
        return made[0] if isinstance(xs, Tensor) else made
    wanted = [_target_node(x, i) for i, x in enumerate(inputs)]
    roots, seeds = _roots(outputs, given)
    walk = Walk(retain=create_graph if retain_graph is None else retain_graph, create=create_graph)
    found = walk.run(roots, seeds, set(wanted))
    results = [as_tensor(found[node]) if node in found else None for node in wanted]
    return results[0] if isinstance(xs, Tensor) else results


class Walk:
    """One traversal of the tape from outputs towards leaves."""

    def __init__(self, *, retain: bool, create: bool, record: bool = True) -> None:
        self.retain = retain
        self.create = create
        self.record = create and record  # tensors, though nobody differentiates: inside vmap
        self.pending: dict[AnyNode, Any] = {}  # gradients of nodes not yet visited
        self.heap: list[tuple[int, Node]] = []
        self.wanted: set[AnyNode] = set()
        self.useful: set[AnyNode] | None = None  # where the walk may go; None = everywhere
        self.found: dict[AnyNode, Any] = {}
        self.where_masks = WhereMasks(F, F.sum_to) if create else WhereMasks(np, sum_to)

    def run(
        self, roots: Sequence[AnyNode], seeds: Sequence[Tensor], wanted: set[AnyNode] | None = None
    ) -> dict[AnyNode, Any]:
        """Return the gradients of all leaves, or of the wanted nodes if there are any named."""
        if wanted is not None:
            self.wanted, self.useful = wanted, leading_to(wanted, roots)
        self._start(roots, seeds)
        with np.errstate(all="ignore"):
            if not self.create:  # rules on arrays record nothing; hooks see to it themselves
                self._walk(self._special())
                return self._finish()
            with GradMode(self.record):
                self._walk(self._special())
                return self._finish()

    def _start(self, roots: Sequence[AnyNode], seeds: Sequence[Tensor]) -> None:
        for node, seed in zip(roots, seeds, strict=True):
            if self.useful is None or node in self.useful:
                self._arrive(node, seed if self.create else seed._value)

    def _walk(self, special: GradientsOf | None) -> None:  # noqa: C901, PLR0912, PLR0915  (see below)
        """Visit nodes from the latest to the earliest: here backward spends its time."""
        # One flat loop on purpose: a function call per node would cost a tenth of the whole.
        heap, pending, useful, retain = self.heap, self.pending, self.useful, self.retain
        plus: Any = operator.add if self.create else np.add
        owned: set[AnyNode] = set()  # sums made by this walk, which it may add to in place
        masks = self.where_masks.masks
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
                raise GradientError(freed_message(node))
            if special is not None:
                grads = special(node, g)
            elif masks or op is WHERE:
                grads = self._gradients(node, g)
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
                    pending[parent] = total = plus(pending[parent], grad)
                    if total.nbytes > IN_PLACE_BYTES and special is None:
                        owned.add(parent)

    def _special(self) -> GradientsOf | None:
        """Return how to differentiate a node where the rules on raw arrays are not enough."""
        if detecting_anomaly():
            return checked(self._gradients)
        return self._gradients if self.create else None

    def _gradients(self, node: Any, g: Any) -> Sequence[Any]:
        """Apply the rules of one node, on arrays or tensors, with an eye on sides not taken."""
        op, create = node.op, self.create
        rule, saved = (op.linked, linked_saved(node)) if create else (op.backward, node.saved)
        grads, masks = self.where_masks.pull_back(node, op, rule, node, saved, g)
        if self.where_masks.masks or any(mask is not None for mask in masks):
            met = set[AnyNode]()
            for parent, grad, mask in zip(node.parents, grads, masks, strict=True):
                if grad is not None and isinstance(parent, Node):
                    self.where_masks.arrive(parent, mask, met if parent in met else self.pending)
                    met.add(parent)
        return grads

    def _arrive(self, node: AnyNode, g: Any) -> None:
        if node in self.pending:
            self.pending[node] = self.pending[node] + g
            return
        self.pending[node] = g
        if isinstance(node, Node):
            heappush(self.heap, (-node.order, node))

    def _deposit(self, output: Node, g: Any) -> None:
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
                parts[i] = wrap(zeros) if self.create else zeros
        return parts

    def _settle(self, node: AnyNode, g: Any) -> Any:
        """Run the hooks on a complete gradient, and keep it where that was asked for."""
        watch = node.watch
        if watch is not None:
            for hook in tuple(watch.hooks.values()):
                g = self._run_hook(hook, g)
                self.where_masks.masks.pop(node, None)  # it may put something where nothing was
            if watch.retain and isinstance(node, Node):
                watch.grad = as_tensor(g) if watch.grad is None else watch.grad + as_tensor(g)
        if node in self.wanted:
            self.found[node] = g
        return g

    def _run_hook(self, hook: Callable[[Tensor], Any], g: Any) -> Any:
        with GradMode(self.record):
            result = hook(as_tensor(g))
        if result is None:
            return g
        if not isinstance(result, Tensor) or result.shape != g.shape:
            received = f"shape {result.shape}" if isinstance(result, Tensor) else repr(result)
            raise GradientError(
                f"a hook must return None or a tensor of the gradient's shape {g.shape}. "
                f"Received: {received}"
            )
        result = result.to(g.dtype)
        return result if self.create else result._value

    def _finish(self) -> dict[AnyNode, Any]:
        """Return what was asked for; all that is pending now are leaves."""
        for leaf, g in self.pending.items():
            if leaf.watch is not None or self.useful is not None:
                self.pending[leaf] = self._settle(leaf, g)
        return self.pending if self.useful is None else self.found


# -- one node ---------------------------------------------------------------------------------


def linked_saved(node: Any) -> Any:
    """Return what a node saved, with arrays as tensors linked to the nodes that made them.

    The tape keeps arrays, not tensors; the links are found again from the parents, so a second
    derivative flows through saved values without the tape ever holding a tensor.
    """
    saves = getattr(node.op, "saves", None)
    if saves is None:
        return node.saved
    return tuple(_link(node, name, v) for name, v in zip(saves, node.saved, strict=True))


def _link(node: Any, name: str, value: Any) -> Any:
    if name == "out":
        if node.__class__ is FanNode:
            return tuple(wrap_with_node(v, output_node(node, i)) for i, v in enumerate(value))
        return wrap_with_node(value, node)
    if name not in node.op.inputs or value is None:
        return value
    position = node.op.inputs.index(name)
    if isinstance(value, list):  # the variadic input stands last
        parents = node.parents[position:]
        return [wrap_with_node(v, parent) for v, parent in zip(value, parents, strict=True)]
    return wrap_with_node(value, node.parents[position])


def freed_message(node: Any) -> str:
    """Return the message for a second walk through a graph that the first one freed."""
    where = format_site(node.site)
    return (
        f"the graph behind {node.op.name}{f' (from {where})' if where else ''} was freed by an "
        "earlier backward; pass retain_graph=True there, or compute the result again"
    )


# -- ends of the walk -------------------------------------------------------------------------


def leading_to(wanted: set[AnyNode], roots: Sequence[AnyNode]) -> set[AnyNode]:
    """Return the nodes on a path from the roots to a wanted node, both ends included."""
    oldest = min((node.order for node in wanted), default=0)
    reached: set[AnyNode] = set()
    stack = [root for root in roots if root.order >= oldest]
    while stack:
        node = stack.pop()
        if node not in reached:
            reached.add(node)
            parents = node.parents if isinstance(node, Node) else ()
            stack.extend(p for p in parents if p is not None and p.order >= oldest)
    useful: set[AnyNode] = set()
    for node in sorted(reached, key=lambda n: n.order):
        if node in wanted or (isinstance(node, Node) and not useful.isdisjoint(node.parents)):
            useful.add(node)
    return useful


def accumulate(leaf: Any, g: Any) -> None:
    """Add a gradient to what a leaf already has."""
    grad = as_tensor(g)
    if leaf.grad is None:
        leaf.grad = grad
        return
    recorded = grad._node is not None or leaf.grad._node is not None
    # Two references to the tensor, the leaf's and getrefcount's own: no user holds it.
    alone = not recorded and sys.getrefcount(leaf.grad) == 2
    total = leaf.grad._exclusive() if alone else None
    if total is not None and total.dtype == grad.dtype:
        np.add(total, grad._value, out=total)
    else:
        leaf.grad = leaf.grad + grad


def initial_gradient(tensor: Tensor, gradient: Any, what: str) -> Tensor:
    """Return the gradient a walk starts with; ones are implied for a single element only."""
    if gradient is None:
        if tensor.numel() != 1:
            raise GradientError(
                f"{what}: the gradient of a tensor of shape {tensor.shape} is not defined without "
                "an argument; reduce it first (e.g. .sum() or .mean()) or pass a gradient of "
                "that shape"
            )
        return wrap(np.ones(tensor.shape, tensor.dtype))
    return _checked_gradient(tensor, gradient, what)


def _checked_gradient(tensor: Tensor, gradient: Any, what: str) -> Tensor:
    if not isinstance(gradient, Tensor):
        gradient = wrap(array_of(gradient, tensor, f"{what}: gradient"))
    if gradient.shape != tensor.shape:
        raise ShapeError(
            f"{what}: gradient must have the tensor's shape {tensor.shape}. "
            f"Received: {gradient.shape}"
        )
    matching: Tensor = gradient.to(tensor.dtype)
    return matching


def _given_seeds(ys: list[Tensor], grad_ys: Any) -> list[Any]:
    given = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(ys):
        raise ArgumentTypeError(
            f"gradients: grad_ys must match ys, {len(ys)} tensor(s). Received: {len(given)}"
        )
    return given


def _roots(ys: list[Tensor], given: list[Any]) -> tuple[list[AnyNode], list[Tensor]]:
    pairs = [
        (y._node, initial_gradient(y, g, "gradients") if g is not None else _ones(y))
        for y, g in zip(ys, given, strict=True)
        if y._node is not None
    ]
    return [node for node, _ in pairs], [seed for _, seed in pairs]


def _ones(y: Tensor) -> Tensor:
    return wrap(np.ones(y.shape, y.dtype))


def _target_node(x: Tensor, position: int) -> AnyNode:
    if x._node is None:
        raise GradientError(
            f"gradients: xs[{position}] does not require gradients; create it with "
            "requires_grad=True before computing ys"
        )
    return x._node


def as_tensors(value: Any, what: str) -> list[Tensor]:
    """Return one tensor or a sequence of them as a list; raise for anything else."""
    items = _as_list(value)
    for item in items:
        if not isinstance(item, Tensor):
            raise ArgumentTypeError(
                f"gradients: {what} must be a tensor or a sequence of tensors. "
                f"Received: {type(item).__name__}"
            )
    return items


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def as_tensor(g: Any) -> Tensor:
    """Return a gradient, raw or not, as a tensor."""
    return g if isinstance(g, Tensor) else wrap(np.asarray(g))
