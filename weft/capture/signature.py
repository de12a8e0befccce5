"""Signatures: which calls of a function are alike enough to be one compiled program.

Tensors and arrays are fed, so their shapes and dtypes count and not their values. Everything else
counts by what it is. A Python number counts by its value at first; when a call comes that differs
in it, it becomes a number that is fed too, unless recording finds that it must be known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.config import config
from ..core.device import current_device
from ..core.modes import is_grad_enabled
from ..core.tensor import Tensor
from ..core.tree import Keys, Structure

VALUES = (bool, str, bytes, complex, type(None), type(Ellipsis), slice, np.dtype)
NUMBERS = (int, float)
SHAPED = (Tensor, np.ndarray)


class Same:
    """An object in a key: it counts by identity, and lives as long as the key does."""

    __slots__ = ("thing",)

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.thing is self.thing

    def __hash__(self) -> int:
        return id(self.thing)


class CallSignature(NamedTuple):
    """What a call looks like.

    key       of all calls that are alike
    general   the same with every Python number left open
    sized     of all calls that are alike but for the sizes of tensors and arrays
    fed       positions of the numbers among the leaves that are fed
    """

    key: Any
    general: Any
    sized: Any
    fed: frozenset[int]


class Signatures:
    """Finds the signatures of calls, and learns which numbers change from call to call."""

    def __init__(self) -> None:
        self._first: dict[Any, dict[int, Any]] = {}  # the numbers of the first call of a kind
        self._fed: dict[Any, set[int]] = {}
        self._changing: dict[Structure, set[int]] = {}  # the same of calls of any kind
        self._fixed: set[tuple[Any, int]] = set()

    def __len__(self) -> int:
        return len(self._first)

    def of(self, leaves: Sequence[Any], structure: Structure) -> CallSignature:
        """Return the signature of a call."""
        kinds = (*map(kind_of, leaves), *aliases_of(leaves), *_orders(structure))
        around = (structure, kinds, is_grad_enabled(), config.default_float, current_device())
        general = (around, tuple([x.shape for x in leaves if isinstance(x, SHAPED)]))
        numbers = {i: x for i, x in enumerate(leaves) if type(x) in NUMBERS}
        if not numbers:
            return CallSignature(general, general, around, frozenset())
        fed = self._learn(structure, around, numbers)
        fixed = tuple([(i, _exactly(x)) for i, x in numbers.items() if i not in fed])
        return CallSignature((general, fixed), general, (around, fixed), frozenset(fed))

    def _learn(self, structure: Structure, around: Any, numbers: dict[int, Any]) -> set[int]:
        """Return the numbers that change: in calls of this kind, or of others before its first."""
        changing = self._changing.setdefault(structure, set())
        if around not in self._first:
            self._fed[around] = {i for i in changing if i in numbers}
        first, fed = self._first.setdefault(around, numbers), self._fed[around]
        for i, x in numbers.items():
            if _exactly(x) != _exactly(first[i]) and (around, i) not in self._fixed:
                fed.add(i)
                changing.add(i)
        return fed

    def fix(self, general: Any) -> bool:
        """Let numbers count by value from now on; tell whether that changes anything."""
        around, _ = general
        fed = self._fed.get(around, set())
        self._fixed.update((around, i) for i in fed)
        changed = bool(fed)
        self._changing.get(around[0], set()).difference_update(fed)
        fed.clear()
        return changed


def _exactly(number: Any) -> Any:
    """Return a number so that zeros of other signs differ, and NaNs do not."""
    return float.hex(number) if isinstance(number, float) else number


def _orders(structure: Structure) -> list[Any]:
    """Return the order of keys of all dictionaries, which is that of the leaves."""
    found = [(*structure.data, *map(type, structure.data))] if type(structure.data) is Keys else []
    for child in structure.children:
        if child.kind is not None:
            found += _orders(child)
    return found


def aliases_of(leaves: Sequence[Any]) -> list[tuple[int, int]]:
    """Return which tensors are given twice: positions, and where they stood first."""
    first: dict[int, int] = {}
    tensors = [(i, x) for i, x in enumerate(leaves) if isinstance(x, Tensor)]
    places = [(i, first.setdefault(id(x), i)) for i, x in tensors]
    return [(i, j) for i, j in places if i != j]


def kind_of(leaf: Any) -> Any:
    """Return what counts of a leaf: of tensors and arrays not their values."""
    if isinstance(leaf, Tensor):
        return type(leaf), leaf.ndim, leaf.dtype, leaf.requires_grad, leaf.is_leaf, leaf.device
    if isinstance(leaf, np.ndarray):
        return type(leaf), leaf.ndim, leaf.dtype
    if type(leaf) in NUMBERS:
        return type(leaf)
    if isinstance(leaf, np.generic) or (isinstance(leaf, VALUES) and _is_hashable(leaf)):
        return type(leaf), leaf
    return Same(leaf)


def _is_hashable(leaf: Any) -> bool:
    return type(leaf).__hash__ is not None
