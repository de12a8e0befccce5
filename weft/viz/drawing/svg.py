"""A scene as SVG: plain shapes, no scripts, no styles that could leak into a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from .scene import Bezier, Curves, Rectangle, Scene, SceneText, Shape, Triangle
from .style import FONT, PAPER


def svg_text(scene: Scene) -> str:
    """Return a scene as SVG."""
    return "\n".join(_lines(scene)) + "\n"


def _lines(scene: Scene) -> Iterator[str]:
    width, height = _number(scene.width), _number(scene.height)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FONT}">'
    )
    yield f"<title>{_escaped(scene.title)}</title>"
    yield f'<rect width="{width}" height="{height}" fill="{PAPER}"/>'
    for shape in scene.shapes:
        yield _WRITERS[type(shape)](shape)
    yield "</svg>"


def _rectangle(shape: Rectangle) -> str:
    border = "" if shape.border is None else f' stroke="{shape.border}"'
    head = (
        f'<rect x="{_number(shape.x)}" y="{_number(shape.y)}" width="{_number(shape.width)}" '
        f'height="{_number(shape.height)}" rx="{_number(shape.radius)}" fill="{shape.fill}"{border}'
    )
    return (
        f"{head}><title>{_escaped(shape.tooltip)}</title></rect>" if shape.tooltip else f"{head}/>"
    )


def _text(shape: SceneText) -> str:
    anchor = ' text-anchor="middle"' if shape.centred else ""
    weight = ' font-weight="bold"' if shape.bold else ""
    # Pointing at a text means pointing at the box behind it, which has the tooltip.
    return (
        f'<text x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}" '
        f'fill="{shape.colour}"{anchor}{weight} pointer-events="none">{_escaped(shape.text)}</text>'
    )


def _curves(shape: Curves) -> str:
    path = " ".join(map(_chain, shape.chains))
    return f'<path d={quoteattr(path)} fill="none" stroke="{shape.colour}" stroke-width="1.2"/>'


def _chain(chain: list[Bezier]) -> str:
    return f"M{_point(chain[0][0])}" + "".join(map(_piece, chain))


def _piece(bezier: Bezier) -> str:
    start, first, second, end = bezier
    if start[0] == first[0] == second[0] == end[0]:
        return f"V{_number(end[1])}"
    return f"C{_point(first)} {_point(second)} {_point(end)}"


def _triangle(shape: Triangle) -> str:
    points = " ".join(map(_point, shape.corners))
    return f'<polygon points="{points}" fill="{shape.colour}"/>'


_WRITERS: dict[type[Shape], Callable[[Any], str]] = {
    Rectangle: _rectangle,
    SceneText: _text,
    Curves: _curves,
    Triangle: _triangle,
}


def _point(point: tuple[float, float]) -> str:
    return f"{_number(point[0])},{_number(point[1])}"


def _number(value: float) -> str:
    """Return a coordinate with one decimal, and none where it is whole."""
    return f"{value:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    """Return a text for XML, without the control characters that it cannot contain."""
    return escape("".join(c for c in text if c.isprintable() or c == "\n"))
