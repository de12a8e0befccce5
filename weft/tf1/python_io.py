"""`tf.python_io`: TFRecord files, written and read by Python."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .. import data
from .data.reading import compression_of, records

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE, ZLIB, GZIP = 0, 1, 2


_BY_NUMBER = {0: "", 1: "ZLIB", 2: "GZIP"}


class TFRecordOptions:
    """How a file is compressed: "", "GZIP" or "ZLIB"."""

    def __init__(self, compression_type: Any = None, **others: Any) -> None:
        found = _BY_NUMBER.get(compression_type, compression_type)
        self.compression_type = "" if found is None else found

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """Return the name of the compression of options."""
        return _name_of(options)


def _name_of(options: Any) -> str:
    if options is None:
        return ""
    found = getattr(options, "compression_type", options)
    return str(_BY_NUMBER.get(found, found))


class TFRecordWriter(data.TFRecordWriter):
    """Writes records into a TFRecord file."""

    def __init__(self, path: Any, options: Any = None) -> None:
        super().__init__(path, compression=compression_of(_name_of(options)))


def tf_record_iterator(path: Any, options: Any = None) -> Iterator[bytes]:
    """Yield the records of a TFRecord file."""
    return records(path, compression_of(_name_of(options)))
