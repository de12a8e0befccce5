"""One group of a picture as layers: every edge leads from a layer to the next one below.

This is the scheme of Sugiyama, Tagawa and Toda (1981): layers by the longest path, a step in every
layer that an edge passes through, then (order.py, place.py) few crossings and straight lines. Edges
that would lead upwards, which scopes can have though nodes cannot, go round: down, up, and down.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from .picture import Box, Item, PictureGroup
from .style import box_size

STEP_WIDTH = 6.0  # of an edge that passes through a layer
ROW = 6  # boxes without edges stand in rows of so many
NAMED = 3  # makers of values that a reference names
_SPANS = (512, 256, 128, 64, 32, 16, 8, 4)


@dataclass(eq=False)
class Spot:
    """Something that stands in a layer: an item, a point of the frame, or a step of an edge.

    x, rank     its centre and its position along the layer
    enters      where edges from outside enter a group, from its centre, by who sent them
    leaves      the same for edges that leave it
    """

    item: Item | None
    width: float = STEP_WIDTH
    height: float = 0.0
    layer: int = 0
    rank: int = 0
    x: float = 0.0
    ups: list[Link] = field(default_factory=list)
    downs: list[Link] = field(default_factory=list)
    enters: dict[Item, float] = field(default_factory=dict)
    leaves: dict[Item, float] = field(default_factory=dict)


@dataclass(eq=False)
class Link:
    """A piece of an edge between adjacent layers; offsets are from the centres of its ends."""

    upper: Spot
    lower: Spot
    source: Item
    out: float = 0.0
    into: float = 0.0


@dataclass(eq=False)
class LoopEdge:
    """An edge to a layer that is not below: from `start` round its steps to `end`."""

    start: Spot
    end: Spot
    source: Item
    steps: list[Spot]  # from the lowest layer to the highest
    into: float = 0.0


@dataclass(eq=False)
class LayeredGroup:
    """The layers of one group, from the top."""

    layers: list[list[Spot]]
    links: list[Link]
    loops: list[LoopEdge]


Edge = tuple[Spot, Spot, Item]  # from, to, and the item that sends the value


def make_level(
    inner: Sequence[Spot], edges: Sequence[Edge], entries: Sequence[Spot], exits: Sequence[Spot]
) -> LayeredGroup:
    """Return the layers of a group.

    inner     its boxes and groups, in the order of the program
    entries   points of the upper edge of the frame; they form the first layer
    exits     points of the lower edge; they form the last layer
    """
    spots = [*entries, *inner, *exits]
    down, up = _without_cycles(spots, edges)
    order = _assign_layers(inner, down, {*entries}, {*exits})
    _draw_near(order, down)
    _set_apart(inner, edges)
    last = 1 + max([0, *(spot.layer for spot in inner)])
    for spot in exits:
        spot.layer = last
    builder = _Builder(spots)
    builder.route(builder.without_longest(down))
    for edge in up:
        builder.go_round(edge)
    return builder.level(last)


def _without_cycles(spots: Sequence[Spot], edges: Sequence[Edge]) -> tuple[list[Edge], list[Edge]]:
    """Return the edges that can lead down, and those that close a cycle (by depth-first search)."""
    following: dict[Spot, list[Edge]] = {spot: [] for spot in spots}
    for edge in edges:
        following[edge[0]].append(edge)
    down: list[Edge] = []
    up: list[Edge] = []
    state: dict[Spot, bool] = {}  # True while a spot is on the path of the search
    for root in spots:
        if root in state:
            continue
        state[root] = True
        path = [(root, iter(following[root]))]
        while path:
            spot, rest = path[-1]
            step = next(rest, None)
            if step is None:
                state[spot] = False
                path.pop()
            elif state.get(step[1]):
                up.append(step)
            else:
                down.append(step)
                if step[1] not in state:
                    state[step[1]] = True
                    path.append((step[1], iter(following[step[1]])))
    return down, up


def _assign_layers(
    inner: Sequence[Spot], edges: Sequence[Edge], entries: set[Spot], exits: set[Spot]
) -> list[Spot]:
    """Give each inner spot the length of the longest path to it; return them in such an order."""
    inside = [(a, b) for a, b, _ in edges if a not in entries and b not in exits]
    following: dict[Spot, list[Spot]] = {spot: [] for spot in inner}
    waiting = dict.fromkeys(inner, 0)
    for a, b in inside:
        following[a].append(b)
        waiting[b] += 1
    ready = [spot for spot in inner if not waiting[spot]]
    for spot in ready:
        spot.layer = 1
    for spot in ready:  # grows as spots become ready
        for other in following[spot]:
            other.layer = max(other.layer, spot.layer + 1)
            waiting[other] -= 1
            if not waiting[other]:
                ready.append(other)
    return ready


def _draw_near(order: Sequence[Spot], edges: Sequence[Edge]) -> None:
    """Move spots down to those that take their values, where that makes no edge longer in sum."""
    taken: dict[Spot, list[Spot]] = {}
    given: dict[Spot, int] = {}
    moving = set(order)
    for a, b, _ in edges:
        if b in moving:
            taken.setdefault(a, []).append(b)
        given[b] = given.get(b, 0) + 1
    for spot in reversed(order):
        takers = taken.get(spot, ())
        if takers and len(takers) >= given.get(spot, 0):
            spot.layer = max(spot.layer, min(other.layer for other in takers) - 1)


def _set_apart(inner: Sequence[Spot], edges: Sequence[Edge]) -> None:
    """Put what has no edges into rows, so that the picture does not become wide."""
    joined = {spot for a, b, _ in edges for spot in (a, b)}
    alone = [spot for spot in inner if spot not in joined]
    for i, spot in enumerate(alone):
        spot.layer = 1 + i // ROW


class _Builder:
    """Cuts edges into links from layer to layer."""

    def __init__(self, spots: Iterable[Spot]) -> None:
        self.spots = list(spots)
        self.links: list[Link] = []
        self.loops: list[LoopEdge] = []

    def without_longest(self, edges: list[Edge]) -> list[Edge]:
        """Replace edges by references while there would be too many steps to draw.

        A value taken far below is then shown there by the name of its maker: the picture stays
        readable, and its size in proportion to that of the graph.
        """
        allowed = 4 * len(self.spots) + 300
        if _steps(edges, max(_SPANS)) <= allowed and _longest(edges) <= max(_SPANS):
            return edges
        span = next((s for s in _SPANS if _steps(edges, s) <= allowed), min(_SPANS))
        cut: dict[Spot, list[Item]] = {}
        for edge in edges:
            if _span(edge) > span:
                cut.setdefault(edge[1], []).append(edge[2])
        kept = [edge for edge in edges if _span(edge) <= span]
        return kept + [self._reference(target, sources) for target, sources in cut.items()]

    def _reference(self, target: Spot, sources: list[Item]) -> Edge:
        """Return an edge to a spot from a box that names whose values it takes."""
        names = ", ".join(source.title for source in sources[:NAMED])
        more = f" and {len(sources) - NAMED} more" if len(sources) > NAMED else ""
        every = "\n".join(source.title for source in sources)
        box = Box(
            "reference", f"from {names}{more}", (), every, PictureGroup("scope", "", "", None)
        )
        width, height = box_size(box.title, ())
        spot = Spot(box, width, height, target.layer - 1)
        self.spots.append(spot)
        return spot, target, sources[0]

    def route(self, edges: Iterable[Edge]) -> None:
        """Link the ends of edges through all layers between; edges of one value share steps."""
        steps: dict[tuple[Spot, Item, int], Spot] = {}
        for start, end, source in edges:
            above = start
            for layer in range(start.layer + 1, end.layer):
                key = (start, source, layer)
                if key not in steps:
                    steps[key] = self._step(layer)
                    self._link(above, steps[key], source)
                above = steps[key]
            self._link(above, end, source)

    def go_round(self, edge: Edge) -> None:
        """Lead an edge upwards: beside its start, through the layers between, beside its end."""
        start, end, source = edge
        steps = [self._step(layer) for layer in range(start.layer, end.layer - 1, -1)]
        for lower, upper in pairwise(steps):
            self._link(upper, lower, source)
        self.loops.append(LoopEdge(start, end, source, steps, end.enters.get(source, 0.0)))

    def level(self, last: int) -> LayeredGroup:
        """Return the layers, each in the order in which the program made its items."""
        layers: list[list[Spot]] = [[] for _ in range(last + 1)]
        for spot in self.spots:
            layers[spot.layer].append(spot)
        return LayeredGroup(layers, self.links, self.loops)

    def _step(self, layer: int) -> Spot:
        spot = Spot(None, layer=layer)
        self.spots.append(spot)
        return spot

    def _link(self, upper: Spot, lower: Spot, source: Item) -> None:
        out, into = upper.leaves.get(source, 0.0), lower.enters.get(source, 0.0)
        link = Link(upper, lower, source, out, into)
        upper.downs.append(link)
        lower.ups.append(link)
        self.links.append(link)


def _span(edge: Edge) -> int:
    return edge[1].layer - edge[0].layer


def _longest(edges: Iterable[Edge]) -> int:
    return max(map(_span, edges), default=0)


def _steps(edges: Iterable[Edge], limit: int) -> int:
    """Return how many steps there are if edges over more than so many layers are left out."""
    longest: dict[tuple[Spot, Item], int] = {}
    for edge in edges:
        span = _span(edge)
        if span <= limit:
            key = (edge[0], edge[2])
            longest[key] = max(longest.get(key, 0), span)
    return sum(span - 1 for span in longest.values())
