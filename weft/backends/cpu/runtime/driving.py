"""Drive control flow from Python, where a body calls reference kernels.

The native parts of a body are functions of their own then. What they share with Python are the
numbers in memory that windows move with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.dtype import Array
from ....lower.schedule import BranchCalls, Calls, LoopCalls
from ....lower.storage import Buffer, View
from ..codegen.control import first_index

Run = Callable[[Sequence[Any]], object]
Read = Callable[[View], Array]


def drive(calls: Calls, run: Run, read: Read, word: Callable[[Buffer], Array]) -> None:
    """Run a loop or a branch; `run` takes its steps, `read` and `word` find memory."""
    if isinstance(calls, BranchCalls):
        run(calls.yes if read(calls.kernel.chosen) else calls.no)
    else:
        _drive_loop(calls, run, read, word)


def _drive_loop(calls: LoopCalls, run: Run, read: Read, word: Callable[[Buffer], Array]) -> None:
    kernel = calls.kernel
    index, half = word(kernel.index), word(kernel.half)
    index[...], half[...] = first_index(kernel), 0
    taken = 0
    while kernel.length is None or taken < kernel.length:
        run(calls.test)
        if kernel.holds is not None and not read(kernel.holds):
            return
        run(calls.body)
        taken += 1
        index += -1 if kernel.reverse else 1
        half[...] = 1 - half
        if kernel.stops is not None and read(kernel.stops):
            return


def behind_window(
    buffer: Buffer, offset: int, word: Callable[[Buffer], Array]
) -> tuple[Buffer, int]:
    """Return the buffer behind windows, and where an element of the window is in it now."""
    while buffer.window is not None:
        window = buffer.window
        offset += window.offset + int(word(window.word)[()]) * window.step
        buffer = window.buffer
    return buffer, offset
