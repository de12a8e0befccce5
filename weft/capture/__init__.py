"""Functions as machine code: compiled ahead of time, or recorded when they are first called."""

from ..core.recordings import recordings_begin
from .ahead import Compiled, compile
from .exporting import export
from .jit_function import jit
from .jitted import Jitted

recordings_begin()

__all__ = ["Compiled", "Jitted", "compile", "export", "jit"]
