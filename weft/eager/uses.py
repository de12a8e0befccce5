"""What is known of the operations on large operands that were met, and their machine code."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from operator import itemgetter
from typing import Any

from .background import background

MOST_USES = 512  # operations that are remembered, the latest used ones

# Machine code takes arrays and returns the result, or None for arrays that it does not take.
Code = Callable[..., Any]
tick = count().__next__
Uses = dict[Any, "Use"]


class Use:
    """One operation that was met, and its machine code once there is some.

    run    what to call, when it has taken over
    last   when it was last called, by a count of all calls
    """

    __slots__ = ("count", "last", "made", "ordered", "ready", "run")

    def __init__(self) -> None:
        self.count = 0
        self.ordered = False
        self.last = tick()
        self.run: Code | None = None
        self.made: Code | None = None  # None too if there cannot be any
        self.ready = threading.Event()

    def again(self, compile_it: Callable[[], Code | None], *, exact: bool) -> Code | None:
        """Count one more use; return what to call if machine code takes over now."""
        self.count += 1
        if not self.ordered and (self.count > 1 or not exact):
            self.ordered = True
            self._order(compile_it)
        # A child may find an event's lock held by a thread of its parent: it asks first.
        if not exact and not self.ready.is_set() and not background.is_here():
            self.ready.wait()
        if self.ready.is_set():
            self.run = self.made
        return self.run

    def _order(self, compile_it: Callable[[], Code | None]) -> None:
        def job() -> None:
            try:
                self.made = compile_it()
            except Exception as error:  # NumPy goes on; who looks for speed should know why
                with suppress(Warning):  # even where warnings are errors
                    warnings.warn(f"an eager kernel was not compiled: {error}", stacklevel=1)
            finally:
                self.ready.set()

        if not background.submit(job):
            self.ready.set()


class Operations:
    """The operations that were met, by the tables that hold what is known of them."""

    def __init__(self) -> None:
        self.known: list[tuple[Uses, Any]] = []

    def use(self, uses: Uses, key: Any) -> Use:
        """Return what is known of an operation; of a new one too, and forget some if many."""
        known = uses.get(key)
        if known is None:
            known = uses[key] = Use()
            self.known.append((uses, key))
            if len(self.known) > MOST_USES:
                self._forget_some()
        known.last = tick()
        return known

    def _forget_some(self) -> None:
        """Forget the quarter of the operations that were not used for the longest time."""
        found = [(uses, key, uses[key].last) for uses, key in self.known if key in uses]
        found.sort(key=itemgetter(2))
        for uses, key, _ in found[: MOST_USES // 4]:
            uses.pop(key, None)
        self.known = [(uses, key) for uses, key, _ in found[MOST_USES // 4 :]]

    def forget_orders(self) -> None:
        """Forget what is not ready: after a fork nobody works on it."""
        for uses, key in self.known:
            if key in uses and not uses[key].ready.is_set():
                del uses[key]


operations = Operations()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=operations.forget_orders)
