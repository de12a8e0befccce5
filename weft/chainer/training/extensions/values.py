"""Small extensions: values that are observed, and histories that are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..extension import PRIORITY_WRITER, Extension


class _Observer(Extension):
    trigger = (1, "epoch")
    priority = PRIORITY_WRITER

    def __init__(self, key: str, compute: Callable[[Any], Any]) -> None:
        self._key, self._compute = key, compute

    @property
    def default_name(self) -> str:
        """The name used when none is given."""
        return "observe_value"

    def __call__(self, trainer: Any) -> None:
        """Observe."""
        trainer.observation[self._key] = self._compute(trainer)


def observe_value(observation_key: str, target_func: Callable[[Any], Any]) -> Extension:
    """Return an extension that observes a function of the trainer."""
    return _Observer(observation_key, target_func)


def observe_lr(optimizer_name: str = "main", observation_key: str = "lr") -> Extension:
    """Return an extension that observes the learning rate."""
    return observe_value(
        observation_key, lambda trainer: trainer.updater.get_optimizer(optimizer_name).lr
    )


class unchain_variables(Extension):  # noqa: N801  (Chainer's name)
    """Do nothing: what was observed keeps no history."""

    def __call__(self, trainer: Any) -> None:
        """Observe."""
