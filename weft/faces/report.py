"""What a program asked of a face and did not get, for `weft run --report`."""

from __future__ import annotations

_missing: dict[str, None] = {}  # as an ordered set


def note_missing(module: str, name: str) -> None:
    """Note that a program asked for a name that a face does not have."""
    _missing[f"{module}.{name}"] = None


def missing_names() -> tuple[str, ...]:
    """Return what was asked for and missing, in the order in which it was first asked for."""
    return tuple(_missing)


def forget_missing() -> None:
    """Begin anew."""
    _missing.clear()
