"""The log of a solver, in Caffe's words and lines, so that tools that read such logs still do."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from typing import TextIO


class SolverLog:
    """Lines as glog writes them: "I1117 22:05:11.123456  1234 solver] Iteration 100, ..."."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def __call__(self, text: str, *, part: str = "solver", level: str = "I") -> None:
        """Write a line."""
        moment = datetime.now()
        stamp = f"{level}{moment:%m%d %H:%M:%S.%f} {os.getpid():>5} {part}] "
        print(stamp + text, file=self._stream or sys.stderr, flush=True)


class Silence(SolverLog):
    """A log that nobody reads."""

    def __call__(self, text: str, *, part: str = "solver", level: str = "I") -> None:
        """Write nothing."""


def shown(number: float) -> str:
    """Return a number as C++ streams print it: six digits.

    >>> shown(0.00992565), shown(2.0), shown(1e-7)
    ('0.00992565', '2', '1e-07')
    """
    return f"{number:.6g}"
