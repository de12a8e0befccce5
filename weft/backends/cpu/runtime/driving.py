"""Drive control flow from Python, where a body calls operators.

The native parts of a body are functions of their own then. What they share with Python are the
numbers in memory that windows move with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ....lower.schedule import BranchCalls, Calls
from ...host import Read, Word, repeat


def drive(calls: Calls, run: Callable[[Sequence[Any]], object], read: Read, word: Word) -> None:
    """Run a loop or a branch; `run` takes its steps, `read` and `word` find memory."""
    if isinstance(calls, BranchCalls):
        run(calls.yes if read(calls.kernel.chosen) else calls.no)
    else:
        repeat(calls.kernel, partial(run, calls.test), partial(run, calls.body), read, word)
