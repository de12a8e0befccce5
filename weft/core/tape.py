"""The tape: what a recorded operation leaves behind for the backward pass.

A Node knows the operation, its parents' nodes, and the values that the derivative rules asked for
by name; it never holds its input or output tensors. So memory follows exactly the rules' needs, and
a dead tensor is freed even while the graph around it lives. Nodes are ordered by a counter: a
parent always has a smaller number than its children, so walking downwards visits every consumer of
a value before its producer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from types import CodeType
from typing import Any

from .errors import Site

next_order = count(1).__next__
FREED = object()  # in place of what a node saved, after backward used it


class TapeNode:
    """One recorded operation. Created by generated code, which sets every slot it needs.

    order    creation number
    op       the Op (anything with `backward` and `linked`)
    parents  per input: its Node, a Leaf, or None where no gradient is wanted
    saved    what the rules named; FREED once backward has used it
    attrs    the operation's attributes (unset if it has none)
    shapes   of the inputs of an elementwise operation that broadcast them, else None
    watch    hooks and retained gradient of the output, or None
    code, offset   the user's source position
    """

    __slots__ = (
        "__weakref__",
        "attrs",
        "code",
        "offset",
        "op",
        "order",
        "parents",
        "saved",
        "shapes",
        "watch",
    )

    order: int
    op: Any
    parents: tuple[Any, ...]
    saved: Any
    attrs: tuple[Any, ...]
    shapes: tuple[Any, ...] | None
    watch: Watch | None
    code: CodeType | None
    offset: int

    @property
    def site(self) -> Site:
        """Return the user's source position."""
        return None if self.code is None else (self.code, self.offset)


class FanNode(TapeNode):
    """A recorded operation with several outputs; `outputs` holds their shapes and dtypes.

    Each output has a small node of its own (its op is OUTPUT, `saved` is its position) whose only
    parent is this one, so that everything else on the tape deals with single gradients.
    """

    __slots__ = ("outputs",)

    outputs: tuple[tuple[Any, Any], ...]


class Leaf:
    """The end of a path: where the gradient of a tensor made by the user accumulates."""

    __slots__ = ("__weakref__", "grad", "order", "site", "watch")

    def __init__(self, site: Site = None) -> None:
        self.order = next_order()
        self.grad: Any = None
        self.watch: Watch | None = None
        self.site = site


class OutputOp:
    """Stands between an operation with several outputs and one of those outputs."""

    __slots__ = ()
    name = "output"


OUTPUT = OutputOp()


def make_node(
    op: Any,
    parents: tuple[Any, ...],
    saved: Any,
    attrs: tuple[Any, ...] = (),
    *,
    shapes: Any = None,
    outputs: Iterable[Any] | None = None,
    site: Site = None,
) -> TapeNode:
    """Return a node, complete; with outputs (anything of a shape and a dtype) one of several."""
    node = TapeNode() if outputs is None else FanNode()
    node.order = next_order()
    node.op, node.parents, node.saved = op, parents, saved
    node.attrs, node.shapes, node.watch = attrs, shapes, None
    node.code, node.offset = site or (None, 0)
    if outputs is not None:
        node.outputs = tuple([(y.shape, y.dtype) for y in outputs])  # type: ignore[attr-defined]  # a FanNode
    return node


def output_node(node: FanNode, index: int) -> TapeNode:
    """Return a node for one output of an operation with several."""
    output = TapeNode()
    output.order = next_order()
    output.op = OUTPUT
    output.parents = (node,)
    output.saved = index
    output.watch = None
    output.code, output.offset = node.code, node.offset
    return output


class Watch:
    """Hooks on the gradient of one tensor, and its retained gradient."""

    __slots__ = ("grad", "hooks", "retain")

    def __init__(self) -> None:
        self.hooks: dict[int, Callable[[Any], Any]] = {}
        self.retain = False
        self.grad: Any = None


class HookHandle:
    """Lets a registered hook be removed again."""

    __slots__ = ("_hooks", "_key")

    def __init__(self, hooks: dict[int, Callable[[Any], Any]], key: int) -> None:
        self._hooks = hooks
        self._key = key

    def remove(self) -> None:
        """Unregister the hook; doing so twice is harmless."""
        self._hooks.pop(self._key, None)


def add_hook(node: TapeNode | Leaf, hook: Callable[[Any], Any]) -> HookHandle:
    """Register a hook on the gradient of the tensor that a node belongs to."""
    watch = watch_of(node)
    key = next_order()
    watch.hooks[key] = hook
    return HookHandle(watch.hooks, key)


def watch_of(node: TapeNode | Leaf) -> Watch:
    """Return the watch of a node, created on first use."""
    if node.watch is None:
        node.watch = Watch()
    return node.watch
