"""The arguments of a call written out: what takes them apart, and tells whether they are alike.

They are those of one signature (signature.py), each leaf in a variable of its own, `x0`, `x1` ...
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from ..core.generated import ObjectNames
from ..core.tape import Leaf
from ..core.tensor import Tensor
from ..core.tree import Structure
from .outside import Leaves
from .signature import NUMBERS, VALUES

MOST_COMPARED = 4  # tensors whose pairs are compared one by one


class NotWrittenError(Exception):
    """There is no text for an argument: calls with it go the general way."""


class ArgumentTest(str):
    """An expression that is true where a call is alike; other lines do something."""

    __slots__ = ()


def leaf_name(position: int) -> str:
    """Return the variable that holds a leaf."""
    return f"x{position}"


class ArgumentWriter:
    """Writes what takes arguments apart and tests them; what follows may assume all of it.

    fed       positions of the numbers that are fed
    checked   positions of the arrays and tensors whose shape and dtype somebody else looks at
    looks     whether to look at those all the same
    """

    def __init__(
        self,
        structure: Structure,
        leaves: Leaves,
        names: ObjectNames,
        fed: Collection[int],
        checked: Collection[int],
        looks: bool,
    ) -> None:
        self.structure = structure
        self.leaves = leaves
        self.names = names
        self.fed = fed
        self.unchecked = {i for i in range(len(leaves)) if looks or i not in checked}
        self._containers = 0

    def taken_apart(self) -> Iterator[str]:
        """Yield what puts leaves into variables: lines, and conditions under which these work."""
        args, kwargs = self.structure.children
        yield from self._apart(args, "args", 0, known=True)
        yield from self._apart(kwargs, "kwargs", args.count, known=True)

    def conditions(self, outer: Collection[Tensor]) -> Iterator[str]:
        """Yield the conditions that leaves are alike, and none of some tensors from outside.

        What these are by class, shape, dtype and history others have tested.
        """
        for i, x in enumerate(self.leaves):
            yield from self._on_leaf(i, x)
        yield from self._on_aliases()
        yield from self._on_outer(outer)

    # -- containers --------------------------------------------------------------------------------

    def _apart(
        self, tree: Structure, name: str, first: int, *, known: bool = False
    ) -> Iterator[str]:
        """Yield what takes a container apart; of a `known` one the class is certain."""
        if tree.kind is type(None):
            yield ArgumentTest(f"{name} is None")
            return
        if not known:
            yield ArgumentTest(f"{name}.__class__ is {self.names.of(tree.kind, 'kind')}")
        parts = []
        for child in tree.children:
            parts.append((child, leaf_name(first) if child.kind is None else self._new(), first))
            first += child.count
        yield from self._split(tree, name, [part for _, part, _ in parts])
        for child, part, start in parts:
            if child.kind is not None:
                yield from self._apart(child, part, start)

    def _new(self) -> str:
        self._containers += 1
        return f"container{self._containers}"

    def _split(self, tree: Structure, name: str, parts: list[str]) -> Iterator[str]:
        """Yield what puts the children of a container into variables."""
        labels = [] if tree.container is None else [*map(tree.container.label, *_places(tree))]
        if tree.kind is dict:
            keys: Any = tree.data
            yield ArgumentTest(
                f"[*{name}] == {self.names.of([*keys], 'keys')}" if keys else f"not {name}"
            )
            name = f"{name}.values()"
        elif all(label.startswith(".") for label in labels) and tree.kind is not tuple:
            yield from (
                f"{part} = {name}{label}" for part, label in zip(parts, labels, strict=True)
            )
            return
        elif tree.kind not in (tuple, list):
            raise NotWrittenError
        elif not parts:
            yield ArgumentTest(f"not {name}")
        if parts:
            yield f"{', '.join(parts)}, = {name}"

    # -- leaves ------------------------------------------------------------------------------------

    def _on_leaf(self, position: int, x: Any) -> Iterator[str]:
        """Yield the conditions that a leaf is of the kind of one that is given."""
        name = leaf_name(position)
        if isinstance(x, (Tensor, np.ndarray)):
            yield f"{name}.__class__ is {self.names.of(type(x), 'kind')}"
            yield from self._on_array(position, x)
        elif type(x) in NUMBERS and position in self.fed:
            yield f"{name}.__class__ is {type(x).__name__}"
        elif type(x) in (*NUMBERS, str, bytes):
            if type(x) is float and (x == 0 or not math.isfinite(x)):  # equal to more than itself
                raise NotWrittenError
            yield f"{name}.__class__ is {type(x).__name__} and {name} == {x!r}"
        elif isinstance(x, (*VALUES, np.generic)) and type(x) is not bool and x is not Ellipsis:
            raise NotWrittenError
        else:
            yield f"{name} is {self.names.of(x, 'given')}"

    def _on_array(self, position: int, x: Any) -> Iterator[str]:
        name = leaf_name(position)
        if isinstance(x, Tensor):
            yield _on_node(name, x._node)
            name = f"{name}._value"
        elif type(x) is not np.ndarray:
            raise NotWrittenError
        if position in self.unchecked:
            yield f"{name}.shape == {tuple(x.shape)!r}"
            yield f"{name}.dtype == {self.names.of(x.dtype, 'dtype')}"

    def _tensors(self) -> dict[int, Tensor]:
        return {i: x for i, x in enumerate(self.leaves) if isinstance(x, Tensor)}

    def _on_aliases(self) -> Iterator[str]:
        """Yield conditions that no tensor is given twice."""
        tensors = self._tensors()
        if len({*map(id, tensors.values())}) < len(tensors):
            raise NotWrittenError
        if len(tensors) > MOST_COMPARED:
            ids = ", ".join(f"id({leaf_name(i)})" for i in tensors)
            yield f"len({{{ids}}}) == {len(tensors)}"
            return
        for i, j in combinations(tensors, 2):
            if _alike(tensors[i], tensors[j]):
                yield f"{leaf_name(i)} is not {leaf_name(j)}"

    def _on_outer(self, outer: Collection[Tensor]) -> Iterator[str]:
        for i, x in self._tensors().items():
            alike = frozenset(id(tensor) for tensor in outer if _alike(tensor, x))
            if alike:
                yield f"id({leaf_name(i)}) not in {self.names.of(alike, 'outer')}"


def _places(tree: Structure) -> tuple[Iterable[int], Iterable[Any]]:
    count = len(tree.children)
    return range(count), [tree.data] * count


def _on_node(name: str, node: Any) -> str:
    if node is None:
        return f"{name}._node is None"
    leaf = "is" if isinstance(node, Leaf) else "is not"
    return f"{name}._node is not None and {name}._node.__class__ {leaf} Leaf"


def _alike(a: Tensor, b: Tensor) -> bool:
    """Tell whether tensors that pass the tests of these two could be one."""
    same = type(a) is type(b) and (a._node is None) == (b._node is None)
    return same and a.shape == b.shape and a.dtype == b.dtype
