"""Parts of Weft that a recording need not see frame by frame.

While a function is recorded (capture/watch), Python tells a tracer of every call, and runs all code
slowly, Weft's own too. Where nothing but Weft's own code can run, that is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from .dim import Dim
from .modes import current_interpreter
from .rng import Generator
from .tensor import Tensor

# From 3.12 on a tracer costs code that it does not follow nothing, and to change it costs much.
IS_SLOW = sys.version_info < (3, 12)

watchers: dict[int, Any] = {}  # tracers of recordings that nobody else listens to, by id
_OURS = "weft."
_known: set[type] = {int, float, bool, complex, str, bytes, type(None), type(Ellipsis)}


def look_away(*things: Any, rules: Iterable[Any] = ()) -> Any:
    """Stop the watcher of a recording, unless things, or rules, may run code of the user's.

    Return what `sys.settrace` is to be given in the end; None if nothing was stopped.
    """
    tracer = sys.gettrace()
    if id(tracer) not in watchers:
        return None
    sys.settrace(None)  # before it is known, as finding out is slow under a tracer
    recording = getattr(current_interpreter(), "recording", False)  # under vmap other rules run
    if recording and is_plain(things) and all(map(is_ours, rules)):
        return tracer
    sys.settrace(tracer)
    return None


class unseen:  # noqa: N801  (a context, named like a function)
    """Let no recording watch a block, unless some things may run code of the user's there."""

    __slots__ = ("_things", "_tracer")

    def __init__(self, *things: Any) -> None:
        self._things = things

    def __enter__(self) -> None:
        self._tracer = look_away(*self._things) if watchers else None

    def __exit__(self, *exc: object) -> None:
        if self._tracer is not None:
            sys.settrace(self._tracer)


def is_plain(thing: Any) -> bool:
    """Tell whether a value is a number, a tensor, or a container of such, and no class of a user.

    >>> is_plain((1, [2.0, "same"], None)), is_plain(print)
    (True, False)
    """
    kind = type(thing)
    if kind in _known:
        return True
    if kind is tuple or kind is list:
        return all(map(is_plain, thing))
    if kind is slice:
        return is_plain((thing.start, thing.stop, thing.step))
    if kind is np.ndarray or issubclass(kind, (np.generic, np.dtype)):
        return not np.dtype(getattr(thing, "dtype", thing)).hasobject
    if issubclass(kind, (Tensor, Dim, Generator, np.ndarray)) and is_ours(kind):
        _known.add(kind)
        return True
    return False


def is_ours(thing: Any) -> bool:
    """Tell whether a function or class is Weft's own, or there is none."""
    return thing is None or f"{thing.__module__}.".startswith(_OURS)
