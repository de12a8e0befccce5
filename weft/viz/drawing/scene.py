"""A scene: what to draw, where, in the order of drawing. Units are pixels, y downwards."""

from __future__ import annotations

from dataclasses import dataclass, field

Point = tuple[float, float]
Bezier = tuple[Point, Point, Point, Point]


@dataclass
class Rectangle:
    """A rectangle with round corners; pointing at it shows the tooltip."""

    x: float
    y: float
    width: float
    height: float
    radius: float
    fill: str
    border: str | None
    tooltip: str = ""


@dataclass
class SceneText:
    """A line of text; y is its baseline."""

    x: float
    y: float
    text: str
    size: float
    colour: str
    bold: bool = False
    centred: bool = True


@dataclass
class Curves:
    """Curves of one colour, each a chain of cubic Bezier pieces."""

    chains: list[list[Bezier]]
    colour: str


@dataclass
class Triangle:
    """The head of an arrow."""

    corners: tuple[Point, Point, Point]
    colour: str


Shape = Rectangle | SceneText | Curves | Triangle


@dataclass
class Scene:
    """Shapes on a sheet of paper, and what it is called."""

    title: str
    width: float
    height: float
    shapes: list[Shape] = field(default_factory=list)
