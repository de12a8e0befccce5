"""Chainer's Trainer, on Weft's: the loop, its order and its end are the same."""

from __future__ import annotations

import os
import traceback
from typing import Any

from ...train.extension import Extension as WeftExtension
from ...train.trainer import Trainer as WeftTrainer
from ..reporter import Reporter
from .extension import PRIORITY_READER, Extension
from .triggers import as_trigger


class Trainer(WeftTrainer):
    """Run an updater until `stop_trigger`, with extensions.

    What links report while the updater runs is in `observation`, under "main/" and their paths.
    """

    def __init__(
        self, updater: Any, stop_trigger: Any = None, out: str = "result", extensions: Any = None
    ) -> None:
        super().__init__(updater, None, out)
        self._stop_at = as_trigger(stop_trigger) if stop_trigger is not None else None
        self.stop_trigger = self._stop_at
        self.reporter = Reporter()
        self._before_training: list[Any] = []
        for name, optimizer in updater.get_all_optimizers().items():
            self.reporter.add_observer(name, optimizer.target)
            self.reporter.add_observers(name, optimizer.target.namedlinks(skipself=True))
        updater.connect_trainer(self)
        for extension in extensions or ():
            self.extend(extension)

    @property
    def is_before_training(self) -> bool:
        """Whether no iteration was made yet."""
        return bool(self.updater.iteration == 0)

    def extend(
        self,
        extension: Any = None,
        name: str | None = None,
        trigger: Any = None,
        priority: int | None = None,
        *,
        call_before_training: bool = False,
        **options: Any,
    ) -> Any:
        """Add an extension: called when its trigger fires, in the order of priorities."""
        if extension is None:
            return lambda function: self.extend(
                function, name, trigger, priority, call_before_training=call_before_training
            )
        made = _Adapter(extension)
        base, number = name or made.default_name, 0
        chosen = base
        while chosen in self._entries:
            if name is not None:
                raise ValueError(f"the name {name!r} is already used")
            number += 1
            chosen = f"{base}_{number}"
        made.taken_name = chosen
        when = trigger if trigger is not None else getattr(extension, "trigger", (1, "iteration"))
        super().extend(made, name=chosen, trigger=as_trigger(when), priority=priority)
        if call_before_training or getattr(extension, "call_before_training", False):
            self._before_training.append(extension)
        return extension

    def get_extension(self, name: str) -> Any:
        """Return an extension by its name."""
        if name not in self._entries:
            raise ValueError(f"extension {name} not found; there are {', '.join(self._entries)}")
        found: Any = self._entries[name].extension
        return found.wrapped

    def run(self, show_loop_exception_msg: bool = True) -> None:
        """Train until the end."""
        os.makedirs(str(self.out), exist_ok=True)
        super().run()

    def _run(self, entries: list[Any]) -> None:
        with self.reporter.scope(self.observation):
            for extension in self._before_training:
                extension(self)
        super()._run(entries)

    def _at_end(self) -> bool:
        if self.stop_reason is not None:
            return True
        if self._stop_at is None:
            return False
        return _has_ended(self._stop_at, self)

    def _iterate(self, entries: list[Any]) -> None:
        self.observation = {}
        with self.reporter.scope(self.observation):
            self.updater.update()
            for entry in entries:
                entry.visit(self)

    def serialize(self, serializer: Any) -> None:
        """Write the whole run to a serializer, or read it from one."""
        updater: Any = self.updater
        updater.serialize(serializer["updater"])
        extensions = serializer["extensions"]
        for name, entry in self._entries.items():
            inner: Any = entry.extension
            save = getattr(inner.wrapped, "serialize", None)
            if save is not None:
                save(extensions[name])
            save = getattr(entry.trigger, "serialize", None)
            if save is not None:
                save(serializer["extension_triggers"][name])
        self._elapsed_before = float(serializer("_snapshot_elapsed_time", self.elapsed_time))


def _has_ended(trigger: Any, trainer: Trainer) -> bool:
    """Tell whether training is over: at or beyond a position, or when a trigger says so."""
    reached = getattr(trigger, "is_reached", None)
    if reached is not None:
        return bool(reached(trainer))
    return trainer.updater.iteration > 0 and bool(trigger(trainer))


class _Adapter(WeftExtension):
    """An extension of Chainer's, or a function, as one of Weft's."""

    taken_name: str | None = None

    def __init__(self, wrapped: Any) -> None:
        if not callable(wrapped):
            raise TypeError("an extension must be callable")
        self.wrapped = wrapped
        self.priority = getattr(wrapped, "priority", PRIORITY_READER)

    @property
    def default_name(self) -> str:
        """Return the name used when none is given."""
        found = self.wrapped
        given = getattr(found, "name", None) or getattr(found, "default_name", None)
        return str(given or getattr(found, "__name__", None) or type(found).__name__)

    def initialize(self, trainer: Any) -> None:
        """Let the extension prepare."""
        prepare = getattr(self.wrapped, "initialize", None)
        if isinstance(self.wrapped, Extension) and self.taken_name is not None:
            self.wrapped.name = self.wrapped.name or self.taken_name
        if callable(prepare):
            prepare(trainer)

    def observe(self, trainer: Any) -> None:
        """Let the extension see an iteration."""
        see = getattr(self.wrapped, "observe_iteration", None)
        if callable(see):
            see(trainer)

    def __call__(self, trainer: Any) -> None:
        """Call the extension."""
        self.wrapped(trainer)

    def on_error(self, trainer: Any, error: BaseException) -> None:
        """Tell the extension of an exception."""
        tell = getattr(self.wrapped, "on_error", None)
        if callable(tell):
            tell(trainer, error, traceback.format_exc())

    def finalize(self) -> None:
        """Let the extension end."""
        end = getattr(self.wrapped, "finalize", None)
        if callable(end):
            end()
