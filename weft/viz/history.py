"""The history of an eager tensor as a picture: operations, types, lines, and kept bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..autodiff.history import TensorHistory, is_output
from ..core.errors import ArgumentTypeError
from ..core.tape import FREED, FanNode, TapeNode
from ..core.tensor import Tensor
from ..graph.node import type_text
from .drawing.picture import Box, Picture, PictureGroup
from .drawing.style import LOOKS


def history_picture(tensors: Sequence[Tensor], names: Mapping[str, Any] | None = None) -> Picture:
    """Return the picture of what tensors were computed from.

    names   what to call leaves and results, by name: `dict(model.named_parameters())`
    """
    history = TensorHistory(tensors)
    called = _names(names)
    root = PictureGroup("scope", "history", "", None)
    boxes: dict[Any, Box] = {}
    edges: list[tuple[Any, Any]] = []
    for node in history.nodes:
        if is_output(node):
            boxes[node] = boxes[node.parents[0]]  # type: ignore[union-attr]  # an output, no leaf
            continue
        boxes[node] = _box(history, node, called.get(node, ""), root)
        root.children.append(boxes[node])
        parents = dict.fromkeys(getattr(node, "parents", ()))
        edges += [(boxes[parent], boxes[node]) for parent in parents if parent is not None]
    kept = f"{bytes_text(history.saved_bytes)} kept in all"
    for i, tensor in enumerate(tensors):
        if tensor._node is not None:
            box = _result(tensor, i, len(tensors), root)
            box.details += (kept,) if i == 0 else ()
            edges.append((boxes[tensor._node], box))
    return Picture(root, list(dict.fromkeys(edges)))


def bytes_text(count: int) -> str:
    """Return a number of bytes for readers.

    >>> bytes_text(2048)
    '2.0 kB'
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"


def _names(names: Mapping[str, Any] | None) -> dict[Any, str]:
    found = {}
    for name, tensor in (names or {}).items():
        if not isinstance(tensor, Tensor):
            raise ArgumentTypeError(
                f"draw: names must be tensors by their names. Received: {name!r}: {tensor!r:.60}"
            )
        if tensor._node is not None:
            found[tensor._node] = name
    return found


def _box(history: TensorHistory, node: Any, name: str, group: PictureGroup) -> Box:
    if not isinstance(node, TapeNode):
        return Box("state", name or "leaf", _details(history, node), repr(node), group)
    title = f"{name} = {node.name()}" if name else node.name()
    kind = getattr(node.op, "kind", "general")
    if getattr(node.op, "multiplications_rule", None) is not None:
        kind = "contraction"
    shown = kind if kind in LOOKS else "general"
    return Box(shown, title, _details(history, node), _tooltip(history, node), group)


def _details(history: TensorHistory, node: Any) -> tuple[str, ...]:
    lines = [type_text(history.types[node])] if node in history.types else []
    if isinstance(node, FanNode):
        lines = [", ".join(f"{t.name}[{', '.join(map(str, s))}]" for s, t in node.outputs)]
    if history.saved[node]:
        lines.append(f"keeps {bytes_text(history.saved[node])}")
    elif isinstance(node, TapeNode) and node.saved is FREED:
        lines.append("freed by backward")
    where = history.where(node)
    return (*lines, where) if where else tuple(lines)


def _tooltip(history: TensorHistory, node: TapeNode) -> str:
    kept = [
        f"keeps {name} {a.dtype.name}{list(a.shape)}".replace("  ", " ")
        for name, a in node.saved_arrays()
    ]
    return "\n".join([repr(node), *kept])


def _result(tensor: Tensor, position: int, count: int, root: PictureGroup) -> Box:
    title = "result" if count == 1 else f"result {position}"
    shape = ", ".join(map(str, tensor.shape))
    box = Box("output", title, (f"{tensor.dtype.name}[{shape}]",), "", root)
    root.children.append(box)
    return box
