"""Reverse mode as a function: run fn on fresh places, and return how to pull gradients back.

Three ways, one for each surrounding: the tape in plain eager code, nodes in a graph, and a
recording inside other transforms. In each the arguments get places of their own, so that a use of
the same tensor from outside is a constant, and derivatives at different levels never mix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.device_array import on_devices
from ..core.dtype import is_float
from ..core.imports import deferred_imports
from ..core.modes import current_interpreter, current_transform, enable_grad, is_grad_enabled
from ..core.op import F, find_op
from ..core.operands import tensor_from
from ..core.tape import Leaf, make_node
from ..core.tensor import PLAIN, Tensor, marked, placed_like, wrap, wrap_with_node
from .constants import checked, is_number, reads_of_level, reads_on_tape
from .engine import as_tensor
from .layered import is_differentiated
from .record import Recording
from .reverse import TapeWalk

FlatFunction = Callable[[list[Any]], Sequence[Any]]
Pull = Callable[[Sequence[Any]], list[Any]]


class Pulled(NamedTuple):
    """What a function returned, and how to differentiate it.

    outputs     the leaves of its result, as seen from outside
    pull        gradients of the outputs (None is zero) -> gradients of the primals, None where no
                path leads to one; it can be called any number of times
    connected   for each output whether it depends on what is differentiated
    """

    outputs: list[Any]
    pull: Pull
    connected: list[bool]


def pull_back_of(
    fn: FlatFunction, primals: Sequence[Any], *, once: bool = False, what: str = "the function"
) -> Pulled:
    """Run fn on a list of tensors; return its outputs and how to pull their gradients back.

    With `once`, pull will be called one time only, and may free what it has used. `what` is what
    messages call the function.
    """
    interpreter: Any = current_interpreter()
    while getattr(interpreter, "transparent", False):
        interpreter = interpreter.below
    if interpreter is None:
        return _on_tape(fn, primals, once, what)
    if hasattr(interpreter, "read_state"):
        with deferred_imports:
            from .static.reverse import pull_back_of_symbols  # noqa: PLC0415  (for graphs only)
        return Pulled(*pull_back_of_symbols(fn, primals, what))
    return _recorded(fn, primals, what)


# -- plain eager code ------------------------------------------------------------------------------


def _on_tape(fn: FlatFunction, primals: Sequence[Any], once: bool, what: str) -> Pulled:
    linked = is_grad_enabled()
    marks = [getattr(x, "_mark", None) for x in primals]
    places = [_place(x, linked) if differentiable(x) else x for x in primals]
    nodes: list[Any] = [x._node if differentiable(x) else None for x in places]
    with enable_grad():
        outputs = checked(fn, places, reads_on_tape(filter(None, nodes)), what)
    roots = [getattr(y, "_node", None) for y in outputs]
    origins = [None if node is None else node.parents[0] for node in nodes]
    # Whether the outputs depend on nothing that requires gradients besides the places.
    alone = not linked or all(getattr(x, "_node", None) is None for x in primals)
    closed = alone and is_closed(filter(None, roots), list(filter(None, origins)))
    linked = linked and not closed  # gradients stay on the tape, for derivatives of those around

    def pull(gs: Sequence[Any]) -> list[Any]:
        # Rules on raw arrays are the fast ones, where nobody differentiates or batches the result.
        tracked = any(g is not None and g.requires_grad for g in gs)
        record = (is_grad_enabled() and (linked or tracked)) or is_differentiated()
        raw = not record and current_transform() is None and not on_devices()
        walk = TapeWalk(raw=raw, retain=linked or not once)
        keys, wanted = (origins, None) if closed else (nodes, set(filter(None, nodes)))
        found = walk.run(roots, gs, wanted, record=record)
        grads = [as_tensor(found[key]) if key in found else None for key in keys]
        return [*map(marked, grads, marks)] if any(marks) else grads

    shown = outputs if linked else [_unlinked(y) for y in outputs]
    return Pulled(shown, pull, [root is not None for root in roots])


def _unlinked(y: Any) -> Any:
    """Return an output without its place; one that was not computed again has no value."""
    if getattr(y, "_node", None) is None:
        return y
    return placed_like(y, wrap_with_node(y._value, None))


def _place(x: Tensor, linked: bool) -> Tensor:
    """Return a tensor of the same value at a place of its own on the tape."""
    origin = x._node if linked and x._node is not None else Leaf()
    op = find_op("positive")
    op.specialized  # noqa: B018  (generates the rules' function on first use)
    node = make_node(op, (origin,), ())
    return placed_like(x, wrap_with_node(x._value, node))


def is_closed(roots: Iterable[Any], leaves: Sequence[Leaf]) -> bool:
    """Tell whether the roots depend on no leaf but those given, which were made just before."""
    own = set(leaves)
    oldest = min((leaf.order for leaf in leaves), default=0)
    stack = list(roots)
    seen = own.union(stack)
    while stack:
        node = stack.pop()
        if node.__class__ is Leaf or node.order < oldest:
            return False
        for parent in node.parents:
            if parent is not None and parent not in seen:
                seen.add(parent)
                stack.append(parent)
    return True


def differentiable(x: Any) -> bool:
    """Tell whether a value has a derivative."""
    return isinstance(x, Tensor) and is_float(x.dtype)


# -- inside other transforms -----------------------------------------------------------------------


def _recorded(fn: FlatFunction, primals: Sequence[Any], what: str) -> Pulled:
    recording = Recording(current_interpreter())
    moved = [i for i, x in enumerate(primals) if differentiable(x)]
    places = list(primals)
    for i in moved:
        places[i] = recording.watch(primals[i])
    reads = reads_of_level(recording.level)
    outputs = checked(lambda xs: recording.run(fn, xs), places, reads, what)
    pull_moved = recording.pull_back_of(outputs)

    def pull(gs: Sequence[Any]) -> list[Any]:
        found = dict(zip(moved, pull_moved(gs), strict=True))
        return [found.get(i) for i in range(len(places))]

    connected = [recording.node(y) is not None for y in outputs]
    return Pulled([recording.inside(y) for y in outputs], pull, connected)


def zeros_for(x: Any) -> Tensor:
    """Return zeros like a tensor that no path leads to."""
    if type(x) in PLAIN or isinstance(x, np.ndarray):
        return wrap(np.zeros(x.shape, x.dtype))
    zeros: Tensor = F.zeros_like(x)
    return zeros


def or_zeros(derivative: Any, x: Any) -> Any:
    """Return a derivative of or by a value: zeros where there is none but could be one."""
    if derivative is not None or not (differentiable(x) or is_number(x)):
        return derivative
    return zeros_for(x if isinstance(x, Tensor) else tensor_from(x, "a result"))
