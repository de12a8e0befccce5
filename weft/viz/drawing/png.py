"""A scene as PNG, drawn by Matplotlib or, without it, by Pillow."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

from ...core.errors import MissingDependencyError
from ...core.imports import is_available, require
from .scene import Bezier, Curves, Point, Rectangle, Scene, SceneText, Triangle
from .style import PAPER

SCALE = 2.0  # pixels of the file to a unit of the scene
MAX_SIDE, MAX_PIXELS = 30_000, 120_000_000  # beyond, the picture is made smaller
PNG = "a picture as PNG"
_DPI = 72.0  # so that a point is a unit of the scene
_PIECES = 12  # straight lines for a curve


def write_png(scene: Scene, path: Path) -> None:
    """Write a scene as PNG."""
    if is_available("matplotlib"):
        _write_by_matplotlib(scene, path)
    elif is_available("PIL"):
        _write_by_pillow(scene, path)
    else:
        raise MissingDependencyError(
            "drawing a graph as PNG needs Graphviz, Matplotlib or Pillow: "
            'pip install "weft[plot]"; or draw it as SVG, which needs nothing'
        )


def scale_of(scene: Scene) -> float:
    """Return how many pixels a unit of the scene becomes."""
    longest = max(scene.width, scene.height)
    return min(SCALE, MAX_SIDE / longest, sqrt(MAX_PIXELS / (scene.width * scene.height)))


# -- Matplotlib ------------------------------------------------------------------------------------


def _write_by_matplotlib(scene: Scene, path: Path) -> None:
    figures = require("matplotlib.figure", "plot", PNG)
    figure = figures.Figure((scene.width / _DPI, scene.height / _DPI), facecolor=PAPER)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    patches, paths = (
        require("matplotlib.patches", "plot", PNG),
        require("matplotlib.path", "plot", PNG),
    )
    for order, shape in enumerate(scene.shapes):
        if isinstance(shape, SceneText):
            _plot_text(axes, shape, order)
        else:
            patch = _PATCHES[type(shape)](shape, patches, paths.Path)
            patch.set_zorder(order)
            axes.add_patch(patch)
    figure.savefig(path, format="png", dpi=_DPI * scale_of(scene))


def _plot_text(axes: Any, shape: SceneText, order: int) -> None:
    text = axes.text(
        shape.x,
        shape.y,
        shape.text,
        size=shape.size,
        color=shape.colour,
        weight="bold" if shape.bold else "normal",
        ha="center" if shape.centred else "left",
        va="baseline",
        zorder=order,
        parse_math=False,
    )
    text.set_clip_on(True)


def _rectangle_patch(shape: Rectangle, patches: Any, _: Any) -> Any:
    radius = min(shape.radius, shape.height / 2, shape.width / 2)
    return patches.FancyBboxPatch(
        (shape.x, shape.y),
        shape.width,
        shape.height,
        boxstyle=f"round,pad=0,rounding_size={radius}",
        facecolor=shape.fill,
        edgecolor=shape.border or "none",
        linewidth=1.0,
    )


def _curves_patch(shape: Curves, patches: Any, path: Any) -> Any:
    vertices: list[Point] = []
    codes: list[int] = []
    for chain in shape.chains:
        vertices.append(chain[0][0])
        codes.append(path.MOVETO)
        for _, *points in chain:
            vertices += points
            codes += [path.CURVE4] * 3
    curve = path(vertices, codes)
    return patches.PathPatch(curve, facecolor="none", edgecolor=shape.colour, linewidth=1.2)


def _triangle_patch(shape: Triangle, patches: Any, _: Any) -> Any:
    return patches.Polygon(shape.corners, facecolor=shape.colour, edgecolor="none")


_PATCHES: dict[type, Callable[..., Any]] = {
    Rectangle: _rectangle_patch,
    Curves: _curves_patch,
    Triangle: _triangle_patch,
}


# -- Pillow ----------------------------------------------------------------------------------------


def _write_by_pillow(scene: Scene, path: Path) -> None:
    images = require("PIL.Image", "plot", PNG)
    scale = scale_of(scene)
    size = (max(1, round(scene.width * scale)), max(1, round(scene.height * scale)))
    image = images.new("RGB", size, PAPER)
    _PillowArtist(image, scale).draw(scene)
    image.save(path, format="PNG")


class _PillowArtist:
    def __init__(self, image: Any, scale: float) -> None:
        self.pen = require("PIL.ImageDraw", "plot", PNG).Draw(image)
        self.scale = scale
        self.fonts: dict[float, Any] = {}
        self.draws: dict[type, Callable[[Any], None]] = {
            Rectangle: self._rectangle,
            Curves: self._curves,
            Triangle: self._triangle,
            SceneText: self._text,
        }

    def draw(self, scene: Scene) -> None:
        """Draw all shapes."""
        for shape in scene.shapes:
            self.draws[type(shape)](shape)

    def _rectangle(self, shape: Rectangle) -> None:
        x, y = self._point((shape.x, shape.y))
        far = self._point((shape.x + shape.width, shape.y + shape.height))
        look = {"fill": shape.fill, "outline": shape.border, "width": max(1, round(self.scale))}
        radius = shape.radius * self.scale
        if 2 * radius + 6 < min(shape.width, shape.height) * self.scale and radius >= 1:
            self.pen.rounded_rectangle((x, y, *far), radius, **look)
        else:  # Pillow refuses corners that nearly meet
            self.pen.rectangle((x, y, *far), **look)

    def _curves(self, shape: Curves) -> None:
        width = max(1, round(1.2 * self.scale))
        for chain in shape.chains:
            points = [self._point(point) for bezier in chain for point in flattened(bezier)]
            self.pen.line(points, fill=shape.colour, width=width, joint="curve")

    def _triangle(self, shape: Triangle) -> None:
        self.pen.polygon([self._point(point) for point in shape.corners], fill=shape.colour)

    def _text(self, shape: SceneText) -> None:
        font = self._font(shape.size)
        anchor = "ms" if shape.centred else "ls"
        at = self._point((shape.x, shape.y))
        # The built-in font has one weight; a stroke makes it bold.
        bold = {"stroke_width": 0.5, "stroke_fill": shape.colour} if shape.bold else {}
        self.pen.text(at, shape.text, fill=shape.colour, font=font, anchor=anchor, **bold)

    def _font(self, size: float) -> Any:
        if size not in self.fonts:
            fonts = require("PIL.ImageFont", "plot", PNG)
            self.fonts[size] = fonts.load_default(max(1.0, size * self.scale))
        return self.fonts[size]

    def _point(self, point: Point) -> Point:
        return point[0] * self.scale, point[1] * self.scale


def flattened(bezier: Bezier) -> list[Point]:
    """Return points along a curve.

    >>> flattened(((0, 0), (0, 0), (0, 6), (0, 6)))[::6]
    [(0.0, 0.0), (0.0, 3.0), (0.0, 6.0)]
    """
    return [_along(bezier, i / _PIECES) for i in range(_PIECES + 1)]


def _along(bezier: Bezier, t: float) -> Point:
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    x = sum(weight * point[0] for weight, point in zip(weights, bezier, strict=True))
    y = sum(weight * point[1] for weight, point in zip(weights, bezier, strict=True))
    return float(x), float(y)
