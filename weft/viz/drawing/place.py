"""Where spots stand along their layers: near their neighbours, without overlapping.

In each layer the squared distances to the places that the neighbours ask for are minimised under
the given order and distances. That is isotonic regression, which pooling adjacent violators solves
exactly in linear time (Ayer et al., 1955).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign

from .level import LayeredGroup, Link, Spot
from .picture import Box, PictureGroup

ROUNDS = 8
GAP, STEP_GAP = 22.0, 9.0
ATTACH = 0.6  # share of a box's width over which edges arrive
SPREAD = 22.0  # distance of arriving edges at most
FREE, PULL = 400.0, 0.2  # how far from the middle a spot may stand, and how it is drawn back
UNDER = 0.25  # how much the places of edges at groups count
_STRAIGHT = 8.0  # how much more a step insists on its place: long edges become straight


def place_spots(level: LayeredGroup) -> None:
    """Set x of every spot of a level whose layers are in order."""
    _attach(level)
    for layer in level.layers:
        _pack(layer)
    for _ in range(ROUNDS):
        for layer in level.layers[1:]:
            _settle(layer, ups=True, downs=False)
        for layer in level.layers[-2::-1]:
            _settle(layer, ups=False, downs=True)
    for layer in (*level.layers[1:], *level.layers[-2::-1]):
        _settle(layer, ups=True, downs=True)
    for layer in level.layers[1:]:
        _settle(layer, ups=True, downs=False, sure=True)


def _attach(level: LayeredGroup) -> None:
    """Let edges arrive at a box side by side, in the order in which they come."""
    ends = {loop.end for loop in level.loops}
    for layer in level.layers:
        for spot in layer:
            if isinstance(spot.item, Box):
                count = len(spot.ups) + (spot in ends)
                for i, link in enumerate(sorted(spot.ups, key=_coming)):
                    link.into = _offset(spot, i, count)
    for loop in level.loops:
        if isinstance(loop.end.item, Box):
            count = len(loop.end.ups) + 1
            loop.into = _offset(loop.end, count - 1, count)


def _coming(link: Link) -> float:
    return link.upper.rank + 0.9 * link.out / link.upper.width


def _offset(spot: Spot, position: int, count: int) -> float:
    if count < 2:
        return 0.0
    distance = min(SPREAD, spot.width * ATTACH / (count - 1))
    return (position - (count - 1) / 2) * distance


def _pack(layer: Sequence[Spot]) -> None:
    """Put a layer side by side around zero."""
    places = _packed(layer)
    middle = (places[0] + places[-1]) / 2 if places else 0.0
    for spot, place in zip(layer, places, strict=True):
        spot.x = place - middle


def _packed(layer: Sequence[Spot]) -> list[float]:
    """Return the centres of spots that stand as near to one another as they may."""
    places: list[float] = []
    for i, spot in enumerate(layer):
        if not i:
            places.append(0.0)
            continue
        before = layer[i - 1]
        steps = (before.item is None) + (spot.item is None)
        gap = STEP_GAP if steps == 2 else GAP if not steps else (GAP + STEP_GAP) / 2
        places.append(places[-1] + (before.width + spot.width) / 2 + gap)
    return places


def _settle(layer: Sequence[Spot], *, ups: bool, downs: bool, sure: bool = False) -> None:
    """Move a layer to where its neighbours want it, as near as its order allows.

    sure   keep what has no neighbours on that side where it is
    """
    packed = _packed(layer)
    wishes = [_wish(spot, ups=ups, downs=downs) for spot in layer]
    wanted = [wish - place for (wish, _), place in zip(wishes, packed, strict=True)]
    weights = [weight if weight or not sure else 1.0 for _, weight in wishes]
    found = isotonic(wanted, [weight or 0.01 for weight in weights])
    for spot, base, place in zip(layer, found, packed, strict=True):
        spot.x = base + place


def _wish(spot: Spot, *, ups: bool, downs: bool) -> tuple[float, float]:
    """Return where a spot's neighbours would have it, and how much they care."""
    total = weight = 0.0
    for link in spot.ups if ups else ():
        care = _care(link)
        total += care * (link.upper.x + _shift(link))
        weight += care
    for link in spot.downs if downs else ():
        care = _care(link)
        total += care * (link.lower.x - _shift(link))
        weight += care
    return (_held(total / weight), weight) if weight else (spot.x, 0.0)


def _held(x: float) -> float:
    """Return a place nearer to the middle, if it is far from it.

    A small shift at each of many layers, to keep the lines between them straight, would otherwise
    make a deep picture as wide as it is high.
    """
    beyond = abs(x) - FREE
    return x if beyond <= 0 else x - copysign(PULL * beyond, x)


def _shift(link: Link) -> float:
    """Return how far to the right of its upper end a link would have its lower one.

    A group stands under another rather than shifted to where the edge would be straight.
    """
    stacked = isinstance(link.upper.item, PictureGroup) and isinstance(
        link.lower.item, PictureGroup
    )
    return (link.out - link.into) * (UNDER if stacked else 1.0)


def _care(link: Link) -> float:
    steps = (link.upper.item is None) + (link.lower.item is None)
    return (1.0, 0.5, _STRAIGHT)[steps]


def isotonic(wanted: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the non-decreasing numbers with the least weighted squared distance to given ones.

    >>> isotonic([1.0, 3.0, 2.0], [1.0, 1.0, 1.0])
    [1.0, 2.5, 2.5]
    """
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for value, weight in zip(wanted, weights, strict=True):
        mean, total, count = value, weight, 1
        while blocks and blocks[-1][0] >= mean:
            other, more, members = blocks.pop()
            mean = (mean * total + other * more) / (total + more)
            total, count = total + more, count + members
        blocks.append((mean, total, count))
    return [mean for mean, _, count in blocks for _ in range(count)]
