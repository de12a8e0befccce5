"""Give fetches memory of their own.

What a program hands out is an array in C order that nothing else lies in. A fetch that is part of a
buffer, or goes through it in another order, is copied by a kernel: by all threads, with the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

from .kinds import DTYPES
from .lowering import Lowered
from .storage import Buffer, View


def with_own_memory(
    lowered: Lowered, fetched: Sequence[View], written: Sequence[View]
) -> list[View]:
    """Return where the fetches will lie; kernels that copy them are added where need be.

    What states hold is left alone, old and new, and so is what only a run can tell the size of.
    """
    taken = {view.buffer for view in written}
    return [_handed_out(lowered, view, taken) for view in fetched]


def _handed_out(lowered: Lowered, view: View, taken: set[Buffer]) -> View:
    computed = view.buffer.kind == "arena"
    if computed and view.whole and view.buffer not in taken:
        taken.add(view.buffer)
        return view
    # What was fed, or is constant, and lies in order needs no code of its own to be copied.
    given = view.buffer.kind in ("feed", "constant") and not view.contiguous
    return lowered.copied(view) if (computed or given) and view.dtype in DTYPES else view
