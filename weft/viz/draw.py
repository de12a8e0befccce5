"""Draw graphs: `draw(graph, "net.svg")`, and pictures in notebooks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor
from ..core.tree import tree_leaves
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.symbol import Symbol
from ..graph.update import Update
from .drawing.dot import dot_text, run_dot
from .drawing.labels import kind_of
from .drawing.layout import MARGIN, lay_out
from .drawing.picture import Box, Picture, PictureGroup, make_picture
from .drawing.png import write_png
from .drawing.scene import Rectangle, Scene, SceneText
from .drawing.style import FAINT, INK, LINE, LOOKS, SMALL, TITLE, text_width
from .drawing.svg import svg_text
from .history import history_picture

FORMATS = ("svg", "png", "dot")
SUFFIXES = {".svg": "svg", ".png": "png", ".dot": "dot", ".gv": "dot"}
NOTEBOOK_BOXES = 80  # more boxes than that are not shown unasked


def draw(
    graph: Graph | Tensor | Sequence[Tensor],
    path: str | os.PathLike[str] | None = None,
    *,
    fetches: Any = None,
    depth: int | None = None,
    format: str | None = None,
    names: Mapping[str, Any] | None = None,
) -> str:
    """Draw a graph, or the history of an eager tensor; return the picture's text.

    A graph is grouped by name scope, with shapes and dtypes; a symbol shows what it needs of its
    graph. The history of a tensor (or of several) shows each operation that it was computed by,
    with the type of its result, what it keeps for backward, and the line that it stands in.

    path      where to write it; the suffix tells the format: .svg, .png, .dot or .gv
    fetches   show only what these values need: symbols, names, updates, or any nest of them
    depth     how many scopes inside one another are opened; deeper ones become one box each
    format    "svg", "png" or "dot", if there is no path or its suffix does not tell
    names     what to call tensors of a history: `dict(model.named_parameters())`

    Returns SVG text for SVG, and DOT text otherwise; that is the default without a path. If the
    program dot (Graphviz) is installed it makes the pictures written to files; if not, Weft does.

    >>> import weft as wf
    >>> from weft.viz.draw import draw
    >>> with wf.Graph() as graph:
    ...     x = wf.placeholder((None, 3), wf.float32, name="x")
    ...     y = (x * 2.0).sum()
    >>> print(draw(graph)[:16])
    digraph "graph"
    """
    chosen = _format(path, format)
    picture = _picture(graph, fetches, depth, names)
    to_file = path is not None
    text = _svg(picture, to_file=to_file) if chosen == "svg" else dot_text(picture)
    if path is None:
        return text
    if chosen == "png":
        _write_png(picture, text, Path(path))
    else:
        Path(path).write_text(text, encoding="utf-8")
    return text


def repr_svg(graph: Graph) -> str:
    """Return a small picture of a graph for a notebook: large graphs with their scopes closed."""
    picture = small_picture(graph)
    return svg_text(_summary(graph) if picture is None else lay_out(picture))


def small_picture(graph: Graph) -> Picture | None:
    """Return the picture with the most scopes open that is still small; None if none is."""
    found = None
    for depth in (0, 1, 2, 3, 4, None):
        # Without scopes to close, a large graph has only one, large, picture.
        picture = make_picture(graph, None, depth) if len(graph) < 20_000 or depth == 0 else None
        if picture is None or _boxes(picture.root) > NOTEBOOK_BOXES:
            break
        found = picture
    return found


def _boxes(group: PictureGroup) -> int:
    return sum(1 if isinstance(child, Box) else _boxes(child) for child in group.children)


def _picture(shown: Any, fetches: Any, depth: Any, names: Any) -> Picture:
    tensors = shown if isinstance(shown, list | tuple) else [shown]
    if all(isinstance(x, Symbol) for x in tensors) and tensors:
        shown, fetches = tensors[0].graph, tensors if fetches is None else fetches
    elif all(isinstance(x, Tensor) for x in tensors) and tensors:
        if fetches is not None or depth is not None:
            raise ArgumentError("draw: fetches and depth are for graphs; a history has none")
        return history_picture(tensors, names)
    _check(shown, depth)
    if names is not None:
        raise ArgumentError("draw: names are for the history of a tensor; a graph has its own")
    return make_picture(shown, _nodes(shown, fetches), depth)


# -- arguments -------------------------------------------------------------------------------------


def _check(graph: Any, depth: Any) -> None:
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(
            "draw: expected a wf.Graph, a symbol, or a tensor with history. "
            f"Received: {type(graph).__name__}"
        )
    whole = isinstance(depth, int) and not isinstance(depth, bool)
    if depth is not None and (not whole or depth < 0):
        raise ArgumentError(
            f"draw: depth must be a whole number from 0, or None. Received: {depth!r:.60}"
        )


def _format(path: Any, format: Any) -> str:
    if format is None:
        suffix = None if path is None else Path(path).suffix.lower()
        chosen = "dot" if suffix is None else SUFFIXES.get(suffix)
        if chosen is None:
            raise ArgumentError(
                f"draw: the suffix of the path must be one of {', '.join(SUFFIXES)}, or format "
                f"given. Received: {os.fspath(path)!r:.60}"
            )
        return chosen
    if format not in FORMATS:
        raise ArgumentError(
            f"draw: format must be one of {', '.join(FORMATS)}. Received: {format!r:.60}"
        )
    if format == "png" and path is None:
        raise ArgumentError("draw: a PNG needs a path to be written to")
    return str(format)


def _nodes(graph: Graph, fetches: Any) -> list[Node] | None:
    """Return the nodes that the fetches need; None for all."""
    if fetches is None:
        return None
    wanted = [value for leaf in tree_leaves(fetches) for value in _fetched(graph, leaf)]
    return graph.ancestors(wanted)


def _fetched(graph: Graph, leaf: Any) -> list[Value]:
    """Return the values behind a fetch."""
    if isinstance(leaf, Update):
        return [graph.check_member(symbol.value, "draw") for symbol in leaf.symbols]
    if isinstance(leaf, str):
        return [graph.find(leaf)]
    if isinstance(leaf, Value | Symbol):
        return [graph.check_member(leaf if isinstance(leaf, Value) else leaf.value, "draw")]
    known = graph.states_by_key().get((id(leaf), ""))
    if known is None:
        raise ArgumentTypeError(
            "draw: fetches must be symbols, names, updates or parameters of the graph. "
            f"Received: {leaf!r:.60}"
        )
    return [known]


# -- pictures --------------------------------------------------------------------------------------


def _svg(picture: Picture, *, to_file: bool) -> str:
    made = run_dot(dot_text(picture), "svg") if to_file else None
    return svg_text(lay_out(picture)) if made is None else made.decode()


def _write_png(picture: Picture, text: str, path: Path) -> None:
    made = run_dot(text, "png")
    if made is None:
        write_png(lay_out(picture), path)
    else:
        path.write_bytes(made)


def _summary(graph: Graph) -> Scene:
    """Return a card that says what is in a graph too large to show."""
    lines = list(_summary_lines(graph))
    width = max(text_width(line, SMALL) for line in lines) + 2 * MARGIN + 20
    title = f"{graph.name}: {len(graph):,} nodes"
    width = max(width, text_width(title, TITLE, bold=True) + 2 * MARGIN + 20)
    height = (len(lines) * SMALL + TITLE) * LINE + 2 * MARGIN + 16
    look = LOOKS["scope"]
    card = Rectangle(
        MARGIN, MARGIN, width - 2 * MARGIN, height - 2 * MARGIN, look.radius, look.fill, look.border
    )
    scene = Scene(title, width, height, [card])
    y = MARGIN + 8 + TITLE
    scene.shapes.append(SceneText(width / 2, y, title, TITLE, INK, bold=True))
    for line in lines:
        y += SMALL * LINE
        scene.shapes.append(SceneText(width / 2, y, line, SMALL, FAINT))
    return scene


def _summary_lines(graph: Graph) -> Iterator[str]:
    counts = Counter(kind_of(node) for node in graph)
    yield from (f"{count:,} {kind}" for kind, count in counts.most_common())
    yield 'too large to show here: graph.draw("graph.svg", fetches=..., depth=...)'
