"""Examples that were seen: their plans are put together, and no Python of the function runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.tensor import Tensor, constant
from .agenda import Ints
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


def replay(run: Deferring, examples: Sequence[SeenExample]) -> list[Any]:
    """Put off what the plans of examples say, and return the results of these.

    The deepest come first: what the members of a batch lead to is then the beginning of that
    batch as long as no other ends sooner, and lies side by side.
    """
    for i in frozenset().union(*[x.plan.used for x in examples]):
        run.shared.accept(run.table.all[i])
    order = sorted(range(len(examples)), key=lambda i: -examples[i].plan.depth)
    ordered = [examples[i] for i in order]
    counts = np.array([x.plan.count for x in ordered])
    firsts = run.count + np.cumsum(counts) - counts
    run.records.cut(run.count)
    chunk = _chunk([x.plan for x in ordered], firsts, _payload(run, ordered), int(counts.sum()))
    run.count += chunk.numbers
    run.records.add(chunk, run.count)
    found: list[Any] = [None] * len(examples)
    for i, x, first in zip(order, ordered, firsts.tolist(), strict=True):
        found[i] = x.plan.result(run, first)
    return found


def _chunk(plans: Sequence[ExamplePlan], firsts: Ints, data: dict[int, Any], count: int) -> Chunk:
    return Chunk(
        int(firsts[0]),
        np.concatenate([plan.signatures for plan in plans]),
        np.concatenate([plan.levels for plan in plans]),
        _shifted([plan.refs for plan in plans], firsts),
        _shifted([plan.firsts for plan in plans], firsts),
        data,
        count,
        is_new=False,
    )


def _shifted(columns: Sequence[Ints], firsts: Ints) -> Ints:
    """Return numbers of values, those of each example shifted to where its own begin."""
    return np.concatenate(columns) + np.repeat(firsts, [len(column) for column in columns])


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
