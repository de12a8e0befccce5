"""Lost ranks: notice that one is gone, and go on with the rest.

With MPI's fault tolerance (ULFM: `weft launch --survive`, Open MPI from 5.0 on) an operation that
needs a dead rank fails on the others instead of ending them. They then form a smaller group, agree
on the newest state that any of them has, and go on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ..io.encode import decode_state, encode_state
from .errors import DistributedError
from .launcher.heartbeat import pulse
from .mpi import MPITransport
from .together import broadcast_arrays, everyone
from .world import ProcessGroup, replace_world, world

_Found = TypeVar("_Found")


class LostRankError(DistributedError):
    """A rank that others need is gone."""


class Stateful(Protocol):
    """Whatever has a state: a model, an optimizer, a trainer."""

    def state_dict(self) -> Any:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Take a state over."""


class HasGroup(Protocol):
    """Who works with a group, which may become smaller."""

    group: ProcessGroup


def is_loss(error: BaseException) -> bool:
    """Tell whether an error says that a rank is gone, or that another rank has found that out."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, LostRankError) or _class_of(seen) in _lost_classes():
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def shrink() -> ProcessGroup:
    """Form a group of the ranks that are left, which becomes that of all; return it.

    All of them must call it, after an operation has failed on any. Ranks are numbered anew.
    """
    before = world()
    transport = before.exchanges.transport
    if not isinstance(transport, MPITransport):
        raise LostRankError("shrink: this process is alone, there is nobody to be lost")
    comm = transport.comm
    try:
        comm.Revoke()  # so that those who do not know yet find out
        left = comm.Shrink()
    except (AttributeError, NotImplementedError, transport.library.Exception) as error:
        raise LostRankError(
            f"shrink: this MPI cannot go on without a rank ({error}); start the ranks with "
            "`weft launch --survive`, or have them started again with --max-restarts"
        ) from error
    return replace_world(MPITransport(transport.library, left))


def survivors(work: Callable[[ProcessGroup], _Found], holder: HasGroup) -> _Found:
    """Return what a function of a group returns; if a rank is lost, of the group of the rest."""
    while True:
        found, well = _tried(lambda: work(holder.group))
        result: _Found = found
        if all_well(well):
            return result
        holder.group = shrink()


def _tried(act: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what a function returns, and whether no rank was lost meanwhile."""
    try:
        return act(), True
    except Exception as error:
        if not is_loss(error):
            raise
        return None, False


def all_well(well: bool) -> bool:
    """Tell whether all ranks came here without a loss: the same answer to all of them.

    Whether an operation fails differs from rank to rank, when another dies meanwhile; one that has
    succeeded must not go on while the others form a smaller group.
    """
    transport = world().exchanges.transport
    if not isinstance(transport, MPITransport) or transport.size == 1:
        return well
    comm = transport.comm
    if not well:
        comm.Revoke()  # so that those who wait find out
    try:
        return bool(comm.Agree(int(well)))
    except (AttributeError, NotImplementedError):  # an MPI without it ends all ranks anyway
        return well
    except transport.library.Exception as error:
        return well and not is_loss(error)


def run_resilient(
    step: Callable[[int], Any], steps: int, *, state: Sequence[Stateful], start: int = 0
) -> int:
    """Call `step(i)` for each i up to `steps`; when a rank is lost, go on with the rest.

    state   what the steps change: a model and its optimizer. The ranks that are left take over the
            newest state that one of them has

    Return how many ranks were lost. The step itself divides data by `rank()` and `size()`, which
    change then.

    >>> done = []
    >>> run_resilient(done.append, 3, state=[])
    0
    >>> done
    [0, 1, 2]
    """
    began = world().size
    i = start

    def take_steps() -> None:
        nonlocal i
        while i < steps:
            step(i)
            i += 1
            pulse.count += 1

    while not all_well(_tried(take_steps)[1]):
        i = _agree(shrink(), i, state)
    return began - world().size


def _agree(group: ProcessGroup, step: int, state: Sequence[Stateful]) -> int:
    """Have all ranks of a group take over the state of the one that is furthest."""
    while True:
        try:
            reached: list[int] = everyone(group, step)
            newest = reached.index(max(reached))
            if min(reached) != max(reached):
                _take_over(group, newest, state)
            return max(reached)
        except Exception as error:
            if not is_loss(error):
                raise
            group = shrink()  # one more


def _take_over(group: ProcessGroup, newest: int, state: Sequence[Stateful]) -> None:
    mine = group.rank == newest
    tree, arrays = encode_state([one.state_dict() for one in state]) if mine else (None, None)
    tree = everyone(group, tree)[newest]
    received = broadcast_arrays(group, arrays, newest)
    if not mine:
        for one, taken in zip(state, decode_state(tree, received), strict=True):
            one.load_state_dict(taken)


def _class_of(error: BaseException) -> int | None:
    ask = getattr(error, "Get_error_class", None)
    return int(ask()) if ask is not None else None


def _lost_classes() -> tuple[int, ...]:
    transport = world().exchanges.transport
    if not isinstance(transport, MPITransport):
        return ()
    library = transport.library
    names = ("ERR_PROC_FAILED", "ERR_PROC_FAILED_PENDING", "ERR_REVOKED")
    return tuple(getattr(library, name) for name in names if hasattr(library, name))
