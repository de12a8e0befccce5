"""Nests: lists, tuples, named tuples and dictionaries of tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "assert_same_structure",
    "flatten",
    "is_nested",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
]


def is_nested(value: Any) -> bool:
    """Tell whether a value has parts."""
    return isinstance(value, (list, tuple, Mapping)) and not isinstance(value, str)


is_sequence = is_nested


def flatten(nest: Any) -> list[Any]:
    """Return the leaves of a nest; dictionaries in the order of their keys."""
    if isinstance(nest, Mapping):
        return [leaf for key in sorted(nest) for leaf in flatten(nest[key])]
    if isinstance(nest, (list, tuple)):
        return [leaf for part in nest for leaf in flatten(part)]
    return [nest]


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any]) -> Any:
    """Return leaves in the places of a nest."""
    count = len(flatten(structure))
    if len(flat_sequence) != count:
        raise ValueError(
            f"Could not pack sequence. Structure had {count} elements, but flat_sequence had "
            f"{len(flat_sequence)} elements."
        )
    return _packed(structure, iter(flat_sequence))


def _packed(structure: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(structure, Mapping):
        made = {key: _packed(structure[key], leaves) for key in sorted(structure)}
        return type(structure)((key, made[key]) for key in structure)  # type: ignore[call-arg]
    if isinstance(structure, (list, tuple)):
        parts = [_packed(part, leaves) for part in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else type(structure)(parts)
    return next(leaves)


def map_structure(func: Any, *structure: Any, **options: Any) -> Any:
    """Return a nest with a function applied to the leaves."""
    columns = zip(*(flatten(nest) for nest in structure), strict=True)
    return pack_sequence_as(structure[0], [func(*leaves) for leaves in columns])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise unless two nests have the same parts."""
    if len(flatten(nest1)) != len(flatten(nest2)) or is_nested(nest1) != is_nested(nest2):
        raise ValueError(
            f"The two structures don't have the same nested structure. First: {nest1!r:.120} "
            "Second: "
            f"{nest2!r:.120}"
        )
