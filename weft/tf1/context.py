"""The graphs and sessions that programs mean when they name none: one stack of each per thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DefaultStack(threading.local):
    """The innermost `with x.as_default():` of this thread."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def top(self) -> Any:
        """Return the innermost one, None if there is none."""
        return self.items[-1] if self.items else None

    @contextmanager
    def entered(self, item: Any) -> Iterator[Any]:
        """Make an item the innermost one inside a `with` block."""
        self.items.append(item)
        try:
            yield item
        finally:
            self.items.remove(item)


graphs = DefaultStack()
sessions = DefaultStack()
