"""Functions as machine code: compiled ahead of time, or recorded when they are first called."""

from .ahead import Compiled, compile
from .exporting import export
from .jit_function import jit
from .jitted import Jitted

__all__ = ["Compiled", "Jitted", "compile", "export", "jit"]
