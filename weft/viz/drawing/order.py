"""The order of each layer: few crossings, by sweeps that sort by the mean place of neighbours."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from .level import LayeredGroup, Link, Spot

SWEEPS = 12
PATIENCE = 4  # sweeps without a gain after which we stop


def order_layers(level: LayeredGroup) -> None:
    """Sort the layers of a level in place, and number the spots along them."""
    _start_order(level)
    best, fewest, idle = _ranks(level), crossings(level), 0
    for sweep in range(SWEEPS):
        if not fewest or idle >= PATIENCE:
            break
        _sweep(level, downwards=sweep % 2 == 0)
        found = crossings(level)
        idle = 0 if found < fewest else idle + 1
        if found < fewest:
            best, fewest = _ranks(level), found
    for layer in level.layers:
        layer.sort(key=best.__getitem__)
        _number(layer)


def crossings(level: LayeredGroup) -> int:
    """Return how many pairs of links cross."""
    total = 0
    for layer in level.layers[1:]:
        links = [link for spot in layer for link in spot.ups]
        ends = [lower for _, lower in sorted((_above(link), _below(link)) for link in links)]
        total += _inversions(ends)
    return total


def _inversions(values: Sequence[float]) -> int:
    seen: list[float] = []
    total = 0
    for value in values:
        total += len(seen) - bisect_right(seen, value)
        insort(seen, value)
    return total


def _start_order(level: LayeredGroup) -> None:
    """Visit spots depth-first from the top, so that what belongs together stands together."""
    seen: dict[Spot, None] = {}
    for layer in level.layers:
        pending = [spot for spot in reversed(layer) if spot not in seen]
        while pending:
            spot = pending.pop()
            if spot not in seen:
                seen[spot] = None
                pending += [link.lower for link in reversed(spot.downs)]
    place = {spot: i for i, spot in enumerate(seen)}
    for loop in level.loops:  # beside where the edge comes from, not wherever it was made
        for step in loop.steps:
            place[step] = place[loop.start]
    for layer in level.layers:
        layer.sort(key=place.__getitem__)
        _number(layer)


def _sweep(level: LayeredGroup, *, downwards: bool) -> None:
    layers = level.layers[1:] if downwards else level.layers[-2::-1]
    for layer in layers:
        _sort_layer(layer, upwards=not downwards)


def _sort_layer(layer: list[Spot], *, upwards: bool) -> None:
    """Sort those that have neighbours on one side; the others keep their positions."""
    means = {spot: _mean(spot, upwards=upwards) for spot in layer}
    joined = sorted((s for s in layer if means[s] is not None), key=lambda s: means[s] or 0.0)
    rest = iter(joined)
    layer[:] = [spot if means[spot] is None else next(rest) for spot in layer]
    _number(layer)


def _mean(spot: Spot, *, upwards: bool) -> float | None:
    places = [_below(x) for x in spot.downs] if upwards else [_above(x) for x in spot.ups]
    return sum(places) / len(places) if places else None


def _above(link: Link) -> float:
    """Return where a link starts along the upper layer; parts of one tell points of a group."""
    return link.upper.rank + 0.9 * link.out / link.upper.width


def _below(link: Link) -> float:
    return link.lower.rank + 0.9 * link.into / link.lower.width


def _number(layer: Sequence[Spot]) -> None:
    for rank, spot in enumerate(layer):
        spot.rank = rank


def _ranks(level: LayeredGroup) -> dict[Spot, int]:
    return {spot: spot.rank for layer in level.layers for spot in layer}
