"""Functions of an item, or of one entry of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentTypeError


def check_key(key: Any) -> int | str | None:
    """Return a key if it can name an entry of an item."""
    if key is not None and (isinstance(key, bool) or not isinstance(key, int | str)):
        raise ArgumentTypeError(
            f"map: key must be a position, a name or None. Received: {type(key).__name__} {key!r}"
        )
    return key


def applied(fn: Callable[[Any], Any], item: Any, key: int | str | None) -> Any:
    """Return `fn(item)`, or the item with `fn` of its entry `key` in place of that entry.

    >>> applied(str, (1, 2), 0)
    ('1', 2)
    """
    if key is None:
        return fn(item)
    entry = _entry(item, key)
    if isinstance(item, dict):
        return {**item, key: fn(entry)}
    values = list(item)
    values[key] = fn(entry)  # type: ignore[index]  # a name was refused by `_entry`
    if hasattr(item, "_fields"):
        return type(item)(*values)
    return tuple(values) if isinstance(item, tuple) else values


def _entry(item: Any, key: int | str) -> Any:
    is_sequence = isinstance(item, tuple | list)
    if isinstance(item, dict) or (is_sequence and isinstance(key, int)):
        try:
            return item[key]
        except LookupError:
            known = f"keys {list(item)}" if isinstance(item, dict) else f"{len(item)} entries"
            raise ArgumentTypeError(f"map: no entry {key!r} in an item of {known}") from None
    raise ArgumentTypeError(
        f"map: key={key!r} needs items that are tuples, lists or dictionaries with such an entry. "
        f"Received: {type(item).__name__}"
    )
