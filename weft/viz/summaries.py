"""Summaries for TensorBoard: numbers, histograms, images and texts, by step (needs tensorboardX).

    with wf.summary.writer("runs/a") as writer:
        for writer.step, batch in enumerate(batches):
            loss = train(batch)
            wf.summary.scalar("loss", loss)

The functions write to the innermost writer that is open, and do nothing if none is: what a network
says costs nothing until somebody listens. In a graph, and in a compiled function, they are nodes
that write once in each run, in the order of the program.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.imports import require
from ..core.modes import current_tracer
from ..core.shape import as_int
from ..core.tensor import Tensor
from ..graph.debug.nodes import callback
from ..graph.graph import Graph
from .summary_images import as_image, encoded_png
from .tensorboard import write_tensorboard_graph

PURPOSE = "summaries"
_writers: list[SummaryWriter] = []


class SummaryWriter:
    """Writes event files into a folder; inside `with` it is where summaries go.

    step   the step of what is written without one; set it as training goes on

    Its methods have TensorFlow's names and tensorboardX's (`scalar` and `add_scalar`).
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        step: int = 0,
        purge_step: int | None = None,
        flush_seconds: float = 120.0,
    ) -> None:
        if not isinstance(folder, (str, os.PathLike)):
            raise ArgumentTypeError(
                f"summary.writer: folder must be a path. Received: {folder!r:.60}"
            )
        board = require("tensorboardX", "tensorboard", PURPOSE)
        self.folder = Path(folder)
        self.step = step
        self._board = board.SummaryWriter(
            os.fspath(folder), purge_step=purge_step, flush_secs=flush_seconds
        )
        self._closed = False

    # -- what is written ---------------------------------------------------------------------------

    def scalar(self, name: str, value: Any, step: Any = None) -> None:
        """Write a number."""
        array = _numbers(value, f"summary.scalar {name!r}")
        if array.size == 1:
            self._writing().add_scalar(_tag(name), float(array.reshape(())), self._step(step))
            return
        if array.ndim != 1:
            raise ArgumentError(
                f"summary.scalar {name!r}: takes one number; write a histogram of more. "
                f"Received: shape {array.shape}"
            )
        for i, number in enumerate(array):  # the examples of a batch under vmap
            self.scalar(f"{name}/{i}", number, step)

    def histogram(self, name: str, values: Any, step: Any = None, *, bins: Any = 30) -> None:
        """Write how numbers are distributed; those that are not finite are left out."""
        array = _numbers(values, f"summary.histogram {name!r}").ravel()
        finite = array[np.isfinite(array)]
        tag, when, board = _tag(name), self._step(step), self._writing()
        if not finite.size:
            return
        try:
            board.add_histogram(tag, finite, when, bins=bins)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"summary.histogram {name!r}: bins must be a number of bins, their edges or a rule "
                f"such as 'auto'. Received: {bins!r:.60} ({error})"
            ) from None

    def image(self, name: str, image: Any, step: Any = None, *, layout: str | None = None) -> None:
        """Write a picture: floats of 0 to 1, or bytes.

        layout   "HW", "HWC", "CHW", "NCHW" or "NHWC"; by default (H, W), (C, H, W) or (N, C, H, W).
                 Several pictures are put side by side.
        """
        pixels = as_image(_array(image), layout, f"summary.image {name!r}")
        height, width, channels = pixels.shape
        messages = require("tensorboardX.proto.summary_pb2", "tensorboard", PURPOSE)
        made = messages.Summary.Image(
            height=height,
            width=width,
            colorspace=channels,
            encoded_image_string=encoded_png(pixels),
        )
        value = messages.Summary.Value(tag=_tag(name), image=made)
        summary = messages.Summary(value=[value])
        self._writing().file_writer.add_summary(summary, self._step(step))

    def text(self, name: str, text: str, step: Any = None) -> None:
        """Write a text, in Markdown."""
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"summary.text {name!r}: takes a string. Received: {text!r:.60}"
            )
        self._writing().add_text(_tag(name), text, self._step(step))

    def graph(self, graph: Graph) -> None:
        """Write a graph, for the tab of graphs."""
        write_tensorboard_graph(graph, self.folder)

    def message(self, content: bytes, step: Any = None) -> None:
        """Write a Summary message that was made elsewhere."""
        messages = require("tensorboardX.proto.summary_pb2", "tensorboard", PURPOSE)
        summary = messages.Summary.FromString(content)
        self._writing().file_writer.add_summary(summary, self._step(step))

    def graph_message(self, content: bytes) -> None:
        """Write a GraphDef message that was made elsewhere."""
        events = require("tensorboardX.proto.event_pb2", "tensorboard", PURPOSE)
        self._writing().file_writer.event_writer.add_event(events.Event(graph_def=content))

    add_scalar, add_histogram, add_image, add_text, add_graph = (
        scalar,
        histogram,
        image,
        text,
        graph,
    )

    # -- files -------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Put everything written so far into the file."""
        self._board.flush()

    def close(self) -> None:
        """Write everything out and close the file; doing so twice is harmless."""
        if not self._closed:
            self._closed = True
            self._board.close()

    def __enter__(self) -> SummaryWriter:
        """Let summaries go here."""
        self._writing()
        _writers.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        """Let summaries go where they went before, and close the file."""
        leave(self)
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._closed else f"at step {self.step}"
        return f"<summary writer to {self.folder}, {state}>"

    def _writing(self) -> Any:
        if self._closed:
            raise ArgumentError(f"summary: the writer to {self.folder} is closed; make another one")
        return self._board

    def _step(self, step: Any) -> int:
        given = self.step if step is None else step
        return as_int(np.asarray(given).item(), "summary: step")


def writer(folder: str | os.PathLike[str], **options: Any) -> SummaryWriter:
    """Return a writer of event files into a folder; inside `with` summaries go to it.

    step            the step to begin with; set `writer.step` as training goes on
    purge_step      hide events of an earlier run in the folder from this step on
    flush_seconds   how long what is written may stay in memory
    """
    return SummaryWriter(folder, **options)


def current_writer() -> SummaryWriter | None:
    """Return the writer that summaries go to, None if there is none."""
    return _writers[-1] if _writers else None


def enter(made: SummaryWriter) -> None:
    """Let summaries go to a writer."""
    _writers.append(made)


def leave(made: SummaryWriter) -> None:
    """Let summaries go to a writer no more."""
    if made in _writers:
        _writers.remove(made)


# -- in programs -----------------------------------------------------------------------------------


def scalar(name: str, value: Any, step: Any = None) -> None:
    """Write a number to the writer that is open, if one is.

    step   by default that of the writer; a number, or a tensor of one
    """
    size = value.shape if isinstance(value, Tensor) else np.shape(value)
    if any(n != 1 for n in size):
        raise ArgumentError(
            f"summary.scalar {name!r}: takes one number; write a histogram of more, or its mean. "
            f"Received: shape {tuple(size)}"
        )
    _happen(SummaryWriter.scalar, name, value, step)


def histogram(name: str, values: Any, step: Any = None, *, bins: Any = 30) -> None:
    """Write how the elements of a tensor are distributed."""
    _happen(SummaryWriter.histogram, name, values, step, bins=bins)


def image(name: str, image: Any, step: Any = None, *, layout: str | None = None) -> None:
    """Write a picture (H, W), (C, H, W) or (N, C, H, W), or in the layout that is said."""
    _happen(SummaryWriter.image, name, image, step, layout=layout)


def text(name: str, text: str, step: Any = None) -> None:
    """Write a text, in Markdown."""
    if not isinstance(text, str):
        raise ArgumentTypeError(f"summary.text {name!r}: takes a string. Received: {text!r:.60}")
    _happen(SummaryWriter.text, name, text, step)


def _happen(write: Callable[..., None], name: str, value: Any, step: Any, **options: Any) -> None:
    """Write now, or in each run of the program that is being built."""
    _tag(name)
    if current_tracer() is None and current_writer() is None:
        return
    callback(partial(_write, write, name, options), value, step)


def _write(
    write: Callable[..., None], name: str, options: dict[str, Any], value: Any, step: Any
) -> None:
    found = current_writer()
    if found is not None:
        write(found, name, value, step, **options)


def _array(value: Any) -> np.ndarray[Any, Any]:
    return value.numpy() if isinstance(value, Tensor) else np.asarray(value)


def _numbers(value: Any, what: str) -> np.ndarray[Any, Any]:
    array = _array(value)
    if array.dtype.kind not in "biufV":
        raise ArgumentTypeError(f"{what}: takes numbers. Received: {value!r:.60}")
    return array.astype(np.float64)


def _tag(name: str) -> str:
    """Return a name as TensorBoard takes it."""
    given: Any = name
    if not isinstance(given, str) or not given:
        raise ArgumentTypeError(f"summary: a name must be a string. Received: {given!r:.60}")
    return re.sub(r"[^-/\w.]", "_", name).lstrip("/")
