"""Functions of Weft's by name, which are made when they are first called.

Modules of this face hold hundreds of them while they are imported. Making one may import further
modules, for which no module may ask while it is imported itself (core/locks.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.cached_property import cached_property
from ..core.facade import public_function
from ..core.op import Op, find, find_public

Function = Callable[..., Any]


class Deferred:
    """A public function of Weft's, made on its first call; name, text and signature are known."""

    def __init__(self, target: str) -> None:
        known = find(target)
        assert known is not None, target
        self.__wrapped__ = known.declaration if isinstance(known, Op) else known
        self.__name__ = self.__qualname__ = target
        self.__doc__ = known.__doc__
        self._waiting: list[Callable[[Function], None]] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)

    @cached_property
    def function(self) -> Function:
        """Make the function, and give it to those who asked for it."""
        found = public_function(self.__name__)
        for give in self._waiting:
            give(found)
        return found

    def when_made(self, give: Callable[[Function], None]) -> None:
        """Let the function be given to somebody once it is made."""
        if "function" in vars(self):
            give(self.function)
        else:
            self._waiting.append(give)


_deferred = cache(Deferred)


def weft_function(name: str, namespace: str = "wf") -> Deferred | None:
    """Return the function that Weft has under a name of a namespace, or None."""
    target = find_public(namespace, name)
    return None if target is None else _deferred(target)
