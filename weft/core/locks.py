"""Locks that a forked child can rely on, and the one order in which all of them are taken.

A child has one thread, that which forked; a lock that another thread held at that moment would stay
locked there for ever. So a fork takes every lock of Weft before it happens, in the order below, and
releases them in the parent and in the child. It waits for whoever holds one.

Nobody may hold a lock while it takes an earlier one: then neither threads nor forks wait for one
another in a circle. From LEAVES on the rule is stricter: who holds such a lock takes no other one,
and waits for nothing that needs one. So a thread may fork while it holds a lock (in a handler of a
signal, say): what it waits for is held by threads that do not wait for it. Code of users runs only
under "states", the first. All locks exist from the start, so that a fork never meets a new one.

WEFT_CHECK_LOCKS=1 checks the order whenever a lock is taken.
"""

from __future__ import annotations

import os
import threading
from _thread import interrupt_main, start_new_thread
from collections import deque
from collections.abc import Callable
from operator import call
from typing import Any, cast

ORDER = (
    "states",  # a program that writes states runs
    "lending",  # a program computes in memory that it was lent
    "sizes",  # code for many sizes gets memory for some
    "interning",  # what batched functions put off gets a number
    "jobs",  # not a lock: a fork waits for the background (eager/background.py), for a while
    "imports",  # a module is imported that the program did not name; no module asks for it
    "operators",  # further operators are declared, in modules that need none of the others
    "door",  # eager mode turns to machine code (large.py)
    "workers",  # threads of the pool are started or stopped
    "background",  # the background's thread is started
    "objects",  # what is known of object code
    "llvm",  # LLVM works, which has locks of its own
    "blas",  # NumPy's BLAS is set to one thread, or copied
    "modes",
    "random",
)
LEAVES = ORDER.index("door")

Act = Callable[[], object]


class _Fork:
    """A fork under way: what undoes its preparations, as many as were taken, and what came up."""

    def __init__(self, acts: list[tuple[Act, Act]]) -> None:
        self.acts = acts
        self.taken: list[object] = []
        self.raised: list[BaseException] = []

    def prepare(self) -> None:
        """Take all locks, whatever handlers of signals raise: a fork cannot raise it."""
        while len(self.taken) < len(self.acts):
            try:
                # No handler runs between two acts, nor between an act and its being counted.
                self.taken.extend(map(call, [do for do, _ in self.acts[len(self.taken) :]]))
            except BaseException as error:
                self.raised.append(error)

    def undo(self) -> None:
        """Release what was taken, the last first."""
        deque(map(call, [undo for _, undo in self.acts[: len(self.taken)][::-1]]), maxlen=0)


class _ThisThread(threading.local):
    """What a thread has to do with locks: its forks, and the names of those held, if checked."""

    def __init__(self) -> None:
        self.forks: list[_Fork] = []  # several if the handler of a signal forks during a fork
        self.names: list[str] = []


class CheckedLock:
    """A lock that must be taken in the order of all locks."""

    def __init__(self, name: str, lock: threading.RLock) -> None:
        self.name = name
        self.lock = lock

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock; fail if a later one is held."""
        if blocking:
            self._check()
        taken = self.lock.acquire(blocking, timeout)
        if taken:
            _this_thread.names.append(self.name)
        return taken

    def release(self) -> None:
        """Release the lock."""
        self.lock.release()
        names = _this_thread.names
        del names[len(names) - 1 - names[::-1].index(self.name)]

    def _check(self) -> None:
        held = _this_thread.names
        if self.name in held:
            return
        last = max(map(ORDER.index, held), default=-1)
        assert last < min(LEAVES, ORDER.index(self.name)), (
            f"lock {self.name!r} is taken while {held} are held; the order is {ORDER}"
        )

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *exc: object) -> None:
        self.release()


_this_thread = _ThisThread()
_locks = {name: threading.RLock() for name in ORDER if name != "jobs"}
_acts: dict[str, tuple[Act, Act]] = {n: (lock.acquire, lock.release) for n, lock in _locks.items()}
_checks = os.environ.get("WEFT_CHECK_LOCKS", "") not in ("", "0")


def fork_safe_lock(name: str) -> threading.RLock:
    """Return the process's lock of that name; no other thread holds it at the moment of a fork."""
    lock = _locks[name]
    return cast(Any, CheckedLock(name, lock)) if _checks else lock


def stop_for_forks(name: str, stop: Act, go_on: Act) -> None:
    """Have something else stopped at its place in the order, and go on after a fork.

    In the child `go_on` is called as well: nobody else is there.
    """
    assert name in ORDER, name
    assert name not in _locks, name
    _acts[name] = (stop, go_on)


def _before() -> None:
    fork = _Fork([_acts[name] for name in ORDER if name in _acts])
    _this_thread.forks.append(fork)
    fork.prepare()


def _after_in_child() -> list[BaseException]:
    if not _this_thread.forks:  # a handler of a signal broke into the first line of `_before`
        return []
    fork = _this_thread.forks.pop()
    fork.undo()
    return fork.raised


def _after_in_parent() -> None:
    """Release all locks; let a Ctrl-C that was held back come again, once the fork has returned."""
    raised = _after_in_child()
    others = [error for error in raised if not isinstance(error, KeyboardInterrupt)]
    if len(others) < len(raised):
        start_new_thread(interrupt_main, ())
    if others:
        raise others[0]  # Python says that it was lost


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
    )
