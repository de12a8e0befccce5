"""The structure of elements: tuples and dictionaries of components; a list is one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..dtypes import DType
from ..shapes import TensorShape


class Component(NamedTuple):
    """What is known of one tensor of an element."""

    dtype: DType
    shape: TensorShape


def is_nest(value: Any) -> bool:
    """Tell whether a value has components."""
    return isinstance(value, Mapping) or (
        isinstance(value, tuple) and not isinstance(value, Component)
    )


def flat(nest: Any) -> list[Any]:
    """Return the components of a nest; dictionaries in the order of their keys."""
    if isinstance(nest, Mapping):
        return [leaf for key in sorted(nest) for leaf in flat(nest[key])]
    if is_nest(nest):
        return [leaf for part in nest for leaf in flat(part)]
    return [nest]


def packed(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return components in the places of a nest."""
    return _packed(structure, iter(leaves))


def mapped(function: Callable[[Any], Any], nest: Any) -> Any:
    """Return a nest with a function of each component."""
    return packed(nest, [function(leaf) for leaf in flat(nest)])


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        found = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return {key: found[key] for key in structure}
    if is_nest(structure):
        parts = [_packed(part, leaves) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return next(leaves)


def spread(structure: Any, given: Any, what: str) -> list[Any]:
    """Return what is given for each component: one thing for all, or a nest like the structure."""
    count = len(flat(structure))
    listed = tuple(given) if isinstance(given, list) and is_nest(structure) else given
    found = flat(listed) if is_nest(listed) else [given] * count
    if len(found) != count:
        raise ValueError(f"{what}: expected {count} components. Received: {len(found)}")
    return found
