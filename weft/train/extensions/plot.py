"""Plots as PNG: curves of loss and metrics, and the confusion matrix (needs matplotlib)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import ArgumentError
from ...core.imports import require
from ...core.tensor import Tensor
from ..extension import PRIORITY_READER, Extension
from ..summary import Summary
from .files import write_whole

if TYPE_CHECKING:
    from ..trainer import Trainer

Series = dict[str, tuple[list[float], list[float]]]
_PAUSE = 20.0  # between drawings, in times that one takes: at most a twentieth of the time
_MAX_CELLS_WITH_TEXT = 20  # classes; more would be unreadable


class _Picture:
    """A file that is drawn anew now and then, so that drawing does not slow down training."""

    def __init__(self, filename: str) -> None:
        self.filename = filename
        self._next_time = 0.0
        self._draw: Callable[[], Any] | None = None

    def change(self, trainer: Trainer, draw: Callable[[], Any]) -> None:
        """Draw the new picture if enough time has passed; otherwise later."""
        self._draw = draw
        if time.perf_counter() >= self._next_time:
            self.complete(trainer)

    def complete(self, trainer: Trainer) -> None:
        """Draw what has not been drawn yet."""
        if self._draw is None:
            return
        began = time.perf_counter()
        save_figure(trainer.out_path(self.filename), self._draw())
        ended = time.perf_counter()
        self._draw = None
        self._next_time = ended + _PAUSE * (ended - began)


class PlotCurves(Extension):
    """Draw observed values over the epochs: those with the same last name in one picture.

    keys       which values (default: all numbers)
    filename   in the output directory
    log_scale  names (e.g. "loss") to draw on a logarithmic axis
    """

    trigger = (1, "epoch")
    priority = PRIORITY_READER

    def __init__(
        self,
        keys: Sequence[str] | None = None,
        *,
        filename: str = "curves.png",
        log_scale: Iterable[str] = (),
    ) -> None:
        require("matplotlib.figure", "plot", "PlotCurves")
        self.keys = None if keys is None else tuple(keys)
        self.log_scale = frozenset(log_scale)
        self._picture = _Picture(filename)
        self._series: Series = {}
        self._summary = Summary()

    def observe(self, trainer: Trainer) -> None:
        """Take the observation of an iteration into the means."""
        self._summary.add(trainer.observation)

    def __call__(self, trainer: Trainer) -> None:
        """Add a point to each curve, and draw if that would not slow down training."""
        for key, value in self._summary.means().items():
            if self.keys is None or key in self.keys:
                xs, ys = self._series.setdefault(key, ([], []))
                xs.append(trainer.epoch_detail)
                ys.append(value)
        self._summary.reset()
        if self._series:
            self._picture.change(trainer, lambda: draw_curves(self._series, self.log_scale))

    def finish(self, trainer: Trainer) -> None:
        """Draw all points."""
        self._picture.complete(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return all points, and the means of those to come."""
        series = {key: [list(xs), list(ys)] for key, (xs, ys) in self._series.items()}
        return {"series": series, "summary": self._summary.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self._series = {key: (list(xs), list(ys)) for key, (xs, ys) in state["series"].items()}
        self._summary.load_state_dict(state["summary"])


class PlotConfusion(Extension):
    """Draw the confusion matrix that an Evaluator with the metric ConfusionMatrix reports."""

    trigger = (1, "epoch")
    priority = PRIORITY_READER

    def __init__(
        self,
        key: str = "val/confusion_matrix",
        *,
        class_names: Sequence[str] | None = None,
        filename: str = "confusion.png",
    ) -> None:
        require("matplotlib.figure", "plot", "PlotConfusion")
        self.key, self.class_names = key, class_names
        self._picture = _Picture(filename)

    def __call__(self, trainer: Trainer) -> None:
        """Draw the matrix if this iteration has one."""
        matrix = trainer.observation.get(self.key)
        if matrix is not None:
            self._picture.change(trainer, lambda: draw_confusion(matrix, self.class_names))

    def finish(self, trainer: Trainer) -> None:
        """Draw the latest matrix."""
        self._picture.complete(trainer)


def draw_curves(series: Mapping[str, tuple[Any, Any]], log_scale: Iterable[str] = ()) -> Any:
    """Return a matplotlib figure with one picture for each last name of the keys."""
    pictures: dict[str, list[str]] = {}
    for key in sorted(series, key=_training_first):
        pictures.setdefault(key.rsplit("/", 1)[-1], []).append(key)
    columns = min(len(pictures), 3) or 1
    rows = -(-len(pictures) // columns) or 1
    figure = _figure((5.0 * columns, 3.6 * rows))
    for index, (name, keys) in enumerate(pictures.items(), 1):
        axes = figure.add_subplot(rows, columns, index)
        for key in keys:
            xs, ys = series[key]
            axes.plot(xs, ys, label=key, marker="." if len(xs) < 50 else None, linewidth=1.6)
        axes.set(title=name, xlabel="epoch", yscale="log" if name in log_scale else "linear")
        axes.grid(visible=True, alpha=0.3)
        axes.legend(frameon=False)
    return figure


def _training_first(key: str) -> bool:
    """Sort keys so that training has the same colour in each picture."""
    return not key.startswith("train/")


def draw_confusion(matrix: Any, class_names: Sequence[str] | None = None) -> Any:
    """Return a matplotlib figure of a confusion matrix, its rows as shares in colour."""
    counts = matrix.numpy() if isinstance(matrix, Tensor) else np.asarray(matrix)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not counts.size:
        raise ArgumentError(f"a confusion matrix must be square. Received: shape {counts.shape}")
    size = len(counts)
    names = [str(i) for i in range(size)] if class_names is None else list(class_names)
    if len(names) != size:
        raise ArgumentError(f"there are {len(names)} class names for {size} classes")
    total = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, total, out=np.zeros(counts.shape), where=total > 0)
    side = min(3.0 + 0.45 * size, 20.0)
    figure = _figure((side + 0.8, side))
    axes = figure.add_subplot(1, 1, 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    figure.colorbar(image, ax=axes, fraction=0.046)
    ticks = range(size)
    axes.set(xticks=ticks, yticks=ticks, xlabel="predicted", ylabel="true")
    axes.set_xticklabels(names, rotation=45 if max(map(len, names)) > 3 else 0)
    axes.set_yticklabels(names)
    if size <= _MAX_CELLS_WITH_TEXT:
        _write_cells(axes, counts, shares)
    return figure


def save_figure(path: Path, figure: Any) -> None:
    """Write a figure as PNG, whole or not at all."""
    # "tight": the layout forgets the label beside an axis of equal aspect.
    options = {"dpi": 110, "format": "png", "bbox_inches": "tight"}
    write_whole(path, lambda target: figure.savefig(target, **options))


def _write_cells(axes: Any, counts: Any, shares: Any) -> None:
    for (row, column), count in np.ndenumerate(counts):
        text = f"{count:.2f}" if counts.dtype.kind == "f" else str(count)
        color = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, text, ha="center", va="center", color=color, fontsize=8)


def _figure(size: tuple[float, float]) -> Any:
    """Return a figure that needs no display and no global state."""
    figure = require("matplotlib.figure", "plot", "a plot")
    return figure.Figure(figsize=size, layout="constrained")
