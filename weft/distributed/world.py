"""The processes of a program: who they are, and the groups that they form."""

from __future__ import annotations

import atexit
import os
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from .environment import ALONE, LaunchedProcess, find_launch
from .errors import DistributedError
from .exchanges import Exchanges
from .mpi import connect
from .transport import AloneTransport, Transport


class ProcessGroup:
    """Some of the processes, which communicate among themselves.

    number   the same on all processes, by which programs name it
    ranks    its members, by their rank among all
    rank     which of the members this process is; None if it is none of them
    """

    def __init__(self, number: int, ranks: Sequence[int], transport: Transport | None) -> None:
        self.number = number
        self.ranks = tuple(ranks)
        self._exchanges = None if transport is None else Exchanges(transport)
        self.rank = None if transport is None else transport.rank

    @property
    def size(self) -> int:
        """Return how many processes are in it."""
        return len(self.ranks)

    @property
    def exchanges(self) -> Exchanges:
        """Return what moves arrays among the members; raise if this process is none of them."""
        if self._exchanges is None:
            raise DistributedError(
                f"this process, rank {rank()}, is no member of the group of ranks {self.ranks}"
            )
        return self._exchanges

    def __repr__(self) -> str:
        return f"<group {self.number} of ranks {self.ranks}>"


class World:
    """What is known of all processes once `init` was called."""

    def __init__(self) -> None:
        self.launch: LaunchedProcess = ALONE
        self.groups: list[ProcessGroup] = []

    def begin(self, launch: LaunchedProcess, transport: Transport) -> None:
        """Know all processes, which are the first group."""
        self.launch = launch
        self.groups = [ProcessGroup(0, range(transport.size), transport)]

    def finish(self) -> None:
        """End all threads when the process does: MPI must not be used behind its end."""
        for group in self.groups:
            if group.rank is not None:
                group.exchanges.finish()


_world = World()


def init(transport: Transport | None = None) -> ProcessGroup:
    """Begin to work with the processes that were started together; return the group of all.

    Started by mpiexec (`weft launch`), by srun, or with RANK and WORLD_SIZE set, this process is
    one of several, which need `weft[mpi]`; otherwise it is alone, and all of `wf.distributed` works
    as for one process. Doing so twice is harmless.

    transport   connections of another kind, in place of MPI's

    >>> import weft as wf
    >>> wf.distributed.init()
    <group 0 of ranks (0,)>
    """
    if not _world.groups:
        _begin(transport)
    elif transport is not None:
        raise DistributedError("init: a transport can be given to the first call only")
    return _world.groups[0]


def _begin(transport: Transport | None) -> None:
    launch = find_launch(os.environ) if transport is None else ALONE
    if transport is None:
        transport = AloneTransport() if launch.size == 1 else connect(launch)
    _world.begin(launch, transport)
    atexit.register(_world.finish)
    if launch.size > 1:
        sys.excepthook = _end_all


def _end_all(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Show an exception that nobody caught, and end the other processes, which wait for this."""
    text = "".join(traceback.format_exception(kind, error, trace))
    shown = "".join(f"[rank {rank()}] {line}\n" for line in text.splitlines())
    sys.stderr.write(shown)
    sys.stderr.flush()
    transport: Any = _world.groups[0].exchanges.transport
    transport.comm.Abort(1)


def replace_world(transport: Transport) -> ProcessGroup:
    """Let other connections be those of all processes: of the ranks that are left after a loss."""
    _world.begin(_world.launch, transport)
    return _world.groups[0]


def is_initialized() -> bool:
    """Tell whether `init` was called."""
    return bool(_world.groups)


def world() -> ProcessGroup:
    """Return the group of all processes; the first to ask begins it."""
    return _world.groups[0] if _world.groups else init()


def launch() -> LaunchedProcess:
    """Return how this process was started."""
    world()
    return _world.launch


def rank(group: ProcessGroup | None = None) -> int:
    """Return which process this is: of all, or of a group.

    >>> import weft as wf
    >>> wf.distributed.rank()
    0
    """
    place = (world() if group is None else group).rank
    if place is None:
        raise DistributedError(f"rank: this process is no member of {group!r}")
    return place


def size(group: ProcessGroup | None = None) -> int:
    """Return how many processes there are: in all, or in a group.

    >>> import weft as wf
    >>> wf.distributed.size()
    1
    """
    return (world() if group is None else group).size


def new_group(ranks: Sequence[int]) -> ProcessGroup:
    """Return a group of some processes; all processes must call it, with the same ranks.

    >>> import weft as wf
    >>> wf.distributed.new_group([0]).ranks
    (0,)
    """
    everyone = world()
    chosen = _checked_ranks(ranks, everyone.size)
    exchanges = everyone.exchanges
    exchanges.check(f"new_group({chosen})")
    made = ProcessGroup(len(_world.groups), chosen, exchanges.transport.split(chosen))
    _world.groups.append(made)
    return made


def _checked_ranks(ranks: Any, count: int) -> tuple[int, ...]:
    try:
        chosen = tuple(int(r) for r in ranks)
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            f"new_group: ranks must be a sequence of integers. Received: {ranks!r:.60}"
        ) from None
    if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= r < count for r in chosen):
        raise ArgumentError(
            f"new_group: ranks must be different numbers from 0 to {count - 1}. Received: {chosen}"
        )
    return chosen


def group_numbered(number: int) -> ProcessGroup:
    """Return a group by its number, as nodes of a graph have it."""
    world()
    if not 0 <= number < len(_world.groups):
        raise DistributedError(
            f"a program communicates in group {number}, and this process has made "
            f"{len(_world.groups)}: call new_group as the process did that wrote the program"
        )
    return _world.groups[number]


def process_place() -> tuple[int, int]:
    """Return which process this is, of how many."""
    everyone = world()
    assert everyone.rank is not None
    return everyone.rank, everyone.size


def agreed_object(item: Any) -> Any:
    """Return what process 0 has, on all processes."""
    exchanges = world().exchanges
    return exchanges.run(lambda: exchanges.transport.objects(item))[0]
