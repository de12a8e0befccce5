"""Whether somebody is debugging: then a jitted function runs as written, line by line.

A debugger sees lines by a function that Python calls for each of them. So do tools that measure
which lines are run; these must not change what runs, and are told from debuggers by who they are.
"""

from __future__ import annotations

import sys
from types import MethodType
from typing import Any

_MODULES = ("pydevd", "_pydevd_bundle", "debugpy", "pudb")  # of debuggers that are no bdb.Bdb


def is_debugged() -> bool:
    """Tell whether a debugger follows the lines of this thread."""
    tracer = sys.gettrace()
    return tracer is not None and _is_debugger(tracer)


def _is_debugger(tracer: Any) -> bool:
    owner = tracer.__self__ if isinstance(tracer, MethodType) else tracer
    bdb = sys.modules.get("bdb")  # which pdb, doctest and others derive from
    if bdb is not None and isinstance(owner, bdb.Bdb):
        return True
    module = getattr(owner, "__module__", None) or type(owner).__module__
    return str(module).partition(".")[0] in _MODULES
