"""What `parallel` means in training: whether steps are taken by several processes together.

In step, the default, all processes compute rows of one batch, and their gradients are averaged
(`Parallel`). At their own pace each takes steps with batches of its own: by parameter servers
("async"), or by itself, averaged now and then ("local").
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.modes import no_grad
from ..core.op import F
from ..core.tensor import Tensor, wrap
from ..core.tree import tree_map
from ..distributed import AsyncOptimizer, LocalUpdates, Parallel, ProcessGroup, all_reduce, parallel
from ..distributed.world import process_place
from ..nn import Module
from ..optim import Optimizer
from .objective import Outcome

IN_STEP = "sync"


def parallel_options(choice: Any) -> dict[str, Any] | None:
    """Return the options of `wf.distributed.parallel` that a choice means; None: no processes."""
    if choice is None or choice is False:
        return None
    if not isinstance(choice, Mapping) and choice is not True:
        raise ArgumentTypeError(
            "parallel must be True, False, a dictionary of options of wf.distributed.parallel, or "
            f"what that returned. Received: {choice!r:.60}"
        )
    return {} if choice is True else dict(choice)


def mode_of(choice: Any) -> str | None:
    """Return how processes work together by a choice: "sync", "async", "local"; None: not at all.

    >>> mode_of(True), mode_of({"mode": "async"}), mode_of(False)
    ('sync', 'async', None)
    """
    if isinstance(choice, Parallel):
        return IN_STEP
    options = parallel_options(choice)
    return None if options is None else str(options.get("mode", IN_STEP))


def as_parallel(choice: Any, model: Any) -> Parallel | None:
    """Return what trains a model on all processes in step, if it is to be.

    choice   True, options of `wf.distributed.parallel`, or what that returned; None or False
    """
    if isinstance(choice, Parallel):
        return choice
    options = parallel_options(choice)
    if options is None or options.get("mode", IN_STEP) != IN_STEP:
        return None
    if isinstance(model, Module):
        options.setdefault("sync_batch_norm", True)
    made: Parallel = parallel(model, **options)
    return made


def group_of(updater: Any) -> ProcessGroup | None:
    """Return the processes that an updater takes steps with, if there are any."""
    handle = getattr(updater, "parallel", None)
    return None if handle is None else handle.group


# -- at their own pace -----------------------------------------------------------------------------


class OwnPace:
    """The steps of processes that do not wait for one another.

    It begins with the first step, when the parameters are those to begin with.
    """

    def __init__(self, options: Mapping[str, Any], optimizer: Optimizer) -> None:
        self._options, self._optimizer = dict(options), optimizer
        if optimizer.loss_scaling is not None:
            raise ArgumentError(
                f"parallel(mode={options['mode']!r}): gradients travel as they are, and a scaled "
                "loss has others; train in float32 or bfloat16"
            )
        self._made: AsyncOptimizer | LocalUpdates | None = None

    @property
    def steps(self) -> AsyncOptimizer | LocalUpdates:
        """Return what takes steps, made when it is first needed."""
        if self._made is None:
            self._made = parallel(self._optimizer, **self._options)
        return self._made

    @property
    def serves(self) -> bool:
        """Tell whether this process is a parameter server, and takes no steps itself."""
        return process_place()[0] < self.servers

    @property
    def servers(self) -> int:
        """Return how many processes, the first ones, are parameter servers."""
        return int(self._options.get("servers", 1)) if self._options["mode"] == "async" else 0

    @property
    def is_first(self) -> bool:
        """Tell whether this process is the first that takes steps: it shows and writes things."""
        return process_place()[0] == self.servers

    def fetch_state(self) -> None:
        """Let the optimizer have what parameter servers keep of its state, if there are any."""
        if isinstance(self._made, AsyncOptimizer):
            self._made.fetch_state()

    def finish(self) -> None:
        """End: a server serves until all others have; then all have the same parameters."""
        self.steps.finish()


def as_own_pace(choice: Any, optimizer: Optimizer) -> OwnPace | None:
    """Return what takes steps at this process's own pace, if that is chosen."""
    mode = mode_of(choice)
    if mode is None or mode == IN_STEP:
        return None
    return OwnPace(choice, optimizer)


def own_batches(loader: Any, choice: Any) -> Any:
    """Return the batches of a worker among those of a loader, in turns; all of them on a server."""
    servers = int(choice.get("servers", 1))
    place, count = process_place()
    if place < servers or count <= servers:
        return loader
    return loader.taking_turns(place - servers, count - servers)


# -- in step ---------------------------------------------------------------------------------------


def exchanging_last(
    handle: Parallel | None, batches: Sequence[Any]
) -> Iterator[tuple[Any, AbstractContextManager[None]]]:
    """Yield batches, each with a context: the gradients of all travel with those of the last."""
    for i, batch in enumerate(batches):
        held = handle is not None and i < len(batches) - 1
        yield batch, handle.no_sync() if held and handle is not None else nullcontext()


def mean_of_processes(handle: Parallel | None, values: Mapping[str, float]) -> dict[str, float]:
    """Return the means of numbers over all processes."""
    if handle is None or handle.group.size == 1 or not values:
        return dict(values)
    with no_grad():
        numbers = wrap(np.array([float(v) for v in values.values()], np.float64))
        means = all_reduce(numbers, "mean", group=handle.group).tolist()
    return dict(zip(values, means, strict=True))


def joined_outcome(loss: Any, parts: Sequence[Outcome]) -> Outcome:
    """Return the outcome of a batch that was computed in equal parts, with its mean loss."""
    with no_grad():
        values = {name: _joined(*[part.values[name] for part in parts]) for name in parts[0].values}
        output, target = (
            tree_map(_joined, *[getattr(part, name) for part in parts])
            for name in ("output", "target")
        )
    return Outcome(loss, values, output, target)


def _joined(*parts: Any) -> Any:
    """Return rows one after another; of numbers the mean."""
    if not isinstance(parts[0], Tensor):
        return parts[0]
    return F.concat(list(parts)) if parts[0].ndim else sum(parts) / len(parts)
