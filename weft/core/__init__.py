"""Core: dtypes, shapes, errors, the Tensor, the Op record and the one path every operation takes.

Enters: Python values and NumPy arrays. Leaves: Tensors whose tape nodes know how they were made.
Imports NumPy and the standard library only.
"""

from . import sources as sources  # notes when the package was loaded
