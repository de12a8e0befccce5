"""Indexing: reading and writing by index, gathering and scattering, sorting and searching.

Tensors and index expressions enter, tensors leave. Imports core only; other operator packages may
import the scatter-add kernels from `_scatter`.
"""

from . import (
    embedding,
    examples,
    gather,
    getitem,
    grids,
    mask,
    scatter_reduce,
    search,
    setitem,
    sort,
    take,
    unique,
)

__all__ = [
    "embedding",
    "examples",
    "gather",
    "getitem",
    "grids",
    "mask",
    "scatter_reduce",
    "search",
    "setitem",
    "sort",
    "take",
    "unique",
]
