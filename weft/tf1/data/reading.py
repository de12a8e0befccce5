"""Files, as datasets and readers of queues take them: records of bytes, by TensorFlow's errors."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...core.errors import WeftError
from ...data import read_tfrecords
from ...data.bounded import read_at_most
from ...data.errors import check_file
from ...data.inflate import opened
from ..errors import DataLossError, InvalidArgumentError, NotFoundError, OpError

_CHUNK = 1 << 16
_COMPRESSIONS = {"": "none", "GZIP": "gzip", "ZLIB": "zlib"}


@contextmanager
def tensorflow_errors() -> Iterator[None]:
    """Let what goes wrong with files be TensorFlow's errors."""
    try:
        yield
    except (FileNotFoundError, IsADirectoryError) as error:
        raise NotFoundError(None, None, f"{error}; No such file or directory") from error
    except OpError:
        raise
    except WeftError as error:
        raise DataLossError(None, None, str(error)) from error


def path_of(name: Any) -> str:
    """Return a file name, of which runs make bytes."""
    found = name.item() if hasattr(name, "item") else name
    return found.decode() if isinstance(found, bytes) else str(found)


def compression_of(given: Any) -> str:
    """Return the name of a compression by TensorFlow's."""
    found = path_of("" if given is None else given)
    if found not in _COMPRESSIONS:
        raise InvalidArgumentError(
            None, None, f"compression_type must be '', 'GZIP' or 'ZLIB'. Received: {found!r}"
        )
    return _COMPRESSIONS[found]


def records(path: Any, compression: str = "none") -> Iterator[bytes]:
    """Yield the records of a TFRecord file."""
    with tensorflow_errors():
        yield from read_tfrecords(path_of(path), compression=compression)


def lines(path: Any, compression: str = "none") -> Iterator[bytes]:
    """Yield the lines of a file without their ends."""
    with tensorflow_errors(), opened(check_file(path_of(path)), compression != "none") as stream:
        rest = b""
        while part := stream.read(_CHUNK):
            *whole, rest = (rest + part).split(b"\n")
            yield from (line.removesuffix(b"\r") for line in whole)
        if rest:
            yield rest.removesuffix(b"\r")


def fixed_records(path: Any, size: int, header: int = 0, footer: int = 0) -> Iterator[bytes]:
    """Yield records of one size, between what stands before and after them in a file."""
    with tensorflow_errors():
        shown = check_file(path_of(path))
        with open(shown, "rb") as file:
            total = file.seek(0, 2) - header - footer
            if total < 0 or total % size:
                raise InvalidArgumentError(
                    None,
                    None,
                    f"Excess bytes in {shown}: {max(total, 0)} bytes are no whole number of "
                    f"records of {size}",
                )
            file.seek(header)
            for _ in range(total // size):
                yield bytes(read_at_most(file, size))


def matching_files(pattern: Any) -> Any:
    """Return the names of the files that match patterns, sorted."""
    listed = [pattern] if isinstance(pattern, (str, bytes)) else list(pattern)
    found = sorted({name for each in listed for name in glob.glob(path_of(each))})
    if not found:
        raise NotFoundError(None, None, f"No files matched pattern: {pattern}")
    return np.array([name.encode() for name in found], object)
