"""Messages of TensorBoard's: `tf.Summary`, `tf.HistogramProto` and events, by the wire format.

Summary: value = 1; Value: tag = 1, simple_value = 2, image = 4, histo = 5, tensor = 8,
metadata = 9; Event: wall_time = 1, step = 2, file_version = 3, graph_def = 4, summary = 5
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..data import read_tfrecords
from ..io.wire import Message, MessageWriter

__all__ = ["Event", "HistogramProto", "Summary", "summary_iterator"]


class HistogramProto:
    """How numbers are distributed: their count in buckets up to limits, and what they sum to."""

    def __init__(
        self,
        min: float = 0.0,
        max: float = 0.0,
        num: float = 0.0,
        sum: float = 0.0,
        sum_squares: float = 0.0,
        bucket_limit: Sequence[float] = (),
        bucket: Sequence[float] = (),
    ) -> None:
        self.min, self.max, self.num, self.sum = min, max, num, sum
        self.sum_squares = sum_squares
        self.bucket_limit, self.bucket = list(bucket_limit), list(bucket)

    @classmethod
    def of(cls, values: np.ndarray[Any, Any]) -> HistogramProto:
        """Return the histogram of numbers, in TensorFlow's buckets: each ten per cent wider."""
        flat = np.asarray(values, np.float64).ravel()
        finite = flat[np.isfinite(flat)]
        if not finite.size:
            return cls(bucket_limit=[_LIMITS[-1]], bucket=[0.0])
        places = np.searchsorted(_LIMITS, finite, side="right").clip(0, len(_LIMITS) - 1)
        counts = np.bincount(places, minlength=len(_LIMITS))
        there = np.flatnonzero(counts)
        # an empty bucket before the first one says where that begins
        first, last = np.maximum(there[0] - 1, 0), there[-1]
        return cls(
            float(finite.min()),
            float(finite.max()),
            float(finite.size),
            float(finite.sum()),
            float(np.square(finite).sum()),
            _LIMITS[first : last + 1].tolist(),
            counts[first : last + 1].astype(float).tolist(),
        )

    def _written(self) -> MessageWriter:
        made = MessageWriter().float64(1, self.min).float64(2, self.max).float64(3, self.num)
        made.float64(4, self.sum).float64(5, self.sum_squares)
        return made.packed_doubles(6, self.bucket_limit).packed_doubles(7, self.bucket)

    @classmethod
    def _parsed(cls, message: Message) -> HistogramProto:
        low, high, count, total, squares = (message.float64(number) for number in range(1, 6))
        limits, counts = message.doubles(6).tolist(), message.doubles(7).tolist()
        return cls(low, high, count, total, squares, limits, counts)


def _limits() -> np.ndarray[Any, Any]:
    """Return the ends of TensorFlow's buckets, from the smallest number to the largest."""
    found, limit = [], 1e-12
    while limit < 1e20:
        found.append(limit)
        limit *= 1.1
    largest = float(np.finfo(np.float64).max)
    return np.array([-largest, *[-x for x in reversed(found)], 0.0, *found, largest])


_LIMITS = _limits()


class Image:
    """A picture as a PNG file."""

    def __init__(
        self,
        height: int = 0,
        width: int = 0,
        colorspace: int = 0,
        encoded_image_string: bytes = b"",
    ) -> None:
        self.height, self.width, self.colorspace = height, width, colorspace
        self.encoded_image_string = encoded_image_string

    def _written(self) -> MessageWriter:
        made = MessageWriter().varint(1, self.height).varint(2, self.width)
        return made.varint(3, self.colorspace).raw(4, self.encoded_image_string)

    @classmethod
    def _parsed(cls, message: Message) -> Image:
        return cls(message.integer(1), message.integer(2), message.integer(3), message.raw(4))


class Value:
    """One value of a summary: `tf.Summary.Value(tag="loss", simple_value=0.5)`."""

    def __init__(
        self,
        tag: str = "",
        simple_value: float | None = None,
        image: Image | None = None,
        histo: HistogramProto | None = None,
        text: str | None = None,
        node_name: str = "",
        **others: Any,
    ) -> None:
        if others:
            raise ValueError(f"Summary.Value: no such field: {', '.join(others)}")
        self.tag, self.node_name, self.text = tag, node_name, text
        self.image, self.histo = image, histo
        self._simple_value = None if simple_value is None else float(simple_value)

    @property
    def simple_value(self) -> float:
        """Return the number; 0 if it is none."""
        return self._simple_value or 0.0

    @simple_value.setter
    def simple_value(self, value: Any) -> None:
        self._simple_value = float(value)

    def WhichOneof(self, name: str) -> str | None:
        """Return which kind of value it is."""
        kinds = {
            "simple_value": self._simple_value,
            "image": self.image,
            "histo": self.histo,
            "tensor": self.text,
        }
        return next((kind for kind, value in kinds.items() if value is not None), None)

    HasField = WhichOneof

    def _written(self) -> MessageWriter:
        made = MessageWriter().text(1, self.tag)
        if self._simple_value is not None:
            made.float32(2, self._simple_value)
        if self.image is not None:
            made.message(4, self.image._written())
        if self.histo is not None:
            made.message(5, self.histo._written())
        if self.text is not None:
            tensor = MessageWriter().varint(1, _STRING).message(2, MessageWriter())
            made.message(8, tensor.text(8, self.text))
            made.message(9, MessageWriter().message(1, MessageWriter().text(1, "text")))
        return made

    @classmethod
    def _parsed(cls, message: Message) -> Value:
        image, histo, tensor = (message.message(number) for number in (4, 5, 8))
        texts = [] if tensor is None else [bytes(view) for view in tensor.views(8)]
        return cls(
            message.text(1),
            message.float32(2) if 2 in message else None,
            None if image is None else Image._parsed(image),
            None if histo is None else HistogramProto._parsed(histo),
            texts[0].decode("utf-8", "replace") if texts else None,
        )


_STRING = 7  # the number of texts among TensorFlow's types


class Summary:
    """What is shown at one step: `tf.Summary(value=[tf.Summary.Value(...)])`."""

    Value, Image = Value, Image

    def __init__(self, value: Sequence[Any] = ()) -> None:
        self.value = _Values(value)

    def SerializeToString(self) -> bytes:
        """Return the message."""
        made = MessageWriter()
        for value in self.value:
            made.message(1, value._written())
        return made.content()

    @classmethod
    def FromString(cls, content: bytes) -> Summary:
        """Return a message that was written."""
        return cls([Value._parsed(value) for value in Message(content).messages(1)])

    def ParseFromString(self, content: bytes) -> int:
        """Take what a message holds."""
        self.value = self.FromString(content).value
        return len(content)

    def MergeFromString(self, content: bytes) -> int:
        """Add what a message holds."""
        self.value.extend(self.FromString(content).value)
        return len(content)


class _Values(list[Value]):
    """Values of a summary."""

    def add(self, **fields: Any) -> Value:
        """Add one; return it."""
        self.append(Value(**fields))
        return self[-1]


class Event:
    """What an event file has at one time: a summary, a graph, or the version of the file."""

    def __init__(
        self,
        wall_time: float = 0.0,
        step: int = 0,
        summary: Summary | None = None,
        file_version: str = "",
        graph_def: bytes = b"",
    ) -> None:
        self.wall_time, self.step = wall_time, step
        self.summary = Summary() if summary is None else summary
        self.file_version, self.graph_def = file_version, graph_def

    @classmethod
    def FromString(cls, content: bytes) -> Event:
        """Return a message that was written."""
        message = Message(content)
        return cls(
            message.float64(1),
            message.integer(2),
            Summary.FromString(message.raw(5)) if 5 in message else None,
            message.text(3),
            message.raw(4),
        )


def summary_iterator(path: Any) -> Iterator[Event]:
    """Yield the events of an event file."""
    return (Event.FromString(record) for record in read_tfrecords(path))
