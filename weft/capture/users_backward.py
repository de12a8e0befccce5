"""Backwards of the user's, run when gradients of a call may be taken outside of it.

The gradient program is made when the call is recorded, so such a Python function runs once, then.
It is watched as the call itself is: what it reads is tested in each call, and again when the
gradient is taken; what it changes, nobody would repeat, so that the call runs eagerly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

from ..core.errors import GradientError
from .objects import is_fixed, is_opaque, note_change, versioned, why_not_read
from .recorded import RecordedTensor
from .recorded_size import is_recorded_size
from .recorder import NotRecordedError
from .watch import Guards, Listener, Refusal, Watch

T = TypeVar("T")
_WHAT = "a gradient that may be taken outside of the call runs a backward that"


def watched(make: Callable[[], T]) -> tuple[T, Guards]:
    """Make gradients; return tests of what Python read, and refuse what cannot be repeated."""
    watch = Watch(
        make,
        opaque=is_opaque,
        fixed=is_fixed,
        recorded=lambda x: isinstance(x, RecordedTensor) or is_recorded_size(x),
        versioned=versioned,
        told=Listener(note_change, _ignore, _refuse, why_not_read),
    )
    try:
        with watch:
            made = make()
    finally:
        watch.undo()
    if watch.refusal is not None:
        _refuse(watch.refusal)
    if len(watch.effects):
        effect = watch.effects[0]
        raise NotRecordedError(f"{_WHAT} changes {effect.text}", effect.where)
    return made, watch.guards


def _ignore(value: Any) -> None:
    """Know of an object that code which is not followed is given."""


def _refuse(refusal: Refusal) -> NoReturn:
    raise NotRecordedError(f"{_WHAT} {refusal.reason}", refusal.where, once=refusal.once)


class StillHolds:
    """Tests, when a gradient is taken, that what its backward read is as in the call."""

    def __init__(self, guards: Guards) -> None:
        self._guards = guards
        self._holds = guards.compile()

    def check(self) -> None:
        """Raise if something has changed: eager mode would read it now."""
        if not self._holds():
            changed = "; ".join(self._guards.failed())
            raise GradientError(
                "jit: what the backward of a function reads has changed since the call: "
                f"{changed}. Change it before the call, or keep it in ctx in forward"
            )
