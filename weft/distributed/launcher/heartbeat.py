"""The thread in each rank that tells the launcher that the rank lives, and what it does.

It says how much is done and for how long the rank has computed and waited for others, by
which the launcher knows stragglers. A rank that no launcher started has no heartbeat: all functions
here then do next to nothing.
"""

from __future__ import annotations

import os
import platform
import runpy
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from ..environment import find_launch
from . import messages

PERIOD: Final = 0.5  # seconds between beats
_LONGEST_TRACEBACK: Final = 100_000
_RUNPY: Final = runpy.__file__


class Pulse:
    """What a rank says of itself with each beat."""

    def __init__(self) -> None:
        self.count = 0  # steps and exchanges: the same for all ranks that work together
        self.waited = 0.0  # seconds, in all
        self.phase = ""  # what it waits for, if it does
        self.joining = False  # whether Weft connects it with the others just now
        self.tell: Callable[[], object] = lambda: None  # says at once how it is, to the launcher
        self.began = time.monotonic()
        self._since: float | None = None

    def take(self) -> dict[str, Any]:
        """Return what is to be said now."""
        now = time.monotonic()
        waited = self.waited + (now - self._since if self._since is not None else 0.0)
        lived = now - self.began
        return {
            "count": self.count,
            "phase": self.phase,
            "joined": not self.joining and _is_connected(),
            "waited": round(waited, 4),
            "busy": round(lived - waited, 4),
        }

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Count the time inside as waiting for others."""
        if self._since is not None:  # inside of another wait
            yield
            return
        self._since, self.phase = time.monotonic(), what
        try:
            yield
        finally:
            self.waited += time.monotonic() - self._since
            self._since, self.phase = None, ""


def _is_connected() -> bool:
    """Tell whether MPI has connected this rank with the others, by Weft or by the script itself."""
    ask = getattr(sys.modules.get("mpi4py.MPI"), "Is_initialized", None)
    return ask is not None and bool(ask())


pulse = Pulse()


class Heartbeat:
    """The connection to the launcher, and the thread that uses it."""

    def __init__(self, address: str) -> None:
        host, port, token = address.rsplit(":", 2)
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._socket.settimeout(None)
        self._lock = threading.Lock()
        self._end = threading.Event()
        place = find_launch(os.environ)
        self.say(
            messages.HELLO,
            token=token,
            rank=place.rank,
            host=platform.node(),
            pid=os.getpid(),
        )
        pulse.tell = self._tell
        self._thread = threading.Thread(target=self._beat, name="weft-heartbeat", daemon=True)
        self._thread.start()

    def say(self, kind: str, **said: Any) -> bool:
        """Send a message; tell whether the launcher was there to take it."""
        try:
            with self._lock:
                self._socket.sendall(messages.encode(kind, **said))
        except OSError:
            return False
        return True

    def _tell(self) -> bool:
        return self.say(messages.BEAT, **pulse.take())

    def _beat(self) -> None:
        while not self._end.wait(PERIOD):
            if not self._tell():
                self._launcher_is_gone()
                return

    def _launcher_is_gone(self) -> None:
        """End this rank: nobody is left who could end it, and others may wait for it forever."""
        if not self._end.is_set():
            print("weft: the launcher is gone; this rank ends", file=sys.stderr, flush=True)
            os._exit(1)

    def report(self, error: BaseException) -> bool:
        """Tell the launcher with which exception this rank ends."""
        text = user_traceback(error)
        self._end.set()
        return self.say(messages.ERROR, text=text[-_LONGEST_TRACEBACK:])

    def tell_end(self, status: int) -> None:
        """Say that this rank ends by itself."""
        self.say(messages.BYE, status=status, **pulse.take())

    def stop(self) -> None:
        """Beat no more. The connection stays, and ends with the process: so its end is seen."""
        self._end.set()
        self.say(messages.THROUGH)
        self._socket.detach()


def user_traceback(error: BaseException) -> str:
    """Return the traceback of an exception, from the user's first line on."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))


def _is_ours(file: str) -> bool:
    return file.startswith(os.path.dirname(__file__)) or file in (_RUNPY, "<frozen runpy>")


def start_heartbeat() -> Heartbeat | None:
    """Connect to the launcher, if one started this process."""
    address = os.environ.get(messages.ADDRESS)
    if not address:
        return None
    try:
        return Heartbeat(address)
    except (OSError, ValueError) as error:
        print(
            f"weft: cannot reach the launcher ({error}): this rank runs, but if it stops answering "
            "that will not be noticed; see --address of weft launch",
            file=sys.stderr,
        )
        return None
