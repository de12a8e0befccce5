"""Pictures of schedules: what ran when, and how many at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import ArgumentError
from .drawing.png import write_png
from .drawing.scene import Rectangle, Scene, SceneText
from .drawing.style import FAINT, INK, LOOKS, SMALL, TITLE, shortened, text_width
from .drawing.svg import svg_text

MARGIN, ROW, COLUMN, GAP = 12.0, 22.0, 30.0, 3.0
LONGEST = 44  # characters of a label
SUFFIXES = (".svg", ".png")


class ScheduledBatch(NamedTuple):
    """One step of a schedule.

    label     what runs: steps of one label share a row
    kind      how it is coloured, as nodes of graphs are
    size      how many run as one
    round     steps of different rounds have a gap between them
    """

    label: str
    kind: str
    size: int
    round: int


def draw_schedule(
    title: str, batches: Sequence[ScheduledBatch], path: str | os.PathLike[str] | None = None
) -> str:
    """Draw a schedule, steps from left to right; write it if there is a path; return it as SVG."""
    scene = schedule_scene(title, batches)
    text = svg_text(scene)
    if path is not None:
        _write(scene, text, Path(path))
    return text


def _write(scene: Scene, text: str, path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ArgumentError(
            f"draw: the suffix of the path must be one of {', '.join(SUFFIXES)}. "
            f"Received: {os.fspath(path)!r:.60}"
        )
    if suffix == ".png":
        write_png(scene, path)
    else:
        path.write_text(text, encoding="utf-8")


def schedule_scene(title: str, batches: Sequence[ScheduledBatch]) -> Scene:
    """Return a schedule as a scene: a row for each label, a column for each step."""
    rows = {label: i for i, label in enumerate(dict.fromkeys([b.label for b in batches]))}
    names = [shortened(label, LONGEST) for label in rows]
    left = MARGIN + max([text_width(name, SMALL) for name in names], default=0.0) + 10
    top = MARGIN + TITLE + 14
    shapes: list[Any] = [SceneText(MARGIN, MARGIN + TITLE, title, TITLE, INK, True, False)]
    for i, name in enumerate(names):
        y = top + i * ROW + ROW / 2 + SMALL / 3
        shapes.append(SceneText(MARGIN, y, name, SMALL, FAINT, centred=False))
    x, before = left, None
    most = max([b.size for b in batches], default=1)
    for batch in batches:
        x += GAP * 3 if before not in (None, batch.round) else 0
        before = batch.round
        shapes += _box(batch, x, top + rows[batch.label] * ROW, most)
        x += COLUMN + GAP
    width = max(x + MARGIN, text_width(title, TITLE, bold=True) + 2 * MARGIN)
    return Scene(title, width, top + len(rows) * ROW + MARGIN, shapes)


def _box(batch: ScheduledBatch, x: float, y: float, most: int) -> list[Any]:
    """Return a box as high as its batch is wide, in relation to the widest, and the number."""
    look = LOOKS[batch.kind]
    height = max(3.0, (ROW - 4) * (batch.size / most) ** 0.5)
    tip = f"{batch.label}: {batch.size} at once"
    box = Rectangle(x, y + (ROW - height) / 2, COLUMN, height, 2.0, look.fill, look.border, tip)
    return [box, SceneText(x + COLUMN / 2, y + ROW / 2 + SMALL / 3, str(batch.size), SMALL, INK)]
