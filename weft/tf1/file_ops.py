"""Whole files, read and written by operations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .data import reading
from .dtypes import string
from .host import host_operation
from .recording import convert_to_tensor

__all__ = ["matching_files", "read_file", "write_file"]


def read_file(filename: Any, name: str | None = None) -> Any:
    """Return a tensor with the bytes of a file."""

    def call(session: Any, path: Any) -> list[bytes]:
        with reading.tensorflow_errors(), open(reading.path_of(path), "rb") as file:
            return [file.read()]

    given = convert_to_tensor(filename, string)
    return host_operation("ReadFile", call, [given], outputs=[(string, ())], name=name)


def write_file(filename: Any, contents: Any, name: str | None = None) -> Any:
    """Return an operation that writes bytes into a file, whose folder is made if need be."""

    def call(session: Any, path: Any, content: Any) -> None:
        target = reading.path_of(path)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        with open(target, "wb") as file:
            file.write(np.asarray(content, object).item())

    given = [convert_to_tensor(filename, string), convert_to_tensor(contents, string)]
    return host_operation("WriteFile", call, given, name=name)


def matching_files(pattern: Any, name: str | None = None) -> Any:
    """Return a tensor with the names of the files that match patterns, sorted."""

    def call(session: Any, patterns: Any) -> list[Any]:
        return [reading.matching_files(np.atleast_1d(patterns).tolist())]

    given = convert_to_tensor(pattern, string)
    return host_operation("MatchingFiles", call, [given], outputs=[(string, [None])], name=name)
