"""Trees: nests of containers whose leaves are tensors, arrays or anything else.

Functions of arbitrary arguments (transforms, Session.run, optimizers) work on the flat list of
leaves and put the results back into the same nest:

    leaves, structure = flatten({"w": w, "b": [b, None]})
    structure.unflatten(f(leaf) for leaf in leaves)

Containers are dict, list, tuple, namedtuple, dataclass, None (a container of nothing) and classes
given to `register`; everything else is a leaf. Dictionaries keep their insertion order, and two of
them match if they have the same keys in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .errors import ArgumentError, ArgumentTypeError

Children = tuple[Any, ...]


class TreeMismatchError(ArgumentError):
    """Two trees that must have the same structure differ."""


class Container(NamedTuple):
    """How a class of container is taken apart and put together.

    split    container -> (what is needed to rebuild it besides the children, children)
    join     that and new children -> container
    label    position and that -> how a child is written in a path, e.g. "[0]" or ".weight"
    """

    split: Callable[[Any], tuple[Hashable, Children]]
    join: Callable[[Any, Children], Any]
    label: Callable[[int, Any], str]


class Structure:
    """The shape of a tree: its containers, without the leaves."""

    __slots__ = ("_hash", "children", "container", "count", "data", "kind")

    def __init__(
        self,
        kind: type | None,
        container: Container | None,
        data: Hashable,
        children: tuple[Structure, ...],
    ) -> None:
        self.kind = kind  # None: this is a leaf
        self.container = container
        self.data = data
        self.children = children
        self.count: int = 1 if kind is None else sum(child.count for child in children)
        self._hash: int | None = None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """Return a tree of this structure with the given leaves."""
        given = list(leaves)
        if len(given) != self.count:
            raise TreeMismatchError(
                f"the tree {self} has {self.count} leaves. Received: {len(given)}"
            )
        return self._build(iter(given))

    def _build(self, leaves: Iterator[Any]) -> Any:
        if self.container is None:
            return next(leaves)
        parts = [next(leaves) if c.kind is None else c._build(leaves) for c in self.children]
        return parts if self.kind is list else self.container.join(self.data, tuple(parts))

    def flatten_like(self, tree: Any, what: str = "tree") -> list[Any]:
        """Return what stands in `tree` where this structure has leaves; raise if it differs."""
        found: list[Any] = []
        if not self._gather(tree, found):  # then look again, for where it differs
            found = []
            self._match(tree, what, found)
        return found

    def _gather(self, tree: Any, found: list[Any]) -> bool:
        """Collect the leaves of a tree of the usual containers; False if it may be another."""
        kind, children = self.kind, tree
        if kind is None:
            found.append(tree)
            return True
        if type(tree) is not kind or kind not in _USUAL or len(children) != len(self.children):
            return False
        if kind is dict:
            if tuple(children) != self.data:
                return False
            children = children.values()
        for structure, child in zip(self.children, children, strict=True):
            if structure.kind is None:
                found.append(child)
            elif not structure._gather(child, found):
                return False
        return True

    def _match(self, tree: Any, path: str, found: list[Any]) -> None:
        if self.container is None:
            found.append(tree)
            return
        container = container_of(tree)
        if type(tree) is not self.kind or container is None:
            raise TreeMismatchError(f"{path} must be {self}. Received: {_shown(tree)}")
        data, children = container.split(tree)
        for i, (structure, child) in enumerate(
            zip(self.children, self._aligned(data, children, path), strict=True)
        ):
            structure._match(child, path + self.container.label(i, self.data), found)

    def _aligned(self, data: Any, children: Children, path: str) -> Children:
        """Return the children in this structure's order."""
        if isinstance(self.data, Keys) and isinstance(data, Keys) and set(self.data) == set(data):
            by_key = dict(zip(data, children, strict=True))
            return tuple(by_key[key] for key in self.data)
        if data != self.data or len(children) != len(self.children):
            raise TreeMismatchError(f"{path} must be {self}. {self._difference(data, children)}")
        return children

    def _difference(self, data: Any, children: Children) -> str:
        if isinstance(self.data, Keys) and isinstance(data, Keys):
            missing = [key for key in self.data if key not in set(data)]
            unknown = [key for key in data if key not in set(self.data)]
            return f"Received keys {list(data)}: missing {missing}, unexpected {unknown}"
        return f"Received: {len(children)} element(s)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Structure) or self.kind is not other.kind:
            return False
        if isinstance(self.data, Keys) and isinstance(other.data, Keys):
            return dict(zip(self.data, self.children, strict=True)) == dict(
                zip(other.data, other.children, strict=True)
            )
        return self.data == other.data and self.children == other.children

    def __hash__(self) -> int:
        if self._hash is None:  # data that has none raises each time
            self._hash = self._hashed()
        return self._hash

    def _hashed(self) -> int:
        if isinstance(self.data, Keys):
            return hash((self.kind, frozenset(zip(self.data, self.children, strict=True))))
        return hash((self.kind, self.data, self.children))

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        shown = [repr(child) for child in self.children]
        if self.kind in _BRACKETS:
            left, right = _BRACKETS[self.kind]
            return (
                f"{left}{', '.join(shown)}{',' if right == ')' and len(shown) == 1 else ''}{right}"
            )
        if isinstance(self.data, Keys):
            pairs = (f"{k!r}: {v}" for k, v in zip(self.data, shown, strict=True))
            return f"{{{', '.join(pairs)}}}"
        return "None" if self.kind is type(None) else f"{self.kind.__name__}({', '.join(shown)})"


class Keys(tuple[Hashable, ...]):
    """The keys of a mapping, whose order does not matter for equality of structures."""

    __slots__ = ()


_BRACKETS: dict[type, tuple[str, str]] = {list: ("[", "]"), tuple: ("(", ")")}
_USUAL = (tuple, list, dict)
LEAF = Structure(None, None, None, ())


# -- public functions ----------------------------------------------------------------------------


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Structure]:
    """Return the leaves of a tree, and the structure to put them back.

    `is_leaf` may declare containers to be leaves.

    >>> flatten({"w": 1, "b": (2, None)})
    ([1, 2], {'w': *, 'b': (*, None)})
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves: list[Any], tree: Any, is_leaf: Callable[[Any], bool] | None) -> Structure:
    container = None if is_leaf is not None and is_leaf(tree) else container_of(tree)
    if container is None:
        leaves.append(tree)
        return LEAF
    data, children = container.split(tree)
    parts = tuple(_flatten_into(leaves, child, is_leaf) for child in children)
    return Structure(type(tree), container, data, parts)


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """Return a tree of a structure with the given leaves."""
    return structure.unflatten(leaves)


def tree_leaves(tree: Any) -> list[Any]:
    """Return the leaves of a tree.

    >>> tree_leaves([1, {"a": 2}, None])
    [1, 2]
    """
    return flatten(tree)[0]


def tree_structure(tree: Any) -> Structure:
    """Return the structure of a tree."""
    return flatten(tree)[1]


def tree_map(fn: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return a tree of `fn(leaf, ...)` over the leaves of one or several trees of one structure.

    Where the first tree has a leaf, the others may hold anything.

    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10})
    {'x': 11, 'y': [22]}
    """
    leaves, structure = flatten(tree)
    columns = [structure.flatten_like(t, f"tree {i}") for i, t in enumerate(others, 1)]
    return structure.unflatten(fn(*row) for row in zip(leaves, *columns, strict=True))


def flatten_with_paths(tree: Any) -> list[tuple[str, Any]]:
    """Return the leaves of a tree with their paths.

    >>> flatten_with_paths({"w": [1, 2]})
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    found: list[tuple[str, Any]] = []
    _collect_paths(tree, "", found)
    return found


def _collect_paths(tree: Any, path: str, found: list[tuple[str, Any]]) -> None:
    container = container_of(tree)
    if container is None:
        found.append((path, tree))
        return
    data, children = container.split(tree)
    for i, child in enumerate(children):
        _collect_paths(child, path + container.label(i, data), found)


def register(
    cls: type,
    split: Callable[[Any], tuple[Iterable[Any], Hashable]],
    join: Callable[[Any, Children], Any],
) -> None:
    """Make the instances of a class containers.

    `split(instance)` returns (children, data) and `join(data, children)` builds an instance; data
    must be hashable and comparable, as it is part of the structure.
    """
    if not isinstance(cls, type):
        raise ArgumentTypeError(f"register: the first argument must be a class. Received: {cls!r}")
    if cls in _containers:
        raise ArgumentError(f"register: {cls.__name__} is a container already")

    def split_checked(instance: Any) -> tuple[Hashable, Children]:
        children, data = split(instance)
        return data, tuple(children)

    _containers[cls] = Container(split_checked, join, lambda i, data: f"[{i}]")


# -- the kinds of containers ---------------------------------------------------------------------


def container_of(tree: Any) -> Container | None:
    """Return how to take a value apart, or None if it is a leaf."""
    cls = type(tree)
    known = _containers.get(cls)
    if known is not None:
        return known
    if isinstance(tree, tuple) and hasattr(cls, "_fields"):
        return _named_tuple_container(cls)
    if isinstance(tree, dict):
        return _dict_container(cls)
    return _dataclass_container(cls) if hasattr(cls, "__dataclass_fields__") else None


def _index_label(i: int, data: Any) -> str:
    return f"[{i}]"


def _key_label(i: int, keys: Any) -> str:
    return f"[{keys[i]!r}]"


def _split_dict(tree: Mapping[Any, Any]) -> tuple[Hashable, Children]:
    return Keys(tree.keys()), tuple(tree.values())


def _join_dict(keys: Any, children: Children) -> dict[Any, Any]:
    return dict(zip(keys, children, strict=True))


def _dict_container(cls: Any) -> Container:
    """Return the container for a subclass of dict; a defaultdict comes back without its factory."""

    def join(keys: Any, children: Children) -> Any:
        mapping = cls.__new__(cls)
        mapping.update(zip(keys, children, strict=True))
        return mapping

    return _containers.setdefault(cls, Container(_split_dict, join, _key_label))


def _named_tuple_container(cls: Any) -> Container:
    def label(i: int, data: Any) -> str:
        return f".{cls._fields[i]}"

    container = Container(lambda tree: (None, tuple(tree)), lambda _, parts: cls(*parts), label)
    return _containers.setdefault(cls, container)


def _dataclass_container(cls: Any) -> Container:
    names = tuple(cls.__dataclass_fields__)

    def split(tree: Any) -> tuple[Hashable, Children]:
        return None, tuple(getattr(tree, name) for name in names)

    def join(_: Any, children: Children) -> Any:
        # Past __init__ and __post_init__, which may reject or convert what a transform puts in.
        instance = object.__new__(cls)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(instance, name, child)
        return instance

    return _containers.setdefault(cls, Container(split, join, lambda i, _: f".{names[i]}"))


def _shown(tree: Any) -> str:
    leaves, structure = flatten(tree)
    return f"{type(tree).__name__} {structure if structure.kind else repr(leaves[0])}"


_containers: dict[type, Container] = {
    dict: Container(_split_dict, _join_dict, _key_label),
    list: Container(lambda x: (None, tuple(x)), lambda _, parts: list(parts), _index_label),
    tuple: Container(lambda x: (None, x), lambda _, parts: parts, _index_label),
    type(None): Container(lambda _: (None, ()), lambda _, parts: None, _index_label),
}
