"""Indexing: reading and writing by index, gathering and scattering, sorting and searching.

Tensors and index expressions enter, tensors leave. Imports core only.
"""

NAMESPACE = "wf"

from ._spec import explicit, split_index  # noqa: E402  (the constant is read while modules load)

__all__ = ["explicit", "split_index"]
