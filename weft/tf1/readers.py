"""Readers of files whose names come from queues: `key, value = reader.read(queue)`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .data import reading
from .dtypes import int64, string
from .host import host_operation
from .queues import QueueBase
from .recording import convert_to_tensor

__all__ = [
    "FixedLengthRecordReader",
    "IdentityReader",
    "ReaderBase",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
]


class _Place:
    """Where a reader stands in a session."""

    def __init__(self) -> None:
        self.name = b""
        self.items: Iterator[tuple[str, bytes]] = iter(())
        self.produced = 0
        self.units = 0


class ReaderBase:
    """Reads pieces of the files whose names a queue gives: `key, value = reader.read(queue)`.

    work   yields (what the key says after the name, the bytes) of the pieces of a file
    """

    def __init__(self, work: Callable[[bytes], Iterator[tuple[str, bytes]]]) -> None:
        self._work = work
        self._places: WeakKeyDictionary[Any, _Place] = WeakKeyDictionary()

    def read(self, queue: QueueBase, name: str | None = None) -> list[Any]:
        """Return the key and the bytes of the next piece in each run."""

        def call(session: Any) -> list[Any]:
            return list(self._next(session, queue))

        made: list[Any] = host_operation(
            "ReaderReadV2", call, outputs=[(string, ()), (string, ())], name=name or "ReaderReadV2"
        )
        return made

    def read_up_to(self, queue: QueueBase, num_records: Any, name: str | None = None) -> list[Any]:
        """Return the keys and the bytes of up to so many pieces, of one file at a time."""

        def call(session: Any, count: Any) -> list[Any]:
            found = [self._next(session, queue)]
            place = self._places[session]
            while len(found) < int(count) and (item := next(place.items, None)) is not None:
                found.append(self._keyed(place, item))
            return [_texts([pair[i] for pair in found]) for i in range(2)]

        made: list[Any] = host_operation(
            "ReaderReadUpToV2",
            call,
            [convert_to_tensor(num_records)],
            outputs=[(string, [None]), (string, [None])],
            name=name or "ReaderReadUpToV2",
        )
        return made

    def num_records_produced(self, name: str | None = None) -> Any:
        """Return how many pieces were read."""
        return self._counted("produced", name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """Return how many files were read to the end."""
        return self._counted("units", name)

    def reset(self, name: str | None = None) -> Any:
        """Return an operation that forgets where the reader stands."""
        return host_operation("ReaderResetV2", lambda session: self._places.pop(session, None))

    def _counted(self, which: str, name: str | None) -> Any:
        return host_operation(
            "ReaderNumRecordsProducedV2",
            lambda session: [np.int64(getattr(self._place(session), which)).reshape(())],
            outputs=[(int64, ())],
            name=name,
        )

    def _place(self, session: Any) -> _Place:
        return self._places.setdefault(session, _Place())

    def _next(self, session: Any, queue: QueueBase) -> tuple[bytes, bytes]:
        place = self._place(session)
        while (item := next(place.items, None)) is None:
            place.units += bool(place.name)
            (name,) = queue.taken(session, 1)[0]
            place.name = np.asarray(name, object).item()
            place.items = self._work(place.name)
        return self._keyed(place, item)

    @staticmethod
    def _keyed(place: _Place, item: tuple[str, bytes]) -> tuple[bytes, bytes]:
        place.produced += 1
        return place.name + item[0].encode(), item[1]


def _numbered(pieces: Iterator[bytes], first: int = 0) -> Iterator[tuple[str, bytes]]:
    return ((f":{i}", piece) for i, piece in enumerate(pieces, first))


class TextLineReader(ReaderBase):
    """The lines of text files; keys are `name:number of the line`."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        skipped = skip_header_lines or 0

        def work(path: bytes) -> Iterator[tuple[str, bytes]]:
            numbered = _numbered(reading.lines(path), 1)
            return (item for i, item in enumerate(numbered) if i >= skipped)

        super().__init__(work)


class TFRecordReader(ReaderBase):
    """The records of TFRecord files."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        kind = reading.compression_of(getattr(options, "compression_type", None))
        super().__init__(lambda path: _numbered(reading.records(path, kind)))


class WholeFileReader(ReaderBase):
    """Whole files; keys are their names."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(lambda path: iter([("", _whole(path))]))


class IdentityReader(ReaderBase):
    """The names themselves, as keys and as values."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(lambda path: iter([("", path)]))


class FixedLengthRecordReader(ReaderBase):
    """Pieces of one size of files."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: Any = None,
    ) -> None:
        if hop_bytes:
            raise NotImplementedError("FixedLengthRecordReader: hop_bytes is not served")
        super().__init__(
            lambda path: _numbered(
                reading.fixed_records(path, record_bytes, header_bytes or 0, footer_bytes or 0)
            )
        )


def _whole(path: bytes) -> bytes:
    with reading.tensorflow_errors(), open(reading.path_of(path), "rb") as file:
        return file.read()


def _texts(values: Sequence[bytes]) -> Any:
    made = np.empty(len(values), object)
    made[:] = values
    return made
