"""Data parallel training: each process computes its rows of the global batch.

The global batch decides the result: the mean of the gradients of all processes is the gradient of
the mean loss over all rows, and random numbers are those that one process would draw for them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..autodiff.exchangers import exchangers
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.rng import default_generator
from ..core.tensor import Tensor
from ..nn import Module
from ..nn.version import count_change
from ..optim import Optimizer
from .asynchronous.local import LocalUpdates
from .asynchronous.training import AsyncOptimizer
from .averaging import GradientAverager
from .batch_norm import synchronize_batch_norm
from .compression import Plain, as_travel
from .exchanges import ExchangeSignature
from .placing import place_draws
from .sharded import is_shard, shard_parameters
from .shards import ShardedBatch
from .world import ProcessGroup, world


class Parallel:
    """What makes a model or an optimizer train on several processes; see `parallel`.

    group      the processes
    averager   what exchanges gradients
    """

    def __init__(
        self,
        named: list[tuple[str, Tensor]],
        group: ProcessGroup,
        averager: GradientAverager,
        shards: int | None,
    ) -> None:
        self.group, self.averager = group, averager
        self.shards = None if shards is None else ShardedBatch(averager, group, shards)
        self._named = named
        exchangers[averager] = None
        group.exchanges.differing += averager.unused
        count_change()  # what was recorded before knows nothing of this

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Let gradients stay those of this process, to be added up and exchanged later.

        The first backward outside exchanges all that was accumulated.
        """
        before, self.averager.is_on = self.averager.is_on, False
        try:
            yield
        finally:
            self.averager.is_on = before

    def backward(self, loss: Any, *batch: Any) -> Tensor:
        """Compute `loss(*rows)` of the virtual shards of this process's rows, and its gradients.

        Returns the mean loss of the global batch. For `shards=S`: the results are the same bits on
        any number of processes that divides S.
        """
        if self.shards is None:
            raise ArgumentError("backward: say parallel(..., shards=S) to compute by shards")
        return self.shards.backward(loss, *batch)

    def close(self) -> None:
        """Exchange gradients no more."""
        if self.averager in exchangers:
            del exchangers[self.averager]
            self.group.exchanges.differing -= self.averager.unused
            count_change()

    def __repr__(self) -> str:
        count = sum(p.numel() for _, p in self._named)
        return (
            f"<parallel on {self.group.size} processes: {count:,} parameters in "
            f"{len(self.averager.buckets)} buckets>"
        )


def parallel(
    target: Any,
    *,
    mode: str = "sync",
    group: ProcessGroup | None = None,
    bucket_mib: float = 25.0,
    first_bucket_mib: float = 1.0,
    compression: Any = None,
    unused: bool = False,
    shards: int | None = None,
    sync_batch_norm: bool = False,
    zero: int = 0,
    **further: Any,
) -> Any:
    """Train a model, or what an optimizer trains, on all processes; call it once, on all of them.

    Process 0's parameters, buffers and random state become everybody's. From then on `backward`
    leaves the mean of all gradients in `.grad`: buckets of them are exchanged while it computes the
    rest, in eager code, in jitted functions and in graphs (`minimize`). Each process must compute
    the same program on as many rows.

    target             a module or an optimizer
    mode               "sync"; "async": an optimizer whose steps parameter servers take, with the
                       options of `AsyncOptimizer` (staleness, servers); "local": steps of one's
                       own that are averaged now and then, with those of `LocalUpdates` (every)
    group              the processes, all by default
    bucket_mib         how many MiB of gradients travel together, and how many of the first ones
    compression        None; "bfloat16": rounded on their way; "topk": only the largest elements
    unused             whether processes may use different parameters: zeros are sent for others
    shards             virtual shards of the global batch, for `.backward`: the same bits on any
                       number of processes that divides it
    sync_batch_norm    whether batch normalisation of a module uses the statistics of all rows
    zero               1, 2 or 3: spread optimizer slots and gradients, or parameters too (see
                       `shard_parameters`); make the optimizer afterwards

    >>> import weft as wf
    >>> model = wf.nn.Linear(3, 2)
    >>> averaged = wf.distributed.parallel(model)
    >>> averaged
    <parallel on 1 processes: 8 parameters in 1 buckets>
    >>> averaged.close()  # or the gradients of this model are exchanged as long as it lives
    """
    if mode != "sync":
        return _other_mode(mode, target, further)
    if further:
        raise ArgumentError(f"parallel: {min(further)!r} is no option of mode='sync'")
    if zero and shards:
        raise ArgumentError(
            "parallel: shards= adds gradients of whole parameters, and zero= spreads them: choose "
            "one of the two"
        )
    group = world() if group is None else group
    named = [(name, p) for name, p in _named_parameters(target) if not is_shard(p)]
    if sync_batch_norm and isinstance(target, Module):
        synchronize_batch_norm(target, group)
    _agree_on_start(target, named, group)
    if zero:
        named = _spread(target, zero, group)
    travel = Plain("pairwise", 1.0 / shards) if shards else as_travel(compression)
    limits = {"limit": _positive("bucket_mib", bucket_mib)}
    limits["first"] = _positive("first_bucket_mib", first_bucket_mib)
    averager = GradientAverager(named, group, travel, unused=unused, **limits)
    if isinstance(target, Module) and shards is None:
        place_draws(target, group)
    return Parallel(named, group, averager, shards)


_MODES: dict[str, Any] = {"async": AsyncOptimizer, "local": LocalUpdates}


def _other_mode(mode: str, target: Any, options: dict[str, Any]) -> Any:
    if mode not in _MODES:
        known = ", ".join(map(repr, ("sync", *_MODES)))
        raise ArgumentError(f"parallel: mode must be one of {known}. Received: {mode!r}")
    try:
        return _MODES[mode](target, **options)
    except TypeError as error:
        if "unexpected keyword" not in str(error):
            raise
        raise ArgumentError(f"parallel: mode={mode!r}: {error}") from None


def _spread(target: Any, stage: int, group: ProcessGroup) -> list[tuple[str, Tensor]]:
    """Spread the parameters of a module; return those that stay whole."""
    if not isinstance(target, Module):
        raise ArgumentTypeError("parallel: zero is for a module; make its optimizer afterwards")
    shard_parameters(target, stage=stage, group=group)
    return [(name, p) for name, p in target.named_parameters() if not is_shard(p)]


def _positive(name: str, value: Any) -> float:
    if not isinstance(value, int | float) or not value > 0:
        raise ArgumentError(f"parallel: {name} must be a positive number. Received: {value!r}")
    return float(value)


def _named_parameters(target: Any) -> list[tuple[str, Tensor]]:
    if isinstance(target, Module):
        return list(target.named_parameters())
    if isinstance(target, Optimizer):
        return [(str(i), p) for i, p in enumerate(target.parameters())]
    raise ArgumentTypeError(
        f"parallel: expected a module or an optimizer. Received: {type(target).__name__}"
    )


def _agree_on_start(target: Any, named: list[tuple[str, Tensor]], group: ProcessGroup) -> None:
    """Let everybody have what process 0 has; raise if the parameters are not the same ones."""
    kinds = ", ".join(f"{name} {p.dtype}{list(p.shape)} {p.requires_grad}" for name, p in named)
    group.exchanges.check(f"parallel of {len(named)} parameters: {kinds}")
    buffers = target.buffers() if isinstance(target, Module) else ()
    for tensor in (*(p for _, p in named), *buffers):
        _take_first(tensor, group)
    exchanges = group.exchanges
    states = exchanges.run(lambda: exchanges.transport.objects(default_generator.get_state()))
    default_generator.set_state(copy.copy(states[0]))


def _take_first(tensor: Tensor, group: ProcessGroup) -> None:
    """Let a tensor have the value that it has on process 0."""
    if group.size > 1:
        array = np.asarray(tensor.detach().numpy())
        found = group.exchanges.exchange(array, ExchangeSignature.of(array, "broadcast"))
        tensor._value = np.array(found)
