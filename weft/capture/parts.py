"""The parts of a jitted function that runs in parts, each a jitted function of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from ..core.parts import running_in_parts


class JittedParts:
    """Parts by their owners; each is recorded in its first call."""

    def __init__(self, make: Callable[[Callable[..., Any]], Any]) -> None:
        self._make = make
        self._made: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def run(self, owner: Any, part: Callable[..., Any], *args: Any) -> Any:
        """Call a part as a program."""
        made = self._made.get(owner)
        if made is None:
            made = self._made[owner] = self._make(part)
        with running_in_parts(None):
            return made(*args)

    def stats(self) -> list[dict[str, Any]]:
        """Return the counts of each part."""
        return [made.stats() for made in self._made.values()]
