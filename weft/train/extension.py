"""Extension: something that happens beside training (evaluation, logs, checkpoints ...).

In each iteration the extensions are visited by descending priority, those of equal priority in the
order they were added: first those that write into the observation, then those that change the
model or the optimizer, then those that read, and last the one that saves, so that what is saved
includes all the others did.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.errors import ArgumentTypeError
from .checks import overrides
from .saved import Saved
from .triggers import IntervalTrigger, TriggerFunction, as_trigger

if TYPE_CHECKING:
    from .trainer import Trainer

PRIORITY_GUARD = 500  # stops on bad values before anybody uses them
PRIORITY_AVERAGE = 400  # follows the weights before they are evaluated
PRIORITY_WRITER = 300
PRIORITY_EDITOR = 200
PRIORITY_READER = 100
PRIORITY_SAVER = -100

E = TypeVar("E")


class Extension(Saved):
    """Base of extensions; a plain function of the trainer is one too.

    trigger    when to call it, unless `Trainer.extend` says otherwise
    priority   its place in the order
    name       under which its state is saved and `Trainer.get_extension` finds it

    A subclass with a state lists its attributes in `_saved`, or overrides `state_dict`.
    """

    trigger: Any = (1, "iteration")
    priority: int = PRIORITY_READER
    name: str | None = None

    @property
    def default_name(self) -> str:
        """Return the name used when none is given."""
        return self.name or type(self).__name__

    def initialize(self, trainer: Trainer) -> None:
        """Prepare, once before the first iteration of a run."""

    def observe(self, trainer: Trainer) -> None:
        """See every iteration, whatever the trigger says."""

    def __call__(self, trainer: Trainer) -> None:
        """Do the work; called when the trigger fires."""

    def finish(self, trainer: Trainer) -> None:
        """Complete the work after a run that ended without an error (Ctrl-C is none)."""

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        """React to an exception that ends the run."""

    def finalize(self) -> None:
        """Release what was opened; called at the end of every run, also after errors."""


class FunctionExtension(Extension):
    """A function of the trainer as an extension."""

    def __init__(self, function: Callable[[Trainer], Any]) -> None:
        self.function = function
        self.trigger = getattr(function, "trigger", self.trigger)
        self.priority = getattr(function, "priority", self.priority)
        self.name = getattr(function, "name", None) or getattr(function, "__name__", None)

    def __call__(self, trainer: Trainer) -> None:
        """Call the function."""
        self.function(trainer)


def make_extension(
    *, trigger: Any = (1, "iteration"), priority: int = PRIORITY_READER, name: str | None = None
) -> Callable[[E], E]:
    """Return a decorator that gives a function the attributes of an extension.

    >>> @make_extension(trigger=(1, "epoch"))
    ... def shout(trainer):
    ...     print("epoch", trainer.updater.epoch)
    """
    as_trigger(trigger)

    def mark(function: E) -> E:
        attributes = {"trigger": trigger, "priority": priority, "name": name}
        for attribute, value in attributes.items():
            setattr(function, attribute, value)
        return function

    return mark


def as_extension(extension: Any) -> Extension:
    """Return an extension, or a function as one."""
    if isinstance(extension, type):
        raise ArgumentTypeError(
            f"an extension is an instance. Received: the class {extension.__name__}; "
            f"write {extension.__name__}(...)"
        )
    if isinstance(extension, Extension):
        return extension
    if not callable(extension):
        raise ArgumentTypeError(
            "an extension is an Extension or a function of the trainer. "
            f"Received: {type(extension).__name__}"
        )
    return FunctionExtension(extension)


class ExtensionEntry:
    """An extension as the trainer holds it: with name, trigger and priority."""

    def __init__(self, extension: Extension, name: str, trigger: Any, priority: Any) -> None:
        self.extension = extension
        self.name = name
        chosen = extension.trigger if trigger is None else trigger
        self.trigger: TriggerFunction = as_trigger(chosen)
        self.priority: int = extension.priority if priority is None else priority
        if isinstance(self.priority, bool) or not isinstance(self.priority, int | float):
            raise ArgumentTypeError(f"a priority is a number. Received: {priority!r}")
        self._observes = True

    def initialize(self, trainer: Trainer) -> None:
        """Let the extension prepare for a run, and see whether it looks at every iteration."""
        self.extension.initialize(trainer)
        self._observes = overrides(self.extension, Extension, "observe")

    @property
    def waits_for_epochs(self) -> bool:
        """Tell whether nothing is to be done after iterations that complete no epoch."""
        trigger = self.trigger
        return not self._observes and type(trigger) is IntervalTrigger and trigger.at_epochs

    def visit(self, trainer: Trainer) -> None:
        """Show the extension an iteration, and call it if its trigger fires."""
        if self._observes:
            self.extension.observe(trainer)
        if self.trigger(trainer):
            self.extension(trainer)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the extension and of its trigger."""
        trigger = self.trigger
        kept = trigger.state_dict() if hasattr(trigger, "state_dict") else {}
        return {"extension": self.extension.state_dict(), "trigger": kept}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.extension.load_state_dict(state["extension"])
        if hasattr(self.trigger, "load_state_dict"):
            self.trigger.load_state_dict(state["trigger"])
