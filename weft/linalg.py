"""Linear algebra under NumPy's names."""

from __future__ import annotations

from .core.facade import lazy_names
from .core.public import LINALG

__all__ = list(LINALG)

__getattr__, __dir__ = lazy_names(globals(), LINALG)
