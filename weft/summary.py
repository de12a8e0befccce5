"""Summaries for TensorBoard: what a program writes down while it runs (extra: tensorboard)."""

from __future__ import annotations

from .viz.summaries import (
    SummaryWriter,
    current_writer,
    histogram,
    image,
    scalar,
    text,
    writer,
)
from .viz.summary_files import SummaryRecord, read

__all__ = [
    "SummaryRecord",
    "SummaryWriter",
    "current_writer",
    "histogram",
    "image",
    "read",
    "scalar",
    "text",
    "writer",
]
