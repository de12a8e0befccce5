"""Which objects were there before a recording began.

Objects that the garbage collector knows tell by its generations: the collector is off while a
recording runs, so whatever is made then stays in the youngest. The others (arrays, and dictionaries
of numbers) are old if something old was seen to hold them.
"""

from __future__ import annotations

import gc
from typing import Any


class Ages:
    """Tells old objects from those that a recording made."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, bool]] = {}  # kept alive, so that no id is used twice
        self._held: list[tuple[Any, Any]] = []
        self._old: set[int] = set()
        self._young: set[int] = set()
        self._found_new: set[int] = set()  # while it runs; of objects that are kept alive
        self._was_enabled = False

    def begin(self) -> None:
        """Let all that is there now be old."""
        self._was_enabled = gc.isenabled()
        gc.disable()
        gc.collect(0)

    def end(self) -> None:
        """Find out what has been made since."""
        self._young = {id(found) for found in gc.get_objects(generation=0)}
        if self._was_enabled:
            gc.enable()
        for holder, value in self._held:
            if self.is_old(holder):
                self._old.add(id(value))
        self._held.clear()

    def see(self, value: Any) -> None:
        """Remember an object, and how the collector knows it before anything happens to it."""
        if id(value) not in self._known:
            self._known[id(value)] = (value, gc.is_tracked(value))

    def hold(self, holder: Any, value: Any) -> None:
        """Remember that one object was held by another, from where a recording took it."""
        if not gc.is_tracked(value) or isinstance(value, dict):
            self.see(holder)
            self.see(value)
            self._held.append((holder, value))

    def declare_old(self, value: Any) -> None:
        """Say that an object was there before."""
        self.see(value)
        self._old.add(id(value))

    def is_old(self, value: Any) -> bool:
        """Tell whether an object was there before the recording; asked when that has ended."""
        if id(value) in self._old:
            return True
        _, tracked = self._known.get(id(value), (None, gc.is_tracked(value)))
        return tracked and id(value) not in self._young

    def is_old_by_now(self, value: Any) -> bool:
        """Tell whether an object was there before the recording, while that still runs."""
        young = gc.get_objects(generation=0)
        young.reverse()  # who asks has mostly just made it
        pending, met = [value], set[int]()
        while pending:
            thing = pending.pop()
            met.add(id(thing))
            _, tracked = self._known.get(id(thing), (None, gc.is_tracked(thing)))
            if id(thing) in self._old or (tracked and not any(thing is new for new in young)):
                return True
            pending += [h for h, held in self._held if held is thing and id(h) not in met]
        if id(value) in self._known:
            self._found_new.add(id(value))
        return False

    def was_found_new(self, value: Any) -> bool:
        """Tell whether `is_old_by_now` was asked of an object before, and said no."""
        return id(value) in self._found_new

    def is_young(self, value: Any) -> bool:
        """Tell whether an object is known to be made by the recording."""
        return id(value) in self._young

    def forget(self) -> None:
        """Let go of everything that was seen."""
        self._known.clear()
        self._young.clear()
        self._found_new.clear()
