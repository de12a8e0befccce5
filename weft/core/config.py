"""Process-wide settings, each read where it matters and documented here."""

from __future__ import annotations

import os
from typing import Any

from .errors import ArgumentError, ArgumentTypeError

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_OFF = ("0", "false", "no", "off")


class Config:
    """Hold the settings of a process; assign attributes to change them.

    compiler_process  whether large programs are compiled by two processes, where a program may use
                      several threads (True, unless the environment sets WEFT_COMPILER_PROCESS=0)
    default_float     name of the dtype that Python floats become ("float32")
    debug_interpret   whether graphs run node by node instead of as machine code (False)
    eager_kernels     whether operations on large tensors run as machine code (True, unless
                      the environment sets WEFT_EAGER_KERNELS=0)
    graph_stacks      whether nodes of graphs know all lines of the user's that led to them, for
                      `up` in the debugger, and not only the innermost (False)
    nan_trap          whether compiled programs stop, before they write anything, at a NaN in what
                      they return or write, and name the operation that made it (False)
    """

    __slots__ = (
        "compiler_process",
        "debug_interpret",
        "default_float",
        "eager_kernels",
        "graph_stacks",
        "nan_trap",
    )

    compiler_process: bool
    debug_interpret: bool
    default_float: str
    eager_kernels: bool
    graph_stacks: bool
    nan_trap: bool

    def __init__(self) -> None:
        self.default_float = "float32"
        self.debug_interpret = False
        self.graph_stacks = False
        self.nan_trap = False
        self.compiler_process = _is_on("WEFT_COMPILER_PROCESS")
        self.eager_kernels = _is_on("WEFT_EAGER_KERNELS")

    def __setattr__(self, name: str, value: Any) -> None:
        """Change a setting; raise if there is no such one, or it cannot have that value."""
        if name not in self.__slots__:
            import difflib  # noqa: PLC0415  (slow to import, for an error only)

            near = difflib.get_close_matches(name, self.__slots__, n=1)
            hint = (
                f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.__slots__)}"
            )
            raise AttributeError(f"config has no setting {name!r}; {hint}")
        check = _float_name if name == "default_float" else _truth
        object.__setattr__(self, name, check(name, value))


def _is_on(variable: str) -> bool:
    return os.environ.get(variable, "1").strip().lower() not in _OFF


def _truth(name: str, value: Any) -> bool:
    if type(value).__name__ not in ("bool", "bool_"):  # NumPy's too, which is not loaded for this
        raise ArgumentTypeError(f"config.{name} must be True or False. Received: {value!r:.60}")
    return bool(value)


def _float_name(name: str, value: Any) -> str:
    found = getattr(value, "name", None) or getattr(value, "__name__", value)  # of a dtype, a type
    if found not in _FLOATS:
        raise ArgumentError(
            f"config.{name} must be one of {', '.join(map(repr, _FLOATS))}. Received: {value!r:.60}"
        )
    return str(found)


config = Config()
