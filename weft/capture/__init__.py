"""Functions as machine code."""

from .ahead import Compiled, compile

__all__ = ["Compiled", "compile"]
