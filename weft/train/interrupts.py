"""Ctrl-C during training: the first one asks to stop, the second one stops at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = "interrupted"  # the reason of a stop by Ctrl-C
_MESSAGE = b"\nStopping after this iteration; press Ctrl-C again to stop at once.\n"
_STDERR = 2


class Interrupt:
    """Tells whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.requested = False


@contextmanager
def deferred_interrupts(ask_to_stop: Callable[[], None]) -> Iterator[Interrupt]:
    """Turn the first Ctrl-C in a block into a call of `ask_to_stop`.

    Only the main thread can do so. A handler that the program has installed itself is left alone.
    """
    interrupt = Interrupt()
    if not _can_handle():
        yield interrupt
        return

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupt.requested = True
        ask_to_stop()
        os.write(_STDERR, _MESSAGE)  # print is not safe inside a signal handler

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _can_handle() -> bool:
    if threading.current_thread() is not threading.main_thread():
        return False
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
