"""From a picture to a scene: groups are laid out from the innermost out, each as one box then.

An edge between groups is cut where it crosses a frame. Inside, it starts or ends at a point of the
frame; outside, it meets the group at that point. So no edge crosses a box, and no frame another.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .level import Edge, LayeredGroup, Link, LoopEdge, Spot, make_level
from .order import order_layers
from .picture import Box, Item, Picture, PictureGroup
from .place import place_spots
from .scene import Bezier, Curves, Point, Rectangle, Scene, SceneText, Triangle
from .style import (
    EDGE,
    FAINT,
    FAINT_EDGE,
    GROUPS,
    INK,
    LINE,
    LOOKS,
    SMALL,
    SOURCES,
    TITLE,
    box_size,
    text_width,
)

MARGIN, PADDING, HEADER = 14.0, 12.0, 18.0
SHORTEST_GAP, LONGEST_GAP = 24.0, 80.0  # between layers
LOOP_GAP = 34.0
ARROW_LENGTH, ARROW_WIDTH = 6.5, 3.2


def lay_out(picture: Picture) -> Scene:
    """Return the scene of a picture."""
    frames = _frames(picture)
    root = frames[picture.root]
    _measure(picture.root, frames)
    scene = Scene(picture.root.title, root.width + 2 * MARGIN, root.height + 2 * MARGIN)
    artist = _Artist(frames)
    artist.draw(picture.root, MARGIN, MARGIN)
    scene.shapes = [*artist.frames, *artist.edges, *artist.heads, *artist.boxes]
    return scene


@dataclass(eq=False)
class _Frame:
    """A group while it is laid out: what stands in it, and the points of its frame."""

    spots: dict[Item, Spot] = field(default_factory=dict)
    entries: dict[Item, Spot] = field(default_factory=dict)
    exits: dict[Item, Spot] = field(default_factory=dict)
    edges: dict[Edge, None] = field(default_factory=dict)
    level: LayeredGroup = field(default_factory=lambda: LayeredGroup([], [], []))
    tops: list[float] = field(default_factory=list)
    bottoms: list[float] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0
    left: float = 0.0

    def entry(self, source: Item) -> Spot:
        """Return the point where what an item sends enters the group."""
        return self.entries.setdefault(source, Spot(None))

    def exit(self, source: Item) -> Spot:
        """Return the point where what an item sends leaves the group."""
        return self.exits.setdefault(source, Spot(None))


# -- edges, level by level -------------------------------------------------------------------------


def _frames(picture: Picture) -> dict[PictureGroup, _Frame]:
    frames: dict[PictureGroup, _Frame] = {}
    pending = [picture.root]
    while pending:
        group = pending.pop()
        frames[group] = _Frame({child: Spot(child) for child in group.children})
        pending += [child for child in group.children if isinstance(child, PictureGroup)]
    for source, target in picture.edges:
        _add_edge(source, target, frames)
    return frames


def _add_edge(source: Item, target: Item, frames: dict[PictureGroup, _Frame]) -> None:
    """Add the part of an edge that runs in each group."""
    outwards, inwards = _path(source), _path(target)
    while outwards[-1] is inwards[-1]:  # groups that both are in
        outwards.pop()
        inwards.pop()
    if isinstance(source, PictureGroup):
        frames[source].exit(source)
    for item in outwards[:-1]:
        frame = frames[item.group]  # type: ignore[index]  # only the root has none
        frame.edges[frame.spots[item], frame.exit(source), source] = None
    frame = frames[outwards[-1].group]  # type: ignore[index]  # only the root has none
    frame.edges[frame.spots[outwards[-1]], frame.spots[inwards[-1]], source] = None
    for item in reversed(inwards[:-1]):
        frame = frames[item.group]  # type: ignore[index]  # only the root has none
        frame.edges[frame.entry(source), frame.spots[item], source] = None
    if isinstance(target, PictureGroup):
        frames[target].entry(source)


def _path(item: Item) -> list[Item]:
    """Return an item and the groups around it, outwards."""
    path = [item]
    while path[-1].group is not None:
        path.append(path[-1].group)
    return path


# -- sizes, from the innermost group out -----------------------------------------------------------


def _measure(group: PictureGroup, frames: dict[PictureGroup, _Frame]) -> None:
    frame = frames[group]
    for item, spot in frame.spots.items():
        if isinstance(item, Box):
            spot.width, spot.height = box_size(item.title, item.details)
        else:
            _measure(item, frames)
            _take_points(spot, frames[item])
    frame.level = make_level(
        [*frame.spots.values()],
        [*frame.edges],
        [*frame.entries.values()],
        [*frame.exits.values()],
    )
    order_layers(frame.level)
    place_spots(frame.level)
    _set_width(group, frame)
    _set_heights(group, frame)


def _take_points(spot: Spot, inner: _Frame) -> None:
    spot.width, spot.height = inner.width, inner.height
    middle = inner.left + inner.width / 2
    spot.enters = {item: point.x - middle for item, point in inner.entries.items()}
    spot.leaves = {item: point.x - middle for item, point in inner.exits.items()}


def _set_width(group: PictureGroup, frame: _Frame) -> None:
    spots = [spot for layer in frame.level.layers for spot in layer]
    left = min((spot.x - spot.width / 2 for spot in spots), default=0.0)
    right = max((spot.x + spot.width / 2 for spot in spots), default=0.0)
    around = 0.0 if group.group is None else PADDING
    title = 0.0 if group.group is None else text_width(group.title, SMALL, bold=True) + 18
    frame.width = max(right - left + 2 * around, title)
    frame.left = (left + right - frame.width) / 2


def _set_heights(group: PictureGroup, frame: _Frame) -> None:
    """Give each layer the height of its highest spot, and a gap that its edges can cross."""
    layers = frame.level.layers
    y = 0.0
    for i, layer in enumerate(layers):
        if i:
            y += _gap_above(i, frame.level, group)
        frame.tops.append(y)
        y += max((spot.height for spot in layer), default=0.0)
        frame.bottoms.append(y)
    frame.height = y


def _gap_above(i: int, level: LayeredGroup, group: PictureGroup) -> float:
    """Return the distance of a layer from the one above: more where edges go far sideways."""
    inner = group.group is not None
    if (i == 1 and not level.layers[0]) or (i == len(level.layers) - 1 and not level.layers[i]):
        frame = PADDING if inner else 0.0
        looped = _has_loop(level, i)
        return max(frame, LOOP_GAP if looped else 0.0) + (HEADER if inner and i == 1 else 0.0)
    far = max((_sideways(link) for spot in level.layers[i] for link in spot.ups), default=0.0)
    gap = min(LONGEST_GAP, SHORTEST_GAP + 0.08 * far)
    if _has_loop(level, i):
        gap = max(gap, LOOP_GAP)
    return gap + (HEADER - 4 if inner and i == 1 else 0.0)


def _has_loop(level: LayeredGroup, i: int) -> bool:
    return any(i in (loop.end.layer, loop.start.layer + 1) for loop in level.loops)


def _sideways(link: Link) -> float:
    return abs(link.upper.x + link.out - link.lower.x - link.into)


# -- shapes ----------------------------------------------------------------------------------------


class _Artist:
    """Collects shapes, with all coordinates known: frames below edges below boxes."""

    def __init__(self, frames: dict[PictureGroup, _Frame]) -> None:
        self.places = frames
        self.frames: list[Rectangle] = []
        self.edges: list[Curves] = []
        self.heads: list[Triangle] = []
        self.boxes: list[Rectangle | SceneText] = []

    def draw(self, group: PictureGroup, left: float, top: float) -> None:
        """Draw a group whose frame has its corner at a point."""
        frame = self.places[group]
        if group.group is not None:
            self._frame(group, frame, left, top)
        dx = left - frame.left
        for layer, spots in enumerate(frame.level.layers):
            for spot in spots:
                self._spot(spot, spot.x + dx, top + _top_of(spot, frame, layer))
        self._draw_edges(frame, dx, top)

    def _spot(self, spot: Spot, x: float, top: float) -> None:
        if isinstance(spot.item, PictureGroup):
            self.draw(spot.item, x - spot.width / 2, top)
        elif spot.item is not None:
            self._box(spot.item, spot, x, top)

    def _frame(self, group: PictureGroup, frame: _Frame, left: float, top: float) -> None:
        look = GROUPS[group.kind]
        self.frames.append(
            Rectangle(
                left, top, frame.width, frame.height, look.radius, look.fill, look.border,
                group.tooltip,
            )
        )  # fmt: skip
        width = text_width(group.title, SMALL, bold=True)
        # Edges pass under the title, not through it.
        self.boxes.append(Rectangle(left + 5, top + 3, width + 8, 14, 3, look.fill, None))
        self.boxes.append(
            SceneText(left + 9, top + 14, group.title, SMALL, FAINT, bold=True, centred=False)
        )

    def _box(self, box: Box, spot: Spot, x: float, top: float) -> None:
        look = LOOKS[box.kind]
        self.boxes.append(
            Rectangle(
                x - spot.width / 2, top, spot.width, spot.height, look.radius, look.fill,
                look.border, box.tooltip,
            )
        )  # fmt: skip
        y = top + 4 + TITLE
        self.boxes.append(SceneText(x, y, box.title, TITLE, INK, bold=True))
        for line in box.details:
            y += SMALL * LINE
            self.boxes.append(SceneText(x, y + 1, line, SMALL, FAINT))

    def _draw_edges(self, frame: _Frame, dx: float, dy: float) -> None:
        chains: dict[Item, list[list[Bezier]]] = {}
        for link in frame.level.links:
            chain = _curve(link, frame, dx, dy)
            chains.setdefault(link.source, []).append(chain)
            self._head(link.lower, link.source, chain)
        for loop in frame.level.loops:
            below, above = _turns(loop, frame, dx, dy)
            chains.setdefault(loop.source, []).extend((below, above))
            self._head(loop.end, loop.source, above)
        for source, curves in chains.items():
            self.edges.append(Curves(curves, _edge_colour(source)))

    def _head(self, target: Spot, source: Item, chain: list[Bezier]) -> None:
        """Draw the head of an arrow, if the edge ends here and does not go on inside."""
        item = target.item
        if isinstance(item, PictureGroup):
            entry = self.places[item].entries[source]
            if entry.downs:
                return
        if item is not None:
            (x, y) = chain[-1][-1]
            tip, width = y - ARROW_LENGTH, ARROW_WIDTH
            corners = ((x, y), (x - width, tip), (x + width, tip))
            self.heads.append(Triangle(corners, _edge_colour(source)))


def _edge_colour(source: Item) -> str:
    return FAINT_EDGE if source.kind in SOURCES or source.kind == "reference" else EDGE


def _top_of(spot: Spot, frame: _Frame, layer: int) -> float:
    """Return where a spot begins: centred in its layer; subgraphs and steps at its top."""
    top, bottom = frame.tops[layer], frame.bottoms[layer]
    centred = spot.item is not None and spot.item.kind != "subgraph"
    return (top + bottom - spot.height) / 2 if centred else top


def _curve(link: Link, frame: _Frame, dx: float, dy: float) -> list[Bezier]:
    """Return a link as curves: straight down out of its layer, over, straight into the next."""
    upper, lower = link.upper, link.lower
    x0, x1 = upper.x + link.out + dx, lower.x + link.into + dx
    start = _top_of(upper, frame, upper.layer) + upper.height + dy
    end = _top_of(lower, frame, lower.layer) + dy
    leave, arrive = frame.bottoms[upper.layer] + dy, frame.tops[lower.layer] + dy
    points = [(x0, start), (x0, leave), (x1, arrive), (x1, end)]
    if abs(x0 - x1) < 0.5:
        return [_straight((x0, start), (x1, end))]
    middle = (leave + arrive) / 2
    over = (points[1], (x0, middle), (x1, middle), points[2])
    pieces = [_straight(points[0], points[1]), over, _straight(points[2], points[3])]
    return [piece for piece in pieces if piece[0] != piece[3]]


def _straight(start: Point, end: Point) -> Bezier:
    return start, start, end, end


def _turns(
    loop: LoopEdge, frame: _Frame, dx: float, dy: float
) -> tuple[list[Bezier], list[Bezier]]:
    """Return the turn under the start of an upward edge, and that above its end."""
    out = loop.start.x + loop.start.leaves.get(loop.source, 0.0) + dx
    into = loop.end.x + loop.into + dx
    first, last = loop.steps[0], loop.steps[-1]
    start = _top_of(loop.start, frame, loop.start.layer) + loop.start.height + dy
    low = frame.bottoms[first.layer] + dy
    end = _top_of(loop.end, frame, loop.end.layer) + dy
    high = frame.tops[last.layer] + dy
    reach = LOOP_GAP * 0.8
    side, back = first.x + dx, last.x + dx
    down = _straight((out, start), (out, low))
    below = ((out, low), (out, low + reach), (side, low + reach), (side, low))
    beside = _straight((side, low), (side, frame.tops[first.layer] + dy))
    above = ((back, high), (back, high - reach), (into, high - reach), (into, high))
    return [down, below, beside], [above, _straight((into, high), (into, end))]
