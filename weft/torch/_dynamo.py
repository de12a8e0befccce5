"""torch._dynamo: the older name of torch.compiler's functions."""

from __future__ import annotations

from types import SimpleNamespace

from .absent import absent
from .compiler import allow_in_graph, assume_constant_result, disable, is_compiling, reset

__all__ = ["allow_in_graph", "assume_constant_result", "config", "disable", "is_compiling", "reset"]

# Settings that programs make, and that say nothing here.
config = SimpleNamespace(
    suppress_errors=False, cache_size_limit=8, recompile_limit=8, verbose=False
)
__getattr__ = absent(globals(), {})
