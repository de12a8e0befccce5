"""A time by which something must have happened, which moves with every request.

A timer of the event loop for each request would be made and cancelled thousands of times a second.
This one stays where it is when the time moves on, and looks again when it rings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """Calls a function when its time has come, unless it is set anew or cleared before."""

    __slots__ = ("_armed", "_call", "_loop", "_timer", "_when")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        self._call: Callable[[], None] | None = None
        self._when = self._armed = 0.0

    def set(self, seconds: float, call: Callable[[], None]) -> None:
        """Call a function after some seconds; it takes the place of the one before."""
        self._call = call
        self._when = when = self._loop.time() + seconds
        if self._timer is None:
            self._arm(when)
        elif when < self._armed:
            self._timer.cancel()
            self._arm(when)

    def clear(self) -> None:
        """Call nothing."""
        self._call = None

    def stop(self) -> None:
        """Call nothing, and leave no timer behind."""
        self._call = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self, when: float) -> None:
        self._armed = when
        self._timer = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        self._timer = None
        call = self._call
        if call is None:
            return
        if self._loop.time() < self._when:
            self._arm(self._when)
        else:
            self._call = None
            call()
