"""Indexing: reading and writing by index, gathering and scattering, sorting and searching.

Tensors and index expressions enter, tensors leave. Imports core only; other operator packages may
import the scatter-add kernels from `_scatter`.
"""

NAMESPACE = "wf"
