"""What the launcher knows of every rank: who has come, who is lost, silent or slow.

A rank is lost when its connection ends before it has said goodbye: the kernel closes it at once
when a process is killed. A rank is silent when its connection stands and nothing is heard, as of a
process that was stopped or a host that lost its network.
"""

from __future__ import annotations

import hmac
import secrets
import selectors
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from . import messages

SILENT_AFTER: Final = 3.0  # seconds, six beats
_STRAGGLES: Final = 1.5  # times the median of what ranks compute between exchanges
_SEEN: Final = 5  # before anyone is called slow
_RUNS: Final = ("R", "S", "D")  # states of processes, as Linux tells them
_STOPPED: Final = ("T", "t")
_STATES: Final = {
    "T": "its process is stopped (SIGSTOP)",
    "t": "a debugger holds its process",
    "Z": "its process has ended",
    **dict.fromkeys(_RUNS, "its process runs: something in it may hold Python's lock"),
}


class Notice(NamedTuple):
    """Something that happened to a rank: "lost", "silent", "back", "error" or "slow"."""

    kind: str
    rank: int
    text: str


@dataclass
class RankState:
    """What is known of a rank."""

    rank: int
    host: str
    pid: int
    heard: float
    count: int = 0  # of exchanges with others
    phase: str = ""
    busy: float = 0.0
    first: tuple[int, float] | None = None  # count and busy time when it was first seen to work
    joined: bool = False  # whether MPI has connected it with the others
    status: int | None = None  # with which it ended by itself
    ended: bool = False
    through: bool = False  # it says nothing more
    lost: bool = False
    gone: bool = False  # whether its process has ended
    silent: bool = False
    slow: bool = False

    @property
    def name(self) -> str:
        """Return who it is, for people."""
        return f"rank {self.rank} (process {self.pid} on {self.host})"

    @property
    def doing(self) -> str:
        """Return what it was doing when last heard of."""
        return f"after {self.count} exchanges" + (
            f", waiting in {self.phase}" if self.phase else ""
        )

    def seconds_each(self) -> float | None:
        """Return how long it computes from one exchange to the next, not counting its waits."""
        if self.first is None or self.count - self.first[0] < _SEEN:
            return None
        return (self.busy - self.first[1]) / (self.count - self.first[0])


class Watcher:
    """Listen to ranks, and tell what happens to them."""

    def __init__(self, selector: selectors.BaseSelector, *, everywhere: bool = False) -> None:
        self.token = secrets.token_hex(16)
        self.states: dict[int, RankState] = {}
        self.notices: list[Notice] = []
        self._selector = selector
        self._checked = time.monotonic()
        self._listener = socket.create_server(("" if everywhere else "127.0.0.1", 0), backlog=1024)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def address(self, host: str) -> str:
        """Return what ranks need to connect."""
        return f"{host}:{self.port}:{self.token}"

    def take(self) -> list[Notice]:
        """Return what happened since it was asked last."""
        self._check_silence()
        self._check_speed()
        taken, self.notices = self.notices, []
        return taken

    def close(self) -> None:
        """Stop listening."""
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                self._selector.unregister(key.fileobj)
                key.fileobj.close()

    # -- connections -------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # it went away in between
            return
        connection.setblocking(False)
        link = _Link(self, connection)
        self._selector.register(connection, selectors.EVENT_READ, link.read)

    def drop(self, connection: socket.socket, rank: int | None) -> None:
        """Forget a connection; whoever has not said goodbye is lost."""
        self._selector.unregister(connection)
        connection.close()
        state = None if rank is None else self.states.get(rank)
        if state is None:
            return
        state.gone = True
        if not state.ended:
            state.lost = True
            self._tell("lost", state, f"{state.name} was lost {state.doing}")

    def greet(self, said: dict[str, Any]) -> int | None:
        """Take a rank in if it knows the token; return its number."""
        if not hmac.compare_digest(str(said.get("token", "")), self.token):
            return None
        rank, pid = said.get("rank"), said.get("pid")
        if not isinstance(rank, int) or not isinstance(pid, int):
            return None
        host = str(said.get("host"))[:100]
        self.states[rank] = RankState(rank, host, pid, time.monotonic())
        return rank

    def hear(self, rank: int, said: dict[str, Any]) -> None:
        """Take a message of a rank."""
        state = self.states[rank]
        state.heard = time.monotonic()
        if state.silent:
            state.silent = False
            self._tell("back", state, f"{state.name} answers again")
        kind = said["kind"]
        if kind == messages.ERROR:
            state.ended = state.through = True  # it will go, and that is no second event
            self._tell("error", state, str(said.get("text", "")))
        elif kind == messages.THROUGH:
            state.through = True
        elif kind in (messages.BEAT, messages.BYE):
            self._note_progress(state, said)
            if kind == messages.BYE:
                state.ended, state.status = True, int(said.get("status") or 0)

    def _note_progress(self, state: RankState, said: dict[str, Any]) -> None:
        count, busy = said.get("count"), said.get("busy")
        if isinstance(count, int) and isinstance(busy, int | float):
            if count and state.first is None:
                state.first = count, busy
            state.count, state.busy = count, busy
        state.phase = str(said.get("phase", ""))[:100]
        state.joined = state.joined or said.get("joined") is True

    # -- silence and speed -------------------------------------------------------------------------

    def _check_silence(self) -> None:
        now = time.monotonic()
        if now - self._checked > SILENT_AFTER / 2:  # it was the launcher that did not run
            for state in self.states.values():
                state.heard = now
        self._checked = now
        for state in self.states.values():
            quiet = now - state.heard
            if quiet > SILENT_AFTER and not (state.lost or state.silent or _may_be_quiet(state)):
                state.silent = True
                text = f"{state.name} has not answered for {quiet:.0f} s, {state.doing}"
                self._tell("silent", state, text + _process_state(state))

    def silent_for(self, seconds: float) -> list[RankState]:
        """Return the ranks of which nothing was heard for so long.

        A process of this host that is seen to run is none of them: something in it holds Python's
        lock, and may let it go.
        """
        now = time.monotonic()
        quiet = [s for s in self.states.values() if s.silent and now - s.heard > seconds]
        return [s for s in quiet if process_letter(s) not in _RUNS]

    def _check_speed(self) -> None:
        there = [s for s in self.states.values() if not (s.ended or s.lost)]
        times = {s.rank: t for s in there if (t := s.seconds_each()) is not None}
        if len(times) < 2:
            return
        for rank, took in times.items():
            usual = median(t for other, t in times.items() if other != rank)
            state = self.states[rank]
            if took > _STRAGGLES * usual and not state.slow:
                state.slow = True
                text = f"computes {took:.3g} s between exchanges, others {usual:.3g} s"
                self._tell("slow", state, f"{state.name} is slow: it {text}")

    def _tell(self, kind: str, state: RankState, text: str) -> None:
        self.notices.append(Notice(kind, state.rank, text))


class _Link:
    """One connection, before and after it is known whose it is."""

    def __init__(self, watcher: Watcher, connection: socket.socket) -> None:
        self._watcher = watcher
        self._connection = connection
        self._lines = messages.LineBuffer()
        self._rank: int | None = None

    def read(self) -> None:
        try:
            data = self._connection.recv(65536)
            lines = self._lines.feed(data) if data else None
        except BlockingIOError:
            return
        except (OSError, ValueError):
            lines = None
        if lines is None:
            self._watcher.drop(self._connection, self._rank)
            return
        for line in lines:
            if not self._take(line):
                self._watcher.drop(self._connection, self._rank)
                return

    def _take(self, line: bytes) -> bool:
        said = messages.decode(line)
        if said is None:
            return False
        if self._rank is None:
            self._rank = self._watcher.greet(said) if said["kind"] == messages.HELLO else None
            return self._rank is not None
        self._watcher.hear(self._rank, said)
        return True


def _may_be_quiet(state: RankState) -> bool:
    """Tell whether a rank has said all, and is not seen to be stopped: others wait for its end."""
    return state.gone or (state.through and process_letter(state) not in _STOPPED)


def _process_state(state: RankState) -> str:
    """Return why a process of this host is silent, where that can be seen."""
    letter = process_letter(state)
    return f"; {_STATES[letter]}" if letter in _STATES else ""


def process_letter(state: RankState) -> str | None:
    """Return the state of a rank's process as Linux tells it, if it is on this host."""
    if state.host != socket.gethostname():
        return None
    try:
        text = Path(f"/proc/{state.pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[0]
