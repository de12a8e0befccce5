"""Reverse mode on the tape.

On raw arrays it is fast and frees what it has used; with `create_graph` the same rules run on
tensors, so that the gradients can be differentiated again, and so they do where values may be in
the memory of a device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.anomaly import detecting_anomaly
from ..core.device import CPU
from ..core.device_array import on_devices
from ..core.errors import ArgumentTypeError, GradientError, ShapeError
from ..core.imports import deferred_imports
from ..core.modes import GradMode, current_recorder, modes, refuse_recording
from ..core.op import F
from ..core.row_sparse import RowSparse, add_gradients
from ..core.tape import FanNode, output_node
from ..core.tensor import Tensor, check_gradient_device, placed_like, wrap, wrap_with_node
from .anomaly import checked
from .engine import AnyNode, GradientsOf, ReverseWalk, as_tensor
from .exchangers import exchangers
from .matching import array_of


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
    the default with `create_graph`. Of a table that was read with `sparse=True` the gradient is a
    `wf.RowSparse`, unless there is one that is not, or it can be differentiated again.

    >>> import weft as wf
    >>> x = wf.tensor([5.0], requires_grad=True)
    >>> (x**2 + x).backward()
    >>> x.grad
    tensor([11.])
    """
    check_root(tensor)
    if modes.interpreters:  # this tensor was made before: what it goes back to is not recorded
        refuse_recording("backward goes on outside of the function")
    seed = initial_gradient(tensor, gradient, "backward")
    retain = create_graph if retain_graph is None else retain_graph
    if exchangers:
        with deferred_imports:
            from .early import backward_and_exchange  # noqa: PLC0415  (for several processes)
        backward_and_exchange(tensor, seed, retain=retain, create_graph=create_graph)
        return
    raw = not create_graph and not on_devices()
    walk = TapeWalk(raw=raw, retain=retain, rows=not create_graph)
    for leaf, grad in walk.run([tensor._node], [seed], record=create_graph).items():
        accumulate(leaf, grad)


def check_root(tensor: Tensor) -> None:
    """Raise if backward has nowhere to go from a tensor."""
    if not tensor.requires_grad:
        raise GradientError(
            "backward: this tensor does not depend on any leaf that requires gradients; create "
            "one with requires_grad=True, and compute outside of no_grad()"
        )


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
    if modes.interpreters and (recorder := current_recorder()) is not None:
        made = recorder.gradients(outputs, inputs, given, retain_graph, create_graph)
        return made[0] if isinstance(xs, Tensor) else made
    if any(tensor.symbolic for tensor in (*outputs, *inputs)):
        with deferred_imports:
            from .static.reverse import symbol_gradients  # noqa: PLC0415  (for graphs only)
        made = symbol_gradients(outputs, inputs, given)
        return made[0] if isinstance(xs, Tensor) else made
    if any(tensor.batched for tensor in (*outputs, *inputs)):
        options = {"retain_graph": retain_graph, "create_graph": create_graph}
        with deferred_imports:
            from .batching.tape import gradients_of_batches  # noqa: PLC0415  (for vmap only)
        made = gradients_of_batches(outputs, inputs, given, options)
        return made[0] if isinstance(xs, Tensor) else made
    wanted = [_target_node(x, i) for i, x in enumerate(inputs)]
    seeds = [_seed(y, g) for y, g in zip(outputs, given, strict=True)]
    retain = create_graph if retain_graph is None else retain_graph
    walk = TapeWalk(raw=not create_graph and not on_devices(), retain=retain)
    found = walk.run([y._node for y in outputs], seeds, set(wanted), record=create_graph)
    results = [as_tensor(found[node]) if node in found else None for node in wanted]
    return results[0] if isinstance(xs, Tensor) else results


class TapeWalk(ReverseWalk):
    """A walk over the tape, which can find NaNs."""

    def run(
        self,
        roots: Sequence[AnyNode | None],
        seeds: Sequence[Tensor | None],
        wanted: set[AnyNode] | None = None,
        *,
        record: bool = True,
    ) -> dict[AnyNode, Any]:
        """Return the gradients of all leaves, or of the wanted nodes if there are any named.

        Those that are tensors can be differentiated again, unless nobody is going to.
        """
        with np.errstate(all="ignore"):
            if self.raw:  # rules on arrays record nothing; hooks see to it themselves
                return super().run(roots, seeds, wanted)
            self.record = record
            with GradMode(record):
                return super().run(roots, seeds, wanted)

    def _special(self) -> GradientsOf | None:
        return checked(self._gradients) if detecting_anomaly() else super()._special()

    def _stays_by_rows(self, given: Any) -> bool:
        return self.rows and (self.raw or given.device == CPU)  # devices take steps on all rows

    def _rule(self, node: Any) -> tuple[Callable[..., Sequence[Any]], Any]:
        if self.raw:
            return node.op.backward, node.saved
        return node.op.linked, linked_saved(node)


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


# -- ends of the walk -------------------------------------------------------------------------


def accumulate(leaf: Any, g: Any) -> None:
    """Add a gradient to what a leaf already has."""
    grad = as_tensor(g)
    if leaf.grad is None:
        leaf.grad = grad
        return
    if isinstance(grad, RowSparse) or isinstance(leaf.grad, RowSparse):
        leaf.grad = add_gradients(leaf.grad, grad)
        return
    recorded = grad._node is not None or leaf.grad._node is not None
    # Two references to the tensor, the leaf's and getrefcount's own: no user holds it.
    alone = not recorded and sys.getrefcount(leaf.grad) == 2
    total = leaf.grad._exclusive() if alone else None
    if total is not None and total.dtype == grad.dtype:
        np.add(total, grad._value, out=total)
    else:
        leaf.grad = leaf.grad + grad


def forget_gradients(tensors: Iterable[Tensor], set_to_none: bool) -> None:
    """Let tensors have no gradient, or one of zeros where they have one."""
    for tensor in tensors:
        if set_to_none:
            tensor.grad = None
        elif tensor.grad is not None:
            tensor.grad = _zeros(tensor.grad.detach())


def _zeros(gradient: Any) -> Any:
    """Return no change to a gradient's tensor: zeros, or no rows."""
    if not isinstance(gradient, RowSparse):
        return F.zeros_like(gradient)
    return RowSparse(gradient.rows[:0], gradient.values[:0], gradient.shape, is_coalesced=True)


def initial_gradient(tensor: Tensor, gradient: Any, what: str) -> Tensor:
    """Return the gradient a walk starts with; ones are implied for a single element only."""
    if gradient is None:
        check_single(tensor, what)
        return _ones(tensor)
    return checked_gradient(tensor, gradient, what)


def check_single(tensor: Tensor, what: str) -> None:
    """Raise unless a gradient of one is implied: for a single element only."""
    if tensor.numel() != 1:
        raise GradientError(
            f"{what}: the gradient of a tensor of shape {tensor.shape} is not defined without "
            "an argument; reduce it first (e.g. .sum() or .mean()) or pass a gradient of "
            "that shape"
        )


def checked_gradient(tensor: Tensor, gradient: Any, what: str) -> Tensor:
    """Return a given gradient as a tensor of the shape and dtype it must have."""
    if not isinstance(gradient, Tensor):
        gradient = placed_like(tensor, wrap(array_of(gradient, tensor, f"{what}: gradient")))
    if gradient.shape != tensor.shape:
        raise ShapeError(
            f"{what}: gradient must have the tensor's shape {tensor.shape}. "
            f"Received: {gradient.shape}"
        )
    check_gradient_device(tensor, gradient, f"{what}: gradient")
    matching: Tensor = gradient.to(tensor.dtype)
    return matching


def _given_seeds(ys: list[Tensor], grad_ys: Any) -> list[Any]:
    given = [None] * len(ys) if grad_ys is None else _as_list(grad_ys)
    if len(given) != len(ys):
        raise ArgumentTypeError(
            f"gradients: grad_ys must match ys, {len(ys)} tensor(s). Received: {len(given)}"
        )
    return given


def _seed(y: Tensor, g: Any) -> Tensor | None:
    if y._node is None:
        return None
    return _ones(y) if g is None else initial_gradient(y, g, "gradients")


def _ones(y: Tensor) -> Tensor:
    ones = wrap(np.ones(y.shape, y.dtype))
    return ones if modes.base is None else placed_like(y, ones)


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
