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

from .errors import Site, site_of_user

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

    def name(self) -> str:
        """Return the name of the operation."""
        return str(self.op.name)

    @property
    def next_functions(self) -> tuple[tuple[TapeNode | Leaf | None, int], ...]:
        """Return for each input who made it, and as which of its outputs, as PyTorch does.

        None stands for an input that no gradient is wanted of.
        """
        return tuple(_maker(parent) for parent in self.parents)

    def saved_arrays(self) -> list[tuple[str, Any]]:
        """Return the arrays that are kept for backward, each with the name that rules know."""
        if self.saved is FREED or self.op is OUTPUT:
            return []
        names = getattr(self.op, "saves", None)
        values = self.saved if isinstance(self.saved, tuple) else (self.saved,)
        if names is None or len(names) != len(values):
            names = [""] * len(values)
        pairs = zip(names, values, strict=True)
        return [(name, x) for name, value in pairs for x in _arrays(value)]

    def __repr__(self) -> str:
        where = site_of_user(self.site)
        inputs = ", ".join(_input_text(*entry) for entry in self.next_functions)
        kept = ", ".join(_array_text(name, x) for name, x in self.saved_arrays())
        kept = "freed" if self.saved is FREED else f"keeps {kept}" if kept else ""
        parts = [f"{self.name()}({inputs})", *filter(None, (kept, where and f"at {where}"))]
        return f"<{', '.join(parts)}>"


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

    next_functions = ()

    def name(self) -> str:
        """Return what it is, in place of the name of an operation."""
        return "leaf"

    def __repr__(self) -> str:
        where = site_of_user(self.site)
        return f"<leaf made at {where}>" if where else "<leaf>"


class OutputOp:
    """Stands between an operation with several outputs and one of those outputs."""

    __slots__ = ()
    name = "output"


class UnchainedOp:
    """Stands in the place of an operation that was cut off: gradients end at its result."""

    __slots__ = ()
    name = "unchained"
    saves: tuple[str, ...] = ()

    def backward(self, node: TapeNode, saved: Any, g: Any) -> tuple[Any, ...]:
        """Return nothing: there are no inputs any more."""
        return ()

    linked = backward


OUTPUT = OutputOp()
UNCHAINED = UnchainedOp()


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


def unchain(node: TapeNode) -> None:
    """Forget what made the result of an operation: backward ends there, with its `.grad`."""
    node.op, node.parents, node.saved, node.attrs, node.shapes = UNCHAINED, (), (), (), None
    watch_of(node).retain = True


def _maker(parent: TapeNode | Leaf | None) -> tuple[TapeNode | Leaf | None, int]:
    """Return the operation that made an input, not the node of one of its outputs."""
    if isinstance(parent, TapeNode) and parent.op is OUTPUT:
        return parent.parents[0], parent.saved
    return parent, 0


def _input_text(maker: TapeNode | Leaf | None, output: int) -> str:
    if maker is None:
        return "_"
    several = isinstance(maker, FanNode)
    return f"{maker.name()}[{output}]" if several else maker.name()


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [x for item in value for x in _arrays(item)]
    return [value] if hasattr(value, "nbytes") and hasattr(value, "dtype") else []


def _array_text(name: str, array: Any) -> str:
    sizes = ", ".join(map(str, array.shape))
    shown = f"{array.dtype.name}[{sizes}]"
    return f"{name} {shown}" if name else shown


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
