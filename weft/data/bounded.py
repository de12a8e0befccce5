"""Reading no more than is there: what a file claims of itself is held against what it has."""

from __future__ import annotations

import os
from typing import Any

CHUNK = 1 << 20  # bytes that are asked for at once: a stream may have fewer


def remaining_bytes(file: Any) -> int:
    """Return how many bytes follow the position of an open file."""
    return int(os.fstat(file.fileno()).st_size) - int(file.tell())


def read_at_most(stream: Any, count: int) -> bytearray:
    """Return up to `count` bytes; memory is taken for what is there, not for what is asked."""
    content = bytearray()
    while len(content) < count and (part := stream.read(min(CHUNK, count - len(content)))):
        content += part
    return content
