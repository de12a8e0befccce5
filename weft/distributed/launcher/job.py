"""One attempt: start mpiexec, follow its ranks, and find out how it ended."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .output import Terminal, log_path, tail
from .watcher import Notice, RankState, Watcher, process_letter

_TICK: Final = 0.1
_GRACE: Final = 3.0  # seconds from a loss to the end of mpiexec, before it is ended by force
_PARTING: Final = 6.0  # the same when all scripts are through, for what ranks do at their end


@dataclass
class Ending:
    """How an attempt ended.

    status    0 if all went well; else what the launcher shall return
    lost      ranks that died or stopped answering, with what is known of each
    error     the traceback of the first rank that failed by an exception, and its rank
    early     whether a rank was lost before MPI had connected all of them
    """

    status: int
    lost: dict[int, str] = field(default_factory=dict)
    error: tuple[int, str] | None = None
    early: bool = False
    chosen: bool = False  # whether a rank ended by itself with a status that is no success
    said: str = ""  # by mpiexec

    @property
    def restartable(self) -> bool:
        """Whether starting again may help: what a program does by itself would come again."""
        return self.status != 0 and self.error is None and not self.chosen


class RankJob:
    """A running mpiexec with its ranks.

    ranks      how many there are
    survive    whether the job goes on when a rank is lost (ULFM)
    silence    seconds after which a rank that does not answer counts as lost
    """

    def __init__(
        self,
        logs: Path,
        ranks: int,
        *,
        survive: bool,
        silence: float,
        everywhere: bool,
        note: Callable[[str], None],
    ) -> None:
        self._selector = selectors.DefaultSelector()
        self.watcher = Watcher(self._selector, everywhere=everywhere)
        self._terminal = Terminal(self._selector, logs)
        self._logs, self._ranks = logs, ranks
        self._survive = survive
        self._silence = silence
        self._note = note
        self._ending = Ending(0)
        self._end_by: float | None = None

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> Ending:
        """Run a command to its end, with these variables besides those of this process."""
        process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is the launcher's, which ends all
        )
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            self._terminal.follow(process.stdout, sys.stdout)
            self._terminal.follow(process.stderr, sys.stderr)
            self._follow(process)
        finally:
            self._end(process)
            self._close(process)
        return self._conclude(process.returncode)

    # -- while it runs -----------------------------------------------------------------------------

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        while process.poll() is None:
            self._turn()
            if self._end_by is not None and time.monotonic() > self._end_by:
                return
        self._drain()

    def _turn(self) -> None:
        for key, _ in self._selector.select(_TICK):
            key.data()
        for notice in self.watcher.take():
            self._react(notice)
        for state in self.watcher.silent_for(self._silence):
            self._give_up(state)
        if self._wait_in_vain():
            self._end_soon(_PARTING)
        elif self._chosen():
            self._end_soon()

    def _react(self, notice: Notice) -> None:
        if notice.kind == "error":
            if self._ending.error is None and not self._ending.early:  # else a consequence
                self._ending.error = notice.rank, notice.text
            self._end_soon()
        elif notice.kind == "lost":
            self._lose(notice.rank, notice.text)
        else:
            self._note(notice.text)

    def _lose(self, rank: int, text: str) -> None:
        ending = self._ending
        ends = self._end_by is not None and (not self._survive or ending.early)
        if ending.error is not None or ends:
            return  # it is a consequence
        ending.lost.setdefault(rank, text)
        ending.early = self._survive and not self._others_have_joined(rank)
        goes_on = self._survive and not ending.early
        if goes_on:
            text += "; the others go on"
        elif ending.early:  # nobody can leave MPI's start without the others
            text += ", before all ranks were connected: all end"
        self._note(text)
        if not goes_on:
            self._end_soon()

    def _others_have_joined(self, rank: int) -> bool:
        """Tell whether MPI has connected all ranks, as far as those but one have told."""
        others = [state for state in self.watcher.states.values() if state.rank != rank]
        told = sum(state.joined or state.lost for state in others)
        return told >= self._ranks - 1

    def _give_up(self, state: RankState) -> None:
        """End a rank that does not answer, so that nobody waits for it any longer."""
        text = f"{state.name} has not answered for {self._silence:.0f} s and counts as lost"
        state.lost, state.silent = True, False
        _kill(state)
        self._lose(state.rank, text)

    def _end_soon(self, seconds: float = _GRACE) -> None:
        """Let mpiexec end by itself, as it does when a rank fails; but not for long."""
        if self._end_by is None:
            self._end_by = time.monotonic() + seconds

    # -- at the end --------------------------------------------------------------------------------

    def _drain(self) -> None:
        """Read what is left in the pipes."""
        for _ in range(20):
            ready = self._selector.select(0)
            if not ready:
                break
            for key, _ in ready:
                key.data()
        for notice in self.watcher.take():
            self._react(notice)

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End mpiexec and, by it, all ranks; those on this host that stay are killed."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.poll() is not None:
                break
            os.killpg(process.pid, number)  # mpiexec may be a script that started the real one
            _wait(process, 2.0, self._selector)
        for state in self.watcher.states.values():
            if not state.ended or state.rank in self._ending.lost:
                _kill(state)

    def _close(self, process: subprocess.Popen[bytes]) -> None:
        self._drain()
        self.watcher.close()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
        self._terminal.close()
        self._selector.close()

    def _conclude(self, status: int | None) -> Ending:
        ending = self._ending
        ending.said = b"".join(self._terminal.said).decode(errors="replace")
        chosen = self._chosen()
        ending.chosen = chosen != 0
        if ending.error is not None:
            ending.status = 1
        elif chosen:
            ending.status = chosen
        elif self._survive and self._anyone_finished():
            ending.status = 0
        else:
            ending.status = status if status is not None and status >= 0 else 1
            if ending.lost and ending.status == 0:
                ending.status = 1
        return ending

    def _chosen(self) -> int:
        """Return the status, if not 0, with which a rank has ended by itself."""
        return next((s.status for s in self.watcher.states.values() if s.status), 0)

    def _wait_in_vain(self) -> bool:
        """Tell whether all are through, and some wait, inside MPI's end, for those that are gone.

        One that is killed after it has said goodbye is not lost, and missed all the same.
        """
        states = self.watcher.states.values()
        missed = self._ending.lost or (self._survive and any(s.gone for s in states))
        return bool(missed) and self._anyone_finished()

    def _anyone_finished(self) -> bool:
        """Tell whether all are gone, and one of them by itself: not by an error, which ends too."""
        states = self.watcher.states.values()
        return any(s.status == 0 for s in states) and all(s.ended or s.lost for s in states)

    def last_words(self, rank: int) -> str:
        """Return the end of a rank's log, if it is on this host."""
        return tail(log_path(self._logs, rank))


def _wait(
    process: subprocess.Popen[bytes], seconds: float, selector: selectors.BaseSelector
) -> None:
    """Wait for a process while its pipes are read, lest it wait for a reader."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        for key, _ in selector.select(_TICK):
            key.data()


def _kill(state: RankState) -> None:
    """Kill a rank's process on this host, unless it has ended and its number may be another's."""
    if state.host != socket.gethostname() or process_letter(state) in (None, "Z"):
        return
    if not _is_a_rank(state.pid):
        return
    try:
        os.kill(state.pid, signal.SIGKILL)
    except OSError:
        return


def _is_a_rank(pid: int) -> bool:
    try:
        return b"weft.distributed" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
