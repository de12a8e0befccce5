"""Locks that a forked child can rely on."""

from __future__ import annotations

import os
import threading


def fork_safe_lock() -> threading.RLock:
    """Return a lock for the whole process that no other thread holds at the moment of a fork.

    Otherwise a child could start with a lock whose owner does not exist there. A fork waits for
    it, so it is held briefly; locks are taken in the reverse order of their making.
    """
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock
