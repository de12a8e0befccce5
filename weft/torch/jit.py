"""torch.jit: what asked for TorchScript runs by compiled programs, as `torch.compile` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from .absent import absent
from .compiling import compile

__all__ = [
    "Final",
    "annotate",
    "export",
    "freeze",
    "ignore",
    "is_scripting",
    "is_tracing",
    "script",
    "trace",
    "unused",
]


def script(obj: Any, *unused: Any, **also_unused: Any) -> Any:
    """Return a function, or module, that runs by compiled programs; a class stays as it is.

    >>> from weft import torch
    >>> torch.jit.script(lambda x: x + 1)(torch.ones(2))
    tensor([2., 2.])
    """
    return obj if isinstance(obj, type) else compile(obj)


def trace(func: Any, example_inputs: Any = None, **unused: Any) -> Any:
    """Return a function, or module, that runs by compiled programs; branches are followed."""
    return compile(func)


def freeze(mod: Any, *unused: Any, **also_unused: Any) -> Any:
    """Return a module as it is."""
    return mod


def ignore(drop: Any = False, **unused: Any) -> Any:
    """Leave a function as it is: a decorator, with or without arguments."""
    return drop if callable(drop) else _as_it_is


def _as_it_is(fn: Callable[..., Any]) -> Callable[..., Any]:
    return fn


export = unused = script_method = _as_it_is


def is_scripting() -> bool:
    """Tell whether TorchScript reads the code: it never does."""
    return False


is_tracing = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return a value, of which TorchScript would know the type."""
    return the_value


_FILES = "use torch.save(model.state_dict(), path), or wf.export for files that run without Python"
__getattr__ = absent(
    globals(),
    {
        "save": _FILES,
        "load": _FILES,
        "ScriptModule": "derive from torch.nn.Module and call torch.compile",
        "fork": "use Python's threads",
        "wait": "use Python's threads",
    },
)
