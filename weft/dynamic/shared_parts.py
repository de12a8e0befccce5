"""Objects that several examples of a call have in common: while some wait, none may change."""

from __future__ import annotations

from collections.abc import Sequence

from .saved_items import SavedPart
from .structure import StructureWalk


class SharedParts:
    """What more than one example leads to, as the walk met it that was there first."""

    def __init__(self, walks: Sequence[StructureWalk]) -> None:
        met: dict[int, StructureWalk] = {}
        shared: dict[StructureWalk, set[int]] = {}
        for walk in dict.fromkeys(walks):
            for x in walk.changeable():
                first = met.setdefault(id(x), walk)
                if first is not walk:
                    shared.setdefault(first, set()).add(id(x))
        self._parts: list[SavedPart] = []
        for walk, chosen in shared.items():
            self._parts += walk.parts(chosen)

    def changed(self) -> str | None:
        """Return the kind of something that is not as it was, if anything is not."""
        for part in self._parts:
            if not part.is_same():
                return f"a {type(part.owner).__name__}"
        return None
