"""Functions that run as compiled programs or not at all.

A part of a program that somebody may also run as it is written (faces/steps) is attempted: if it
cannot be recorded nothing has happened, and the caller is told why instead of a result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .calls import JitCall, RecordingRules
from .jitted import Jitted
from .recorder import NotRecordedError
from .signature import CallSignature

NOT_RUN: Any = object()  # in place of a result: nothing has happened


class Attempt(Jitted):
    """A function that runs as compiled programs; a call gives NOT_RUN where there is none.

    failure   why the last call could not be recorded; None if it was not tried, or may be later
    """

    def __init__(self, function: Callable[..., Any], rules: RecordingRules) -> None:
        super().__init__(function)
        self._rules = rules
        self.failure: BaseException | None = None

    def _call_generally(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.failure = None
        return super()._call_generally(args, kwargs)

    def _run_eagerly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return NOT_RUN

    def _without_program(
        self, signature: CallSignature, call: JitCall, failure: BaseException
    ) -> Any:
        """Remember why a call was not recorded, unless the next one may well be."""
        if not isinstance(failure, NotRecordedError) or not failure.once:
            self.failure = failure
        return NOT_RUN

    @property
    def recordings(self) -> int:
        """Return how often it was recorded."""
        return self._report.recordings
