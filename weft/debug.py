"""Watch a program while it runs: in eager code, in graphs and in compiled functions alike."""

from __future__ import annotations

from .core.effects import trips
from .core.errors import CheckError
from .graph.debug.console import console
from .graph.debug.nodes import breakpoint, callback, check, print

__all__ = ["CheckError", "breakpoint", "callback", "check", "console", "print", "trips"]
