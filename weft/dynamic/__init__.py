"""Dynamic batching: code for one example, run for many at once."""

from .cells import cell
from .context import batching
from .function import batched

__all__ = ["batched", "batching", "cell"]
