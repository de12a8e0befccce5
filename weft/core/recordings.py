"""What faces say of recordings of functions, without loading what records.

LAYERS       modules of layers whose code is not followed, beside Weft's own: of faces
OPTIMIZERS   the same of optimizers
when_recording(prepare)   calls a function once what records is loaded: at once if it is
"""

from __future__ import annotations

from collections.abc import Callable

LAYERS: list[str] = []
OPTIMIZERS: list[str] = []
_waiting: list[Callable[[], object]] | None = []  # None: nobody has to wait any more


def when_recording(prepare: Callable[[], object]) -> None:
    """Call a function once recordings can be made."""
    if _waiting is None:
        prepare()
    else:
        _waiting.append(prepare)


def recordings_begin() -> None:
    """Call what waits for it that recordings can be made."""
    global _waiting
    waiting, _waiting = _waiting or [], None
    for prepare in waiting:
        prepare()
