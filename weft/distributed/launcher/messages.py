"""What ranks and the launcher say to one another: lines of JSON over TCP.

A rank says who it is (with the token that it got from the launcher, so that nobody else is
believed), then how it is, then that it ends, or with which error, and at last, when all others are
through as well, that it says nothing more. Nothing that is received is run or unpickled, and a line
has a largest length.
"""

from __future__ import annotations

import json
from typing import Any, Final

LONGEST: Final = 1_000_000  # bytes of a line; tracebacks are cut before
ADDRESS: Final = "WEFT_WATCH"  # host:port:token
ATTEMPT: Final = "WEFT_ATTEMPT"  # 0, then how often the job was started again
LOGS: Final = "WEFT_RANK_LOGS"  # the folder of logs
THREADS: Final = "WEFT_RANK_THREADS"  # threads of each rank, where the user said so
MEMORY: Final = "WEFT_HOST_MEMORY"  # bytes that the ranks of a host may have together

HELLO, BEAT, ERROR, BYE, THROUGH = "hello", "beat", "error", "bye", "through"


def encode(kind: str, **said: Any) -> bytes:
    """Return a message as a line."""
    return json.dumps({"kind": kind, **said}, separators=(",", ":")).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line, or nothing if it is none."""
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) and isinstance(said.get("kind"), str) else None


class LineBuffer:
    """Bytes as they come, lines as they are complete."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes; return the lines that are complete now. Too long a line is an error."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError("a line is too long")
        return lines
