"""Indexing: reading and writing by index, gathering and scattering, sorting and searching.

Tensors and index expressions enter, tensors leave. Imports core only.
"""

NAMESPACE = "wf"
