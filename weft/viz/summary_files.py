"""Event files, read back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..core.errors import ArgumentError
from ..core.imports import require
from ..data import DataFileError, read_tfrecords


class SummaryRecord(NamedTuple):
    """One summary: at which step, its name, "scalar", "histogram", "image" or "text", and it.

    The value of a histogram has `min`, `max`, `num`, `sum`, `bucket_limit` and `bucket`; that of an
    image is the bytes of a PNG file.
    """

    step: int
    name: str
    kind: str
    value: Any


def read(folder: str | os.PathLike[str]) -> list[SummaryRecord]:
    """Return the summaries in the event files of a folder, in the order they were written.

    A record that was cut off or damaged, as by a crash, ends its file.
    """
    files = sorted(Path(folder).glob("events.out.tfevents.*"))
    if not files:
        raise ArgumentError(f"summary.read: no event files are in {os.fspath(folder)}")
    event_type = require("tensorboardX.proto.event_pb2", "tensorboard", "summaries").Event
    return [
        SummaryRecord(event.step, value.tag.removesuffix("/text_summary"), *_content(value))
        for path in files
        for data in _records(path)
        for event in [event_type.FromString(data)]
        for value in event.summary.value
    ]


def _records(path: Path) -> Iterator[bytes]:
    """Yield the records of a file up to the first that is damaged."""
    with suppress(DataFileError):
        yield from read_tfrecords(path, compression="none")


def _content(value: Any) -> tuple[str, Any]:
    kind = value.WhichOneof("value")
    if kind == "simple_value":
        return "scalar", value.simple_value
    if kind == "histo":
        return "histogram", value.histo
    if kind == "image":
        return "image", value.image.encoded_image_string
    return "text", value.tensor.string_val[0].decode()
