"""Loop nests that several operations share, and the level at which each takes part.

A value of a kernel is made for every element of the loop nest, once for every row (by a reduction
along it), or once for every column (by a reduction over the rows, complete when the kernel ends).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.dim import bounds
from ..core.shape import Shape, size_of
from ..graph.node import Node, Value
from .index_maps import has_plain_rows, stored_values
from .kinds import reduced_axes, reduced_input

FULL, ROW, COLUMN = "full", "row", "column"
FEW_ROWS = 8
LONG_ROW = 1 << 15  # elements

Levels = dict[Value, str]


@dataclass(frozen=True)
class Frame:
    """A loop nest.

    domain   its shape
    split    how many of its axes count rows; None until a reduction decides
    """

    domain: Shape
    split: int | None

    @property
    def rows(self) -> Shape:
        """Return the axes that count rows."""
        assert self.split is not None
        return self.domain[: self.split]

    @property
    def row_shapes(self) -> tuple[Shape, Shape]:
        """Return the shapes of a value per row: without and with the reduced axes."""
        return self.rows, self.rows + (1,) * (len(self.domain) - len(self.rows))

    @property
    def is_long(self) -> bool:
        """Tell whether the few rows are so long that threads must share them.

        Then each is reduced in blocks, and no pass over its elements can wait for the result.
        """
        if self.split is None or bounds(size_of(self.rows))[0] >= FEW_ROWS:
            return False
        return size_of(self.domain[self.split :]) >= LONG_ROW and size_of(self.rows) < FEW_ROWS


def frames_for(a: Frame, b: Frame | None) -> Iterator[Frame]:
    """Yield the loop nests in which the operations of two might run together."""
    if b is None:
        yield a
        return
    if a.domain == b.domain and (a.split == b.split or None in (a.split, b.split)):
        yield Frame(a.domain, b.split if a.split is None else a.split)
    for wide, narrow in ((a, b), (b, a)):
        if wide.split is not None and narrow.split is None and narrow.domain in wide.row_shapes:
            yield wide


def levels_of(
    nodes: Sequence[Node],
    kinds: Mapping[Node, str | None],
    frame: Frame,
    known: Levels | None = None,
) -> Levels | None:
    """Return the level of every value that nodes make in a loop nest, or None if one cannot.

    `known` are the levels of what was made in it before.
    """
    levels: Levels = dict(known or {})
    for node in nodes:
        kind = kinds[node]
        assert kind is not None
        level = _RULES[kind](node, frame, levels)
        if level is None:
            return None
        levels.update(dict.fromkeys(node.outputs, level))
    return levels


def _inside(node: Node, levels: Levels) -> list[Value]:
    return [x for x in node.inputs if x is not None and x in levels]


def _map_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    shape, inside = node.outputs[0].shape, _inside(node, levels)
    if shape == frame.domain and all(_stands_at_place(x, frame, levels) for x in inside):
        return FULL
    if frame.split is None or shape not in frame.row_shapes:
        return None
    rows = all(levels[x] == ROW and x.shape == shape for x in inside)
    return ROW if rows and _is_read_per_row(node, shape, levels) else None


def _stands_at_place(value: Value, frame: Frame, levels: Levels) -> bool:
    """Tell whether a value made in the nest is where broadcasting to the domain expects it."""
    if levels[value] == FULL:
        return value.shape == frame.domain
    return levels[value] == ROW and not frame.is_long and value.shape == frame.row_shapes[1]


def _is_read_per_row(node: Node, shape: Shape, levels: Levels) -> bool:
    """Tell whether everything that comes from elsewhere can be read once per row."""
    return all(x is None or x in levels or x.shape in (shape, ()) for x in node.inputs)


def _reduce_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    x = reduced_input(node)
    fits = x.shape == frame.domain and levels.get(x, FULL) == FULL
    fits = fits and all(levels[v] != COLUMN for v in _inside(node, levels))
    return ROW if fits and frame.split == len(x.shape) - len(reduced_axes(node)) else None


def _column_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    x = reduced_input(node)
    fits = x.shape == frame.domain and levels.get(x, FULL) == FULL
    return COLUMN if fits and frame.split == len(reduced_axes(node)) else None


def _spread_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    shape = node.outputs[0].shape
    inside = _inside(node, levels)
    fits = shape == frame.domain and frame.split == len(shape) - 1
    fits = fits and not (inside and frame.is_long)
    return FULL if fits and all(levels[v] == ROW for v in inside) else None


def _view_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    """Return the level of a value that is another in a new shape."""
    source, shape = node.inputs[0], node.outputs[0].shape
    level = levels.get(source)  # type: ignore[arg-type]  # a view has a source
    if source is None or level is None or level == COLUMN:
        return None
    if level == ROW:
        return _row_view_level(source.shape, shape, frame)
    same = [n for n in source.shape if n != 1] == [n for n in shape if n != 1]
    return FULL if same else None


def _row_view_level(source: Shape, shape: Shape, frame: Frame) -> str | None:
    if shape in frame.row_shapes:
        return ROW
    return FULL if shape == frame.domain and source == frame.row_shapes[1] else None


def _place_level(node: Node, frame: Frame, levels: Levels) -> str | None:
    """Return the level of an operation that looks at elements anywhere."""
    if node.outputs[0].shape != frame.domain or frame.is_long:
        return None
    if not has_plain_rows(frame.domain, frame.split):
        return None
    inside, stored = _inside(node, levels), stored_values(node)
    fits = all(x not in stored and _stands_at_place(x, frame, levels) for x in inside)
    return FULL if fits else None


_RULES: dict[str, Callable[[Node, Frame, Levels], str | None]] = {
    "map": _map_level,
    "place": _place_level,
    "reduce": _reduce_level,
    "column": _column_level,
    "spread": _spread_level,
    "view": _view_level,
}
