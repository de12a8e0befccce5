"""Functions that run in parts: what a program cannot be made of runs eagerly, the rest as programs.

A jitted step may hold something that runs by programs of its own, a batched call say. Then the
function runs as it is written, and those of its parts that are whole in themselves, such as the
update of an optimizer, ask here who compiles them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Protocol


class PartRunner(Protocol):
    """Runs parts of a function as programs."""

    def run(self, owner: Any, part: Callable[..., Any], *args: Any) -> Any:
        """Call a part, which belongs to an owner and is the same for it in each call."""


_runner: ContextVar[PartRunner | None] = ContextVar("weft_parts", default=None)
current_parts = _runner.get


class running_in_parts:  # noqa: N801  (a context manager used like a function)
    """Let the parts of what runs in a `with` block be compiled (None: run as they are)."""

    __slots__ = ("_given", "_token")

    def __init__(self, runner: PartRunner | None) -> None:
        self._given = runner

    def __enter__(self) -> None:
        """Begin."""
        self._token = _runner.set(self._given)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let parts run as before, also after an error."""
        _runner.reset(self._token)
