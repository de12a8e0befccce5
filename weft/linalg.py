"""Linear algebra under NumPy's names."""

from __future__ import annotations

from .core.facade import lazy_names
from .core.public import LINALG, LINALG_RENAMED

__all__ = list(LINALG)
__all__ += list(LINALG_RENAMED)

__getattr__, __dir__ = lazy_names(globals(), LINALG, LINALG_RENAMED)
