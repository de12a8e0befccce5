"""Network functions under PyTorch's names and signatures."""

from __future__ import annotations

from ..core.facade import lazy_names
from ..core.public import FUNCTIONAL, FUNCTIONAL_RENAMED

__all__ = list(FUNCTIONAL)
__all__ += list(FUNCTIONAL_RENAMED)

__getattr__, __dir__ = lazy_names(globals(), FUNCTIONAL, FUNCTIONAL_RENAMED)
