"""torch.distributed: the processes that `weft launch` started, by PyTorch's names.

    weft launch -n 2 -m weft.cli run train.py

Tensors are written in place, as PyTorch does; nothing of it is differentiated. MPI carries it,
whatever backend a script names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import distributed as core
from ...core.modes import no_grad
from ...core.op import F
from ..absent import absent

__all__ = [
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]

ProcessGroup = core.ProcessGroup


class ReduceOp:
    """How the tensors of all processes become one."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "mean", "prod", "min", "max"


class group:  # noqa: N801  (PyTorch's name)
    """The group of all processes, which None stands for."""

    WORLD = None


class Work:
    """What was begun with async_op=True; the tensor is written when `wait` returns."""

    def __init__(self, finish: Callable[[], Any] | None = None) -> None:
        self._finish = finish

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the tensor holds the result."""
        finish, self._finish = self._finish, None
        if finish is not None:
            finish()
        return True

    def is_completed(self) -> bool:
        """Tell whether the tensor holds the result."""
        return self._finish is None


# -- processes -------------------------------------------------------------------------------------


def is_available() -> bool:
    """Tell whether there can be several processes."""
    return True


is_mpi_available = is_available


def is_nccl_available() -> bool:
    """Tell whether NCCL carries messages: MPI does."""
    return False


is_gloo_available = is_torchelastic_launched = is_ucc_available = is_nccl_available


def init_process_group(
    backend: Any = None,
    init_method: Any = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    **unused: Any,
) -> None:
    """Begin to work with the processes that were started together.

    >>> from weft import torch
    >>> torch.distributed.init_process_group("gloo")
    >>> torch.distributed.get_world_size()
    1
    """
    everyone = core.init()
    for name, wanted, found in (
        ("world_size", world_size, everyone.size),
        ("rank", rank, core.rank()),
    ):
        if wanted not in (-1, found):
            raise ValueError(
                f"init_process_group: {name} is {wanted}, but the launcher says {found}: start the "
                "processes with `weft launch -n N -m weft.cli run script.py`"
            )


def destroy_process_group(group: Any = None) -> None:
    """Wait for the other processes; what joins them ends with the program."""
    core.barrier(group=group)


def is_initialized() -> bool:
    """Tell whether `init_process_group` was called."""
    return core.is_initialized()


def get_backend(group: Any = None) -> str:
    """Return what carries messages."""
    return "mpi"


def get_rank(group: Any = None) -> int:
    """Return which process this is; -1 if it is no member of the group."""
    place = (core.world() if group is None else group).rank
    return -1 if place is None else place


def get_world_size(group: Any = None) -> int:
    """Return how many processes there are."""
    return core.size(group)


def new_group(ranks: Sequence[int] | None = None, *unused: Any, **also_unused: Any) -> Any:
    """Return a group of some processes; all processes must call it."""
    return core.new_group(range(core.size()) if ranks is None else ranks)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes are here."""
    core.barrier(group=group)
    return _done(async_op)


# -- tensors of all processes ----------------------------------------------------------------------


def all_reduce(
    tensor: Any, op: str = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the sum (mean, ...) of the tensors of all processes into each of them.

    >>> from weft import torch
    >>> x = torch.ones(2)
    >>> torch.distributed.all_reduce(x)
    >>> x
    tensor([1., 1.])
    """
    if async_op:
        later = core.start_all_reduce(tensor.detach(), op, group=group)
        return Work(lambda: _write(tensor, later.wait()))
    _write(tensor, core.all_reduce(tensor.detach(), op, group=group))
    return None


def reduce(
    tensor: Any,
    dst: int = 0,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the sum (mean, ...) of the tensors of all processes into that of one."""
    made = core.all_reduce(tensor.detach(), op, group=group)
    if get_rank(group) == _place(dst, group):
        _write(tensor, made)
    return _done(async_op)


def broadcast(tensor: Any, src: int = 0, group: Any = None, async_op: bool = False) -> Work | None:
    """Put the tensor of one process into those of all."""
    _write(tensor, core.broadcast(tensor.detach(), _place(src, group), group=group))
    return _done(async_op)


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes into the tensors of a list."""
    _fill("all_gather", tensor_list, core.all_gather(tensor.detach()[None], group=group), group)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Put the tensors of all processes behind each other, or stacked, into one."""
    made = core.all_gather(input_tensor.detach(), group=group)
    _write(output_tensor, made.reshape(tuple(output_tensor.shape)))
    return _done(async_op)


def gather(
    tensor: Any,
    gather_list: list[Any] | None = None,
    dst: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensors of all processes into the tensors of one process's list."""
    made = core.all_gather(tensor.detach()[None], group=group)
    if get_rank(group) == _place(dst, group):
        _fill("gather", gather_list, made, group)
    return _done(async_op)


def scatter(
    tensor: Any,
    scatter_list: list[Any] | None = None,
    src: int = 0,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put the tensors of one process's list into the tensor of each process."""
    count, place = get_world_size(group), get_rank(group)
    if place == _place(src, group):
        _check_count("scatter", scatter_list, count)
        given = F.stack([part.detach() for part in scatter_list or ()])
    else:
        given = F.stack([tensor.detach()] * count)
    _write(tensor, core.broadcast(given, _place(src, group), group=group)[place])
    return _done(async_op)


def reduce_scatter_tensor(
    output: Any,
    input: Any,
    op: str = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Put this process's part of the sum of all tensors, along the first axis, into a tensor."""
    if op not in (ReduceOp.SUM, ReduceOp.AVG):
        raise ValueError(f"reduce_scatter_tensor: op must be SUM or AVG. Received: {op!r}")
    made = core.reduce_scatter(input.detach(), group=group)
    scale = 1 if op == ReduceOp.SUM else get_world_size(group)
    _write(output, (made / scale).reshape(tuple(output.shape)))
    return _done(async_op)


def all_to_all_single(
    output: Any,
    input: Any,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Send each process a part of the first axis, and put the parts from all into a tensor."""
    if output_split_sizes is not None or input_split_sizes is not None:
        raise NotImplementedError("all_to_all_single: parts must be equal; leave the sizes out")
    _write(output, core.all_to_all(input.detach(), group=group))
    return _done(async_op)


def send(tensor: Any, dst: int, group: Any = None, tag: int = 0) -> None:
    """Send a tensor to a process, which must receive it."""
    core.send(tensor.detach(), _place(dst, group), group=group)


def recv(tensor: Any, src: int, group: Any = None, tag: int = 0) -> int:
    """Put the tensor that a process sends into one; return the process."""
    _write(tensor, core.recv(tensor.detach(), _place(src, group), group=group))
    return src


def isend(tensor: Any, dst: int, group: Any = None, tag: int = 0) -> Work:
    """Send a tensor, and return what to wait for."""
    send(tensor, dst, group, tag)
    return Work()


def irecv(tensor: Any, src: int, group: Any = None, tag: int = 0) -> Work:
    """Return what receives a tensor when it is waited for."""
    return Work(lambda: recv(tensor, src, group, tag))


# -- helpers ---------------------------------------------------------------------------------------


def _write(tensor: Any, made: Any) -> None:
    with no_grad():
        tensor.copy_(made)


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _place(rank: int, group: Any) -> int:
    """Return where a process, counted among all, stands in a group."""
    return rank if group is None else group.ranks.index(rank)


def _fill(what: str, tensors: Any, made: Any, group: Any) -> None:
    _check_count(what, tensors, get_world_size(group))
    for place, tensor in enumerate(tensors):
        _write(tensor, made[place])


def _check_count(what: str, tensors: Any, count: int) -> None:
    found = 0 if tensors is None else len(tensors)
    if found != count:
        raise ValueError(
            f"{what}: the list must have a tensor for each of {count} processes. Received: {found}"
        )


_OBJECTS = "objects do not travel; put what they hold into tensors"
__getattr__ = absent(
    globals(),
    {
        "all_gather_object": _OBJECTS,
        "broadcast_object_list": _OBJECTS,
        "gather_object": _OBJECTS,
        "scatter_object_list": _OBJECTS,
        "TCPStore": "`weft launch` joins the processes",
        "FileStore": "`weft launch` joins the processes",
        "fsdp": "use wf.distributed.shard_parameters, see docs/distributed.md",
        "rpc": "use wf.distributed, see docs/distributed.md",
    },
)
