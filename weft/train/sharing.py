"""Evaluation that processes share: each takes every n-th batch, and all have the result.

The batches are those of one process, so the result is too, up to the order of sums. Models that
are spread over processes communicate in each batch: who has one batch less than others computes
one again, which does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from ..data.loader import DataLoader
from ..distributed import ProcessGroup
from ..distributed.together import everyone
from .metrics import Mean, Metric

_NOTHING: Any = object()


def shared_batches(
    loader: Iterable[Any], group: ProcessGroup | None, most: int | None = None
) -> Iterator[tuple[Any, bool]]:
    """Yield the batches that this process evaluates, each with whether it counts.

    group   who shares them; None: nobody
    most    how many there are at most, of all processes together
    """
    if group is None or group.size == 1:
        yield from ((batch, True) for batch in islice(loader, most))
    elif isinstance(loader, DataLoader) and loader.shares_rows:
        yield from ((batch, True) for batch in islice(loader, most))  # it has divided them itself
    else:
        yield from _in_turns(loader, group, most)


def _in_turns(
    loader: Iterable[Any], group: ProcessGroup, most: int | None
) -> Iterator[tuple[Any, bool]]:
    assert group.rank is not None
    total, latest = 0, _NOTHING
    for number, batch in _turns(loader, group.rank, group.size, most):
        total = number + 1
        if number % group.size == group.rank:
            latest = batch
            yield batch, True
        elif latest is _NOTHING:
            latest = batch
    if group.rank >= total % group.size > 0:  # others have one more
        yield latest, False


def _turns(
    loader: Iterable[Any], place: int, parts: int, most: int | None
) -> Iterator[tuple[int, Any]]:
    """Yield numbers and batches up to the last one; of others' batches, those that must be read."""
    total = len(loader) if isinstance(loader, DataLoader) and loader.has_order else 0
    total = total if most is None else min(total, most)
    if not total or not isinstance(loader, DataLoader):
        yield from islice(enumerate(loader), most)
        return
    mine = range(place, total, parts)
    yield from zip(mine, islice(loader.taking_turns(place, parts), len(mine)), strict=True)
    if not mine or mine[-1] != total - 1:  # the last one, which tells how many there are
        yield total - 1, next(iter(loader.taking_turns(total - 1, total)))


def merge_all(
    group: ProcessGroup | None, means: dict[str, Mean], metrics: Mapping[str, Metric]
) -> None:
    """Let means and metrics have what all processes have gathered."""
    if group is None or group.size == 1:
        return
    mine = [{name: one.state_dict() for name, one in some.items()} for some in (means, metrics)]
    found = everyone(group, mine)
    for name in dict.fromkeys(name for states, _ in found for name in states):
        means[name] = _merged(Mean(), [states[name] for states, _ in found if name in states])
    for name, metric in metrics.items():
        metric.reset()
        _merged(metric, [states[name] for _, states in found])


def _merged(metric: Any, states: Iterable[Mapping[str, Any]]) -> Any:
    for state in states:
        metric.merge(state)
    return metric
