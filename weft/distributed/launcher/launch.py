"""`weft launch`: run a script in many processes, watch them, and start them again if one is lost.

It is thin: mpiexec starts the ranks and MPI connects them. What is added is what mpiexec does not
tell or do: which rank failed and how, that a rank stopped answering, logs, and restarts.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

from ...core.errors import ArgumentError
from ...core.threads import usable_processors
from . import messages
from .job import Ending, RankJob
from .mpiexec import MpiFlavour, Placement, command_line, find_mpiexec, flavour_of, place
from .output import tail

_SIZE: Final = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?)i?B?", re.IGNORECASE)
_EARLY_RESTARTS: Final = 3  # after a loss that --survive cannot survive: before MPI has begun
_UNITS: Final = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


@dataclass(frozen=True)
class LaunchOptions:
    """How a script is run in many processes.

    ranks          how many there are
    hosts          where: `a,b`, or `a:4,b:4` with how many on each; None: on this host
    threads        of each rank; None: the host's processors, divided
    memory         that the ranks of a host may have together, as "8G"; None: no limit
    max_restarts   how often to start again after a rank was lost
    survive        let the others go on when a rank is lost, instead of ending all
    silence        seconds without a sign of life after which a rank counts as lost
    logs           the folder of logs, one of each rank
    address        of this host as other hosts know it; None: found out
    agent          what starts a process on another host, instead of ssh
    mpi            more options for mpiexec
    """

    ranks: int
    hosts: str | None = None
    threads: int | None = None
    memory: str | None = None
    max_restarts: int = 0
    survive: bool = False
    silence: float = 10.0
    logs: str | None = None
    address: str | None = None
    agent: str | None = None
    mpi: Sequence[str] = field(default_factory=tuple)

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ArgumentError(f"threads must be at least 1. Received: {self.threads}")
        if self.max_restarts < 0:
            raise ArgumentError(f"max_restarts must not be negative. Received: {self.max_restarts}")
        if not self.silence >= 4:
            raise ArgumentError(
                f"silence must be at least 4 seconds, which is eight heartbeats. Received: "
                f"{self.silence}"
            )


def launch(arguments: Sequence[str], options: LaunchOptions) -> int:
    """Run a script with its arguments (or `-m module ...`) in many ranks; return the exit status.

    An exception on a rank ends all of them, with its traceback and rank shown once. A rank that is
    lost ends all too, and with `max_restarts` they are started again; the script goes on from its
    last checkpoint, e.g. by `trainer.run(resume="auto")`.
    """
    _check_script(arguments)
    return _Launch(arguments, options).run()


def restarts() -> int:
    """Return how often `weft launch` has started this job again.

    >>> restarts()
    0
    """
    return int(os.environ.get(messages.ATTEMPT, "0"))


class _Launch:
    """A script with its options, over all attempts."""

    def __init__(self, arguments: Sequence[str], options: LaunchOptions) -> None:
        self.arguments = list(arguments)
        self.options = options
        self.placement: Placement = place(options.ranks, options.hosts)
        self.mpiexec = find_mpiexec()
        self.flavour: MpiFlavour = flavour_of(self.mpiexec)
        self.logs = _log_folder(options.logs, arguments)

    def run(self) -> int:
        self._announce()
        ending = self._attempt(0)
        left, early = self.options.max_restarts, _EARLY_RESTARTS
        for attempt in count(1):
            if ending.restartable and ending.early and early:
                early -= 1
                note("starting again: nothing was computed yet")
            elif ending.restartable and left:
                left -= 1
                note(f"starting again from the last checkpoint; {left} more restarts are allowed")
            else:
                break
            ending = self._attempt(attempt)
        if ending.status:
            self._report(ending)
        return ending.status

    def _attempt(self, attempt: int) -> Ending:
        job = RankJob(
            self.logs,
            self.placement.ranks,
            survive=self.options.survive,
            silence=self.options.silence,
            everywhere=bool(self.placement.hosts),
            note=note,
        )
        environment = self._environment(job, attempt)
        command = command_line(
            self.mpiexec,
            self.flavour,
            self.placement,
            environment,
            survive=self.options.survive,
            agent=self.options.agent,
            extra=self.options.mpi,
        )
        worker = [sys.executable, "-m", "weft.distributed.launcher.worker"]
        return job.run([*command, *worker, *self.arguments], environment)

    def _environment(self, job: RankJob, attempt: int) -> dict[str, str]:
        given = {
            messages.ADDRESS: job.watcher.address(self._own_address()),
            messages.ATTEMPT: str(attempt),
            messages.LOGS: str(self.logs),
        }
        if self.options.threads is not None:
            given[messages.THREADS] = str(self.options.threads)
        if self.options.memory is not None:
            given[messages.MEMORY] = str(parse_size(self.options.memory))
        for name in ("PYTHONPATH", "WEFT_CACHE_DIR", "WEFT_CACHE_KEY"):
            if name in os.environ:
                given[name] = os.environ[name]
        return given

    def _own_address(self) -> str:
        if self.options.address is not None:
            return self.options.address
        return socket.gethostname() if self.placement.hosts else "127.0.0.1"

    def _announce(self) -> None:
        if os.geteuid() == 0:
            note("running as root: mpiexec is told to allow it; a user of its own is safer")
        here = usable_processors()
        most = self.placement.most_on_a_host
        if not self.placement.hosts and most > here:
            note(f"{most} ranks share {here} processors: they run, but take turns")

    def _report(self, ending: Ending) -> None:
        if ending.error is not None:
            rank, text = ending.error
            print(f"weft: rank {rank} failed:\n{text.rstrip()}", file=sys.stderr)
        elif not ending.lost and not ending.chosen:
            said = "\n".join(line for line in ending.said.splitlines() if line.strip())
            print(f"weft: mpiexec ended with status {ending.status}\n{said}", file=sys.stderr)
        for rank in ending.lost:
            words = tail(self.logs / f"rank-{rank}.log")
            if words:
                print(f"weft: the last lines of rank {rank}:\n{words}", file=sys.stderr)
        note(f"logs of all ranks: {self.logs}")


def note(text: str) -> None:
    """Tell the user something about the job."""
    print(f"weft launch: {text}", file=sys.stderr, flush=True)


def parse_size(text: str) -> int:
    """Return a number of bytes that was written for people.

    >>> parse_size("1.5G")
    1610612736
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ArgumentError(f"a size is a number with K, M, G or T, as 8G. Received: {text!r}")
    return int(float(match["number"]) * _UNITS[match["unit"].upper()])


def _check_script(arguments: Sequence[str]) -> None:
    if not arguments or (arguments[0] == "-m" and len(arguments) < 2):
        raise ArgumentError("launch takes a Python script, or -m and the name of a module")
    if arguments[0] != "-m" and not Path(arguments[0]).is_file():
        raise ArgumentError(f"launch takes a Python script. There is no file {arguments[0]}")


def _log_folder(asked: str | None, arguments: Sequence[str]) -> Path:
    """Return the folder of logs, new unless the user named it."""
    if asked is not None:
        folder = Path(asked)
    else:
        stem = Path(arguments[1] if arguments[0] == "-m" else arguments[0]).stem
        taken = [int(m[1]) for entry in _entries(Path("logs")) if (m := _numbered(stem, entry))]
        folder = Path("logs") / f"{stem}-{max(taken, default=0) + 1:03d}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def _entries(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()] if folder.is_dir() else []


def _numbered(stem: str, name: str) -> re.Match[str] | None:
    return re.fullmatch(re.escape(stem) + r"-(\d{3,})", name)
