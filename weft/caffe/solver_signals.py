"""What signals ask of a solver, as in Caffe: Ctrl-C to stop, SIGHUP for a snapshot."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .errors import CaffeError

STOP, SNAPSHOT, NONE = "stop", "snapshot", "none"
EFFECTS = (SNAPSHOT, STOP, NONE)
DEFAULTS = {"SIGINT": STOP, "SIGHUP": SNAPSHOT}


class Requests:
    """What was asked for since somebody looked; stopping goes before all else."""

    def __init__(self) -> None:
        self._asked: set[str] = set()

    def ask(self, effect: str) -> None:
        """Note a wish."""
        self._asked.add(effect)

    def take(self) -> str:
        """Return what is wished for, once."""
        if not self._asked:
            return NONE
        asked, self._asked = self._asked, set()
        return STOP if STOP in asked else SNAPSHOT if SNAPSHOT in asked else NONE


@contextmanager
def listening(requests: Requests, effects: Mapping[str, str] = DEFAULTS) -> Iterator[None]:
    """Turn signals into requests inside a `with` block; a second Ctrl-C interrupts at once.

    effects   of "SIGINT" and "SIGHUP": "stop", "snapshot" or "none"
    """
    _check(effects)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    try:
        for name, effect in effects.items():
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            if number is not None and effect != NONE:
                before[number] = signal.signal(number, _handler(requests, effect))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _handler(requests: Requests, effect: str) -> Any:
    def handle(number: int, frame: FrameType | None) -> None:
        requests.ask(effect)
        if number == signal.SIGINT and effect == STOP:
            signal.signal(number, signal.default_int_handler)

    return handle


def _check(effects: Mapping[str, str]) -> None:
    for name, effect in effects.items():
        if effect not in EFFECTS:
            raise CaffeError(
                f"the effect of {name} must be one of {', '.join(EFFECTS)}. Received: {effect!r}"
            )
