"""Effects: what a program shows to somebody while it runs (wf.debug), and when.

In a graph effects are threaded like draws: each takes a number, the link of a chain, and gives the
next. So they keep their order, nothing repeats or drops them, and what is copied for a gradient or
computed again shows nothing, as nobody takes the link that it gives.

A run that fails may be repeated node by node, to say where. What it has shown is not shown again:
the log of a call counts what was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any


class EffectChain:
    """Owns the state that is threaded through the effects of a graph."""

    def __repr__(self) -> str:
        return "<the chain of effects>"


CHAIN = EffectChain()


# -- which trip of which loops ---------------------------------------------------------------------

_trips: ContextVar[tuple[int, ...]] = ContextVar("weft_trips", default=())


def trips() -> tuple[int, ...]:
    """Return the trips of the loops around the place that runs now, outermost first.

    The steps of `wf.scan`, and of loops that run back for a gradient, are known by the rows that
    they work on.
    """
    return _trips.get()


@contextmanager
def in_trips(numbers: tuple[int, ...]) -> Iterator[None]:
    """Let something happen later as in some trips of loops."""
    token = _trips.set(numbers)
    try:
        yield
    finally:
        _trips.reset(token)


class TripCount:
    """Tells which trip of a loop runs: `with TripCount() as at: ... at(i)`."""

    __slots__ = ("_first", "_outer")

    def __enter__(self) -> Callable[[int], object]:
        """Begin a loop; return what is told the number of each trip."""
        self._outer = _trips.get()
        self._first: Token[tuple[int, ...]] = _trips.set(self._outer)
        return self._begin

    def _begin(self, trip: int) -> None:
        _trips.set((*self._outer, trip))

    def __exit__(self, *exc: object) -> None:
        """Leave the loop."""
        _trips.reset(self._first)


# -- what was shown --------------------------------------------------------------------------------


class EffectLog:
    """What the attempts of one call have shown.

    running   the program and what it is fed, for those who look further
    is_last   whether no attempt can follow: what this one was given is not kept any more
    """

    __slots__ = ("_given", "_position", "_shown", "is_last", "running")

    def __init__(self, running: Any = None) -> None:
        self.running = running
        self.is_last = False
        self._given: dict[Any, Any] = {}
        self._position = self._shown = 0

    def begin(self) -> None:
        """Begin an attempt, which runs from the start."""
        self._position = 0

    @property
    def has_shown(self) -> bool:
        """Tell whether anything was shown."""
        return self._shown > 0

    def is_new(self) -> bool:
        """Count an effect; tell whether no attempt before has come to it."""
        self._position += 1
        new = self._position > self._shown
        self._shown = max(self._shown, self._position)
        return new

    def once(self, act: Callable[[], Any]) -> Any:
        """Count an effect that gives something; an attempt that repeats it is given the same."""
        if not self.is_new():
            return self._given[self._position]
        return self._noted(self._position, act())

    def kept(self, key: Any, act: Callable[[], Any]) -> Any:
        """Return what belongs to a key, which something gives once."""
        known = ("kept", key)
        return self._given[known] if known in self._given else self._noted(known, act())

    def forget(self) -> None:
        """Keep nothing any more: no attempt follows this one."""
        self.is_last = True
        self._given.clear()

    def _noted(self, key: Any, given: Any) -> Any:
        if not self.is_last:
            self._given[key] = given
        return given


class _Muted(EffectLog):
    """The log of a run whose effects are not for anybody."""

    __slots__ = ()

    def is_new(self) -> bool:
        return False

    def once(self, act: Callable[[], Any]) -> Any:
        return act()


_log: ContextVar[EffectLog | None] = ContextVar("weft_effect_log", default=None)


def current_log() -> EffectLog | None:
    """Return the log of the call that runs, if it has one."""
    return _log.get()


@contextmanager
def logging_to(log: EffectLog | None) -> Iterator[EffectLog | None]:
    """Let effects be counted by a log; None: let them just happen."""
    token = _log.set(log)
    try:
        yield log
    finally:
        _log.reset(token)


def muted() -> Any:
    """Return a context in which nothing is shown: values are only looked up."""
    return logging_to(_Muted())


def communicated(act: Callable[[], Any], *, kept: bool = True) -> Any:
    """Return what processes do together: once in a call, however often that repeats its program.

    kept   whether an attempt may follow that repeats it
    """
    log = _log.get()
    if log is not None and not kept:
        log.forget()
    return act() if log is None else log.once(act)
