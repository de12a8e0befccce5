"""What `parallel` means in training: whether steps are taken by several processes together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.modes import no_grad
from ..core.tensor import wrap
from ..distributed import Parallel, all_reduce, parallel
from ..nn import Module


def as_parallel(choice: Any, model: Any) -> Parallel | None:
    """Return what trains a model on all processes, if it is to be.

    choice   True, options of `wf.distributed.parallel`, or what that returned; None or False
    """
    if choice is None or choice is False:
        return None
    if isinstance(choice, Parallel):
        return choice
    if not isinstance(choice, Mapping) and choice is not True:
        raise ArgumentTypeError(
            "parallel must be True, False, a dictionary of options of wf.distributed.parallel, or "
            f"what that returned. Received: {choice!r:.60}"
        )
    options = {} if choice is True else dict(choice)
    if isinstance(model, Module):
        options.setdefault("sync_batch_norm", True)
    made: Parallel = parallel(model, **options)
    return made


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
