"""Hooks of modules around the saving and loading of their states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

BEFORE_SAVING, AFTER_SAVING = "before saving", "after saving"
BEFORE_LOADING, AFTER_LOADING = "before loading", "after loading"
_HOOKS = "_state_hooks"  # the attribute of modules that have some

Hook = Callable[..., Any]


class RemovableHandle:
    """Lets a hook be removed again."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Call the hook no more."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def registering(moment: str, *, with_module: bool = True) -> Any:
    """Return the method that adds a hook for a moment.

    with_module   whether hooks are given the module itself, unless they ask for another thing
    """

    def register(self: Any, hook: Hook, with_module: bool = with_module) -> RemovableHandle:
        hooks = self.__dict__.setdefault(_HOOKS, {}).setdefault(moment, [])
        hooks.append((hook, with_module))
        return RemovableHandle(hooks, hooks[-1])

    register.__doc__ = f"Call a hook {moment} the state of this module."
    return register


def run_hooks(module: Any, moment: str, prefix: str, arguments: Callable[[str], Any]) -> None:
    """Call the hooks of a module, and of all below it, in the order of their names.

    arguments   gives what they are called with, by the prefix of a module's names
    """
    for name, part in list(module.named_modules()):
        for hook, with_module in part.__dict__.get(_HOOKS, {}).get(moment, ()):
            given = arguments(f"{prefix}{name}." if name else prefix)
            hook(*((part, *given) if with_module else given))
