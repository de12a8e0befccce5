"""`with wf.batching():`, in which operations are put off and run together when needed."""

from __future__ import annotations

from typing import Any

from ..core.modes import current_interpreter, interpret_with
from .deferring import Deferring
from .signatures import SignatureTable


class batching:  # noqa: N801  (used like a function)
    """Put operations off inside a `with` block, and run those that are alike as one."""

    def __enter__(self) -> Deferring:
        self._run = Deferring(SignatureTable(), current_interpreter())
        self._context = interpret_with(self._run)
        self._context.__enter__()
        return self._run

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._context.__exit__(kind, error, traceback)
        if kind is None:
            self._run.close()
