"""Operations on the tensors of all processes of a group.

All processes of the group must call them, in the same order, on tensors of the same shape and
dtype; if they do not, each is told what the others did. They are operators: gradients pass them,
and in a graph, a jitted function or a compiled step they are nodes. Gradients are those of the sum
of the losses of all processes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import current_tracer, modes, refuse_recording
from ..core.tensor import Tensor, wrap
from ..ops.collective.exchange import REDUCTIONS, exchanged
from .exchanges import ExchangeSignature, take
from .lockstep import current_shard
from .world import ProcessGroup, world


def all_reduce(x: Tensor, op: str = "sum", *, group: ProcessGroup | None = None) -> Tensor:
    """Return the sum of the tensors of all processes, or what else `op` says.

    op   "sum", "mean", "max", "min", "prod", or "pairwise": a sum whose bits do not depend on how
         the processes are connected, added as a balanced tree

    >>> import weft as wf
    >>> wf.distributed.all_reduce(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if op not in REDUCTIONS:
        raise ArgumentError(f"all_reduce: op must be one of {REDUCTIONS}. Received: {op!r}")
    return _exchange("all_reduce", x, op, group)


def broadcast(x: Tensor, source: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of one process, by its rank in the group, on all of them.

    >>> import weft as wf
    >>> wf.distributed.broadcast(wf.tensor([1.0, 2.0]), source=0)
    tensor([1., 2.])
    """
    return _exchange("broadcast", x, "broadcast", group, place=source)


def reduce(x: Tensor, target: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the sum of the tensors of all processes on one of them, zeros on the others.

    >>> import weft as wf
    >>> wf.distributed.reduce(wf.tensor([1.0, 2.0]), target=0)
    tensor([1., 2.])
    """
    return _exchange("reduce", x, "reduce", group, place=target)


def all_gather(x: Tensor, axis: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensors of all processes one after another along an axis.

    >>> import weft as wf
    >>> wf.distributed.all_gather(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _exchange("all_gather", x, "gather", group, axis=axis)


def reduce_scatter(x: Tensor, axis: int = 0, *, group: ProcessGroup | None = None) -> Tensor:
    """Return this process's part, along an axis, of the sum of the tensors of all processes.

    >>> import weft as wf
    >>> wf.distributed.reduce_scatter(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _exchange("reduce_scatter", x, "scatter", group, axis=axis)


def all_to_all(
    x: Tensor, axis: int = 0, join: int = 0, *, group: ProcessGroup | None = None
) -> Tensor:
    """Return part `rank` along an axis of the tensors of all processes, joined along another.

    >>> import weft as wf
    >>> wf.distributed.all_to_all(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _exchange("all_to_all", x, "all_to_all", group, axis=axis, place=join)


def shift(x: Tensor, by: int = 1, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor of the process `by` places before this one, in a ring.

    >>> import weft as wf
    >>> wf.distributed.shift(wf.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    return _exchange("shift", x, "shift", group, place=by)


def send(x: Tensor, target: int, *, group: ProcessGroup | None = None) -> Tensor:
    """Send a tensor to another process, without waiting for it; return a receipt, which is zero.

    Who adds the receipt to a loss gets the gradient of x back from there.

    >>> import weft as wf
    >>> receipt = wf.distributed.send(wf.tensor([1.0, 2.0]), 0)
    >>> wf.distributed.recv(wf.zeros(2), 0)
    tensor([1., 2.])
    """
    return _exchange("send", x, "send", group, place=target)


def recv(like: Tensor, source: int, *, group: ProcessGroup | None = None) -> Tensor:
    """Return the tensor that another process sent here, of the shape and dtype of `like`.

    If `like` requires gradients, the gradient of the result goes back to who sent it.

    >>> import weft as wf
    >>> receipt = wf.distributed.send(wf.tensor([3.0]), 0)
    >>> wf.distributed.recv(wf.zeros(1), 0)
    tensor([3.])
    """
    return _exchange("recv", like, "receive", group, place=source)


def _exchange(
    what: str, x: Any, how: str, group: ProcessGroup | None, axis: int = 0, place: int = 0
) -> Tensor:
    group = world() if group is None else _checked_group(what, group)
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(f"{what}: x must be a tensor. Received: {type(x).__name__}")
    if modes.interpreters and (tracer := current_tracer()) is not None:
        _keep_out_of_shards(tracer)
    made: Tensor = exchanged(x, how, group.number, group.size, axis, place)
    return made


def _keep_out_of_shards(tracer: Any) -> None:
    """Let no program with exchanges run in a virtual shard: the others would wait for it to end."""
    if current_shard() is not None:
        refuse_recording("virtual shards meet in an exchange, where each waits for the others")
    tracer.observe((id(_in_shard), "shards"), _in_shard)


def _in_shard() -> bool:
    return current_shard() is not None


def _checked_group(what: str, group: Any) -> ProcessGroup:
    if not isinstance(group, ProcessGroup):
        raise ArgumentTypeError(
            f"{what}: group must be made by wf.distributed.new_group. Received: {group!r:.60}"
        )
    group.exchanges  # noqa: B018  (raises if this process is no member)
    return group


# -- waiting ---------------------------------------------------------------------------------------


def barrier(*, group: ProcessGroup | None = None) -> None:
    """Wait until all processes of a group are here.

    >>> import weft as wf
    >>> wf.distributed.barrier()
    """
    (world() if group is None else _checked_group("barrier", group)).exchanges.check("barrier")


class Later:
    """The result of an exchange that goes on while the program does something else."""

    def __init__(self, wait: Callable[[], Any]) -> None:
        self._wait = wait

    def wait(self) -> Tensor:
        """Return the result when it is there."""
        return wrap(self._wait())


def start_all_reduce(x: Tensor, op: str = "sum", *, group: ProcessGroup | None = None) -> Later:
    """Begin `all_reduce` on a copy of a tensor and return at once; the result has no gradient.

    >>> import weft as wf
    >>> later = wf.distributed.start_all_reduce(wf.tensor([1.0, 2.0]))
    >>> later.wait()
    tensor([1., 2.])
    """
    if op not in REDUCTIONS:
        raise ArgumentError(f"start_all_reduce: op must be one of {REDUCTIONS}. Received: {op!r}")
    group = world() if group is None else _checked_group("start_all_reduce", group)
    own = np.array(x.numpy(), order="C")
    return Later(take(group.exchanges.start(own, ExchangeSignature.of(own, op)).ticket).wait)
