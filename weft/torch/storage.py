"""Tensors that share one memory: `x`, `x.detach()`, `x.data`, the entries of a state dictionary.

In Weft a tensor is a value. Here a few tensors may be one memory with several histories: a write
into one of them is told to the others. They find each other by weak references, so that a detached
tensor keeps no graph alive, and a tensor without such relatives pays nothing.

Values that a write replaced are remembered while somebody holds them: what the tape kept of such a
value is not what the tensor holds now, and PyTorch refuses to go on with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ..core.modes import current_recorder, modes
from ..core.tape import FREED, TapeNode, next_order
from ..core.tensor import Tensor
from .types import type_name

Array = np.ndarray[Any, Any]


# -- relatives ----------------------------------------------------------------------------------


class Group:
    """Tensors of one memory."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[int, weakref.ref[Tensor]] = {}

    def join(self, tensor: Tensor) -> None:
        """Let a tensor be one of them while it lives."""
        key = id(tensor)

        def forget(_: Any) -> None:
            self.members.pop(key, None)
            groups.pop(key, None)

        self.members[key] = weakref.ref(tensor, forget)
        groups[key] = self

    def others(self, tensor: Tensor) -> Iterator[Tensor]:
        """Yield those that live, but for one."""
        for member in list(self.members.values()):
            other = member()
            if other is not None and other is not tensor:
                yield other


groups: dict[int, Group] = {}


def relate(tensor: Tensor, other: Tensor) -> None:
    """Let a new tensor share the memory of another."""
    group = groups.get(id(tensor))
    if group is None:
        group = Group()
        group.join(tensor)
    group.join(other)


def relatives(tensor: Tensor) -> Iterable[Tensor]:
    """Return the tensors that share the memory of one, without those of recordings that ended."""
    group = groups.get(id(tensor)) if groups else None
    if group is None:
        return ()
    recorder = current_recorder() if modes.interpreters else None
    graph = None if recorder is None else recorder.graph
    found: list[Any] = list(group.others(tensor))
    return [other for other in found if not other.symbolic or other.graph is graph]


def relatives_ever(tensor: Tensor) -> Iterable[Tensor]:
    """Return the tensors that share the memory of one, in recordings as well."""
    group = groups.get(id(tensor)) if groups else None
    return () if group is None else group.others(tensor)


# -- values that were written over --------------------------------------------------------------

_replaced: dict[int, tuple[weakref.ref[Array], int]] = {}


def note_replaced(array: Array, begun: int | None = None) -> None:
    """Note that a write has replaced the value of a tensor; forget it when nobody holds that.

    begun   the number from which on nodes belong to the write itself
    """
    owner = array.base if array.base.__class__ is np.ndarray else array
    key = id(owner)
    reference = weakref.ref(owner, lambda _: _replaced.pop(key, None))
    _replaced[key] = reference, next_order() if begun is None else begun


_parts: dict[int, tuple[weakref.ref[Tensor], list[weakref.ref[Array]]]] = {}


def note_part(root: Tensor, array: Array) -> None:
    """Note that a tensor holds, at some place, a value that a node may have kept."""
    key = id(root)
    if key not in _parts:
        _parts[key] = weakref.ref(root, lambda _: _parts.pop(key, None)), []
    _parts[key][1].append(weakref.ref(array))


def replace_parts(root: Tensor, begun: int) -> None:
    """Note that values which were written into parts of a tensor are written over."""
    if not _parts:
        return
    found = _parts.pop(id(root), None)
    for reference in [] if found is None else found[1]:
        array = reference()
        if array is not None:
            note_replaced(array, begun)


def check_versions(roots: Iterable[Any]) -> None:
    """Raise if what nodes kept for backward was written over since, in PyTorch's words."""
    if not _replaced:
        return
    waiting = [node for node in roots if isinstance(node, TapeNode)]
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.saved is not FREED:
            for _, array in node.saved_arrays():
                if _was_replaced(array, node.order):
                    raise RuntimeError(_version_message(array, node))
        waiting.extend(p for p in node.parents if isinstance(p, TapeNode))


def _was_replaced(array: Any, order: int) -> bool:
    for part in (array, getattr(array, "base", None)):
        found = _replaced.get(id(part))
        if found is not None and found[0]() is part and order < found[1]:
            return True
    return False


def _version_message(array: Any, node: TapeNode) -> str:
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [torch.{type_name(array.dtype)}Tensor {list(array.shape)}], which is kept by "
        f"{node.name()}. Hint: enable anomaly detection to find the operation that failed to "
        "compute its gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
