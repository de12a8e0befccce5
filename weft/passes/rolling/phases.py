"""Where trips begin: a repeat of n nodes and some more can be cut into trips in several ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from ...graph.node import Node, Value
from .repeats import Repeat


def best_phase(nodes: Sequence[Node], position: Mapping[Node, int], repeat: Repeat) -> int:
    """Return how many nodes of a repeat stand before its first trip.

    Trips begin where fewest values pass from one to the next. What happens to look like a part of a
    trip, before the first or behind the last, comes from other lines of the user's.
    """
    widths = _widths(nodes, position, repeat)
    strangers = _strangers(nodes, repeat)
    phases = range(len(strangers))
    return min(phases, key=lambda phase: (widths[phase % repeat.period], strangers[phase]))


def _widths(nodes: Sequence[Node], position: Mapping[Node, int], repeat: Repeat) -> list[int]:
    """Return how many values pass each place of a trip in the middle from before it."""
    period = repeat.period
    first = repeat.start + (repeat.trips // 2 - 1) * period
    last: dict[Value, int] = {}
    for i in range(first, min(first + 2 * period, repeat.stop)):
        for x in nodes[i].inputs:
            if x is not None and position.get(x.node, -1) >= first:
                last[x] = i
    change = [0] * (2 * period + 1)
    for value, used in last.items():
        change[position[value.node] + 1 - first] += 1
        change[used + 1 - first] -= 1
    return list(accumulate(change))[period : 2 * period]


def _strangers(nodes: Sequence[Node], repeat: Repeat) -> list[int]:
    """Return, for each way to cut, how many nodes of the end trips are not of the usual lines."""
    period, left = repeat.period, repeat.length % repeat.period
    heads = [nodes[i].site != nodes[i + period].site for i in _between(repeat.start, left + period)]
    start = repeat.stop - left - period
    tails = [nodes[i].site != nodes[i - period].site for i in _between(start, left + period)]
    both = [0, *accumulate(a + b for a, b in zip(heads, tails, strict=True))]
    return [both[phase + period] - both[phase] for phase in range(left + 1)]


def _between(start: int, count: int) -> range:
    return range(start, start + count)
