"""Functions that keep their results (functools.lru_cache): what they do is done by misses alone.

A recording goes on where the result is kept, and depends on its being kept. Where it is not, the
function would run, change what it changes, and keep what the recording made: there the recording
ends before anything of that has happened.
"""

from __future__ import annotations

import functools
from typing import Any

from .places import PythonPlace


def is_cached(function: Any) -> bool:
    """Tell whether a function keeps its results, by functools.lru_cache."""
    return type(function) is type(_cached)


@functools.cache
def _cached() -> None:
    """Return nothing: an example of a function that keeps its results."""


class CachedCall:
    """A call whose result is kept, as the key of a place.

    misses   how many there had been when the result was last known to be kept
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs
        self.misses = function.cache_info().misses

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return what is equal for two calls that have one result."""
        given = (*self.args, *self.kwargs.values())
        return self.args, tuple(self.kwargs.items()), tuple(map(type, given))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CachedCall) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def result(self, function: Any) -> Any:
        """Return what is kept; raise KeyError where it may have been forgotten."""
        _, misses, most, held = function.cache_info()
        has_room = most is None or held < most  # so that none has had to go for a new one
        if misses != self.misses and not (has_room and misses > self.misses):
            raise KeyError("a result that was kept")
        self.misses = misses
        return function(*self.args, **self.kwargs)


class CachedCallPlace(PythonPlace):
    """The result that a function keeps for some arguments."""

    __slots__ = ()
    kind = "cached call"

    def get(self) -> Any:
        """Return what the function keeps."""
        return self.key.result(self.owner)

    def source(self, owner: str, key: str) -> str:
        """Return the expression that reads it."""
        return f"{key}.result({owner})"
