"""Vectorisation: `vmap`, and the interpreter that runs operations on whole batches."""

from .fallback import SlowVmapWarning
from .vmap import vmap

__all__ = ["SlowVmapWarning", "vmap"]
