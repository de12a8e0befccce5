"""torch.multiprocessing: Python's own. Tensors travel as copies, not as shared memory."""

from __future__ import annotations

from collections.abc import Callable
from multiprocessing import (
    Array,
    Barrier,
    Condition,
    Event,
    JoinableQueue,
    Lock,
    Manager,
    Pipe,
    Pool,
    Process,
    Queue,
    RLock,
    Semaphore,
    SimpleQueue,
    Value,
    cpu_count,
    current_process,
    freeze_support,
    get_all_start_methods,
    get_context,
    get_start_method,
    set_start_method,
)
from typing import Any

from ..faces.serving import is_served

__all__ = [
    "Array",
    "Barrier",
    "Condition",
    "Event",
    "JoinableQueue",
    "Lock",
    "Manager",
    "Pipe",
    "Pool",
    "Process",
    "Queue",
    "RLock",
    "Semaphore",
    "SimpleQueue",
    "Value",
    "cpu_count",
    "current_process",
    "freeze_support",
    "get_all_sharing_strategies",
    "get_all_start_methods",
    "get_context",
    "get_start_method",
    "set_sharing_strategy",
    "set_start_method",
    "spawn",
]


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Call `fn(i, *args)` in nprocs processes; raise if one of them fails.

    They know nothing of each other: for torch.distributed start the script by `weft launch`. Where
    `weft run` serves this face they are copies of this process: in one that begins anew nothing
    would serve it.
    """
    copies = is_served("torch") and "fork" in get_all_start_methods()
    context: Any = get_context("fork" if copies else start_method)
    started = [
        context.Process(target=fn, args=(place, *args), daemon=daemon) for place in range(nprocs)
    ]
    for process in started:
        process.start()
    if not join:
        return started
    for place, process in enumerate(started):
        process.join()
        if process.exitcode:
            for other in started:
                other.terminate()
            raise RuntimeError(f"process {place} terminated with exit code {process.exitcode}")
    return None


def get_all_sharing_strategies() -> set[str]:
    """Return how tensors may travel: as copies."""
    return {"copy"}


def set_sharing_strategy(new_strategy: str) -> None:
    """Do nothing: tensors travel as copies."""
