"""The quick way into a trace, for calls whose arguments are tensors and nothing else.

Most calls of a jitted function are like the one before: the same number of tensors, of the same
shapes and dtypes. One written function finds that out, tests whether the trace holds, and runs it.
Everything else goes the general way, by signatures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.config import config
from ..core.device import scopes
from ..core.generated import ObjectNames, define
from ..core.modes import is_grad_enabled, modes
from ..core.specialize import function
from ..core.tensor import Tensor
from .trace import MISSED, Trace

Entry = Callable[[tuple[Any, ...]], Any]


def write_entry(trace: Trace, args: Sequence[Any]) -> Entry | None:
    """Return a function from positional arguments to the result of a trace, or MISSED.

    None if the arguments of the call that the trace was made for are not all plain tensors, each
    another one.
    """
    if not args or any(type(x) is not Tensor for x in args) or len({*map(id, args)}) < len(args):
        return None
    names = ObjectNames()
    holds, run = names.of(trace.holds, "holds"), names.of(trace.run, "run")
    tests = [
        f"len(args) != {len(args)} or scopes or config.default_float != {config.default_float!r}",
        f"is_grad_enabled() is not {is_grad_enabled()}",
        *(test for i, x in enumerate(args) for test in _tests(names, i, x)),
        *(f"args[{i}] is args[{j}]" for i in range(len(args)) for j in range(i)),
        f"not {holds}(args)",
    ]
    lines = [line for test in tests for line in (f"if {test}:", "    return MISSED")]
    scope = {
        "MISSED": MISSED,
        "Tensor": Tensor,
        "config": config,
        "is_grad_enabled": is_grad_enabled,
        "modes": modes,
        "scopes": scopes,
        **names.scope,
    }
    text = function("enter", "args", [*lines, f"return {run}(args)"]) + "\n"
    return define("enter", text, scope, "entry")


def _tests(names: ObjectNames, position: int, x: Tensor) -> list[str]:
    """Return tests of an argument; each is true where it is not like the one given."""
    array = f"args[{position}]._value"
    plain = "not None" if x._node is None else "None"
    return [
        f"args[{position}].__class__ is not Tensor or args[{position}]._node is {plain}",
        f"{array}.shape != {names.of(x.shape, 'shape')}",
        f"{array}.dtype != {names.of(x.dtype, 'dtype')}",
    ]
