"""The door through which operations on large tensors leave for machine code.

NumPy computes on one thread and in fresh memory. On large operands it pays to run a compiled kernel
instead. Which of them computes must not show in the results: a training that was killed and resumed
has met fewer operations than one that was not, and ends with the same weights. So there are two
kinds of operators:

    those that round at most once   the code equals NumPy bit for bit. From LARGE elements on it is
    (`exact` operators)             compiled in the background when an operation comes for the
                                    second time, and takes over as soon as it is ready
    all others                      the code may differ in the last bits. From VERY_LARGE elements
                                    on it always computes, and the first use waits for it

The door costs nothing while it is closed. Generated functions call the reference kernels directly;
`wrap` opens the door when the first large tensor is made, and from then on each operator that can
be lowered has a chooser in its kernel's place. A chooser that meets small operands goes on to the
reference kernel, as it does with operands that code does not take (not in C order, say). An
operation is an operator with attributes, shapes and dtypes; the code comes from a layer above.

Here are the door and what is known of operations. The choosers are in large_kernels.py and, for
matrix products, in large_products.py; large_calls.py does the same for whole composites.
"""

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
from .heap import keep_freed_memory
from .locks import fork_safe_lock

LARGE = 1 << 16  # elements
VERY_LARGE = 1 << 19  # where compiling, at some 10 ms, is soon worth its while
MOST_USES = 512  # operations that are remembered, the latest used ones

# Machine code takes arrays and returns the result, or None for arrays that it does not take.
Code = Callable[..., Any]
tick = count().__next__
_opening = fork_safe_lock("door")
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


class Door:
    """Whether large tensors have been seen, and which operations on them."""

    def __init__(self) -> None:
        self.open = False
        self.waiting: list[Callable[[], None]] = []
        self.known: list[tuple[Uses, Any]] = []  # all uses, by the tables that hold them

    def when_open(self, action: Callable[[], None]) -> None:
        """Take an action when the door opens, or now if it is open."""
        with _opening:
            if self.open:
                action()
            else:
                self.waiting.append(action)

    def unlock(self) -> None:
        """Open the door, once for all: it is open when all that waited for it is done."""
        with _opening:
            if not self.open:
                keep_freed_memory()
            while self.waiting:
                self.waiting[-1]()
                self.waiting.pop()
            self.open = True

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


door = Door()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=door.forget_orders)
