"""What ranks print: that of rank 0 on the terminal, that of each in a log of its own.

mpiexec passes on what rank 0 prints, and its own long messages between lines of dashes; those are
kept, and shown only where nothing better is known.
"""

from __future__ import annotations

import os
import re
import selectors
import sys
from pathlib import Path
from typing import IO, Any, Final

_RULE: Final = re.compile(rb"-{60,}\s*")
_NOISE: Final = re.compile(rb"\s*\d+ more process(es)? ha(s|ve) sent help message .*")
TAIL: Final = 20


def log_path(folder: Path, rank: int) -> Path:
    """Return the log of a rank."""
    return folder / f"rank-{rank}.log"


def tail(path: Path, lines: int = TAIL) -> str:
    """Return the last lines of a log; nothing if it cannot be read here."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - 20_000))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


class Terminal:
    """Passes on what mpiexec prints, and writes the log of rank 0."""

    def __init__(self, selector: selectors.BaseSelector, folder: Path) -> None:
        self._selector = selector
        self._log = log_path(folder, 0).open("ab")
        self.said: list[bytes] = []  # by mpiexec itself
        self._aside = False
        self._rest: dict[int, bytes] = {}

    def follow(self, pipe: IO[bytes], to: Any) -> None:
        """Pass on a pipe of mpiexec."""
        os.set_blocking(pipe.fileno(), False)

        def read() -> None:
            data = _read(pipe)
            if data is None:
                return
            if not data:
                self._selector.unregister(pipe)
            self._pass_on(pipe.fileno(), data, to)

        self._selector.register(pipe, selectors.EVENT_READ, read)

    def _pass_on(self, pipe: int, data: bytes, to: Any) -> None:
        if to is sys.stdout:  # as it comes: a progress bar has no lines
            self._write(data, to)
            return
        *lines, rest = (self._rest.pop(pipe, b"") + data).split(b"\n")
        if rest and data:
            self._rest[pipe] = rest
        elif rest:
            lines.append(rest)
        for line in lines:
            self._pass_line(line + b"\n", to)

    def _pass_line(self, line: bytes, to: Any) -> None:
        if _RULE.fullmatch(line):
            self._aside = not self._aside
        elif self._aside or _NOISE.fullmatch(line.strip()) or _is_of_the_library(line):
            self.said.append(line)
        else:
            self._write(line, to)

    def _write(self, data: bytes, to: Any) -> None:
        self._log.write(data)
        self._log.flush()
        to.buffer.write(data) if hasattr(to, "buffer") else to.write(data.decode(errors="replace"))
        to.flush()

    def close(self) -> None:
        """Close the log."""
        self._log.close()


def _is_of_the_library(line: bytes) -> bool:
    """Tell lines that Open MPI writes for its own developers."""
    return b"/ompi/mca/" in line or b"/opal/mca/" in line or b"/prte/" in line or not line.strip()


def _read(pipe: IO[bytes]) -> bytes | None:
    try:
        return os.read(pipe.fileno(), 65536)
    except BlockingIOError:
        return None
    except OSError:  # a terminal's other end is closed
        return b""
