"""Examples that were seen: their plans are put together, and no Python of the function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor, constant
from .plans import Brought, Draw, ExamplePlan, SharedRow
from .records import Chunk

if TYPE_CHECKING:
    from .deferring import Deferring


class SeenExample(NamedTuple):
    """An example that has a plan.

    number    tells its stream of random numbers
    tensors   those that are in it
    """

    number: int
    plan: ExamplePlan
    tensors: Sequence[Tensor]


class Replayed(NamedTuple):
    """The results of examples, and the numbers of their first values."""

    results: list[Any]
    firsts: list[int]


def replay(run: Deferring, examples: Sequence[SeenExample]) -> Replayed:
    """Put off what the plans of examples say, and return the results of these.

    The deepest come first: what the members of a batch lead to is then the beginning of that
    batch as long as no other ends sooner, and lies side by side.
    """
    order = sorted(range(len(examples)), key=lambda i: -examples[i].plan.depth)
    ordered = [examples[i] for i in order]
    plans = [x.plan for x in ordered]
    columns = np.concatenate([plan.columns for plan in plans], axis=1)
    for i in np.flatnonzero(np.bincount(columns[0])).tolist():
        run.shared.accept(run.table.all[i])
    run.records.cut(run.count)
    counts = np.array([plan.count for plan in plans])
    firsts = run.count + np.cumsum(counts) - counts
    signatures, levels, results = columns
    results += np.repeat(firsts, [len(plan) for plan in plans])
    refs = np.concatenate([plan.refs for plan in plans])
    refs += np.repeat(firsts, [len(plan.refs) for plan in plans])
    data, count = _payload(run, ordered), int(counts.sum())
    chunk = Chunk(run.count, signatures, levels, refs, results, data, count, is_new=False)
    run.count += count
    run.records.add(chunk, run.count)
    found = Replayed([None] * len(examples), [0] * len(examples))
    for i, x, first in zip(order, ordered, firsts.tolist(), strict=True):
        found.results[i], found.firsts[i] = x.plan.result(run, first), first
    return found


def _payload(run: Deferring, examples: Sequence[SeenExample]) -> dict[int, list[Any]]:
    """Return the data of examples, in their order."""
    found: dict[int, list[Any]] = {}
    for x in examples:
        for kind, values in x.plan.data.items():
            given = [_opened(run, x, value) for value in values] if x.plan.is_open else values
            found.setdefault(kind, []).extend(given)
    return found


def _opened(run: Deferring, example: SeenExample, x: Any) -> Any:
    """Return data as it is in this call."""
    if x.__class__ is Draw:
        return constant(run.streams.state(x.generator, x.blocks, example.number))
    if x.__class__ is Brought:
        return example.tensors[x.number]
    return run.shared.fill(x.slot) if x.__class__ is SharedRow else x
