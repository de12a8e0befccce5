"""Extensions: what happens beside training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PRIORITY_WRITER = 300
PRIORITY_EDITOR = 200
PRIORITY_READER = 100


class Extension:
    """Base of extensions; a function of the trainer is one too."""

    trigger: Any = (1, "iteration")
    priority = PRIORITY_READER
    name: str | None = None
    call_before_training = False

    @property
    def default_name(self) -> str:
        """The name used when none is given."""
        return type(self).__name__

    def __call__(self, trainer: Any) -> Any:
        """Do the work; called when the trigger fires."""
        raise NotImplementedError("an extension defines __call__(trainer)")

    def initialize(self, trainer: Any) -> None:
        """Prepare, before the first iteration."""

    def finalize(self) -> None:
        """Release what was opened."""

    def on_error(self, trainer: Any, exc: BaseException, tb: Any) -> None:
        """React to an exception that ends the run."""

    def serialize(self, serializer: Any) -> None:
        """Write the state to a serializer, or read it from one."""


def make_extension(
    trigger: Any = None,
    default_name: str | None = None,
    priority: int | None = None,
    finalizer: Callable[[], Any] | None = None,
    initializer: Callable[[Any], Any] | None = None,
    on_error: Callable[..., Any] | None = None,
) -> Callable[[Any], Any]:
    """Return a decorator that gives a function what an extension has."""

    def mark(function: Any) -> Any:
        function.trigger = trigger or Extension.trigger
        function.default_name = default_name or function.__name__
        function.priority = Extension.priority if priority is None else priority
        for name, value in (
            ("finalize", finalizer),
            ("initialize", initializer),
            ("on_error", on_error),
        ):
            if value is not None:
                setattr(function, name, value)
        return function

    return mark
