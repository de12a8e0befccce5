"""Special functions under PyTorch's names.

>>> import weft as wf
>>> wf.special.i0(wf.tensor([0.0, 1.0]))
tensor([1.   , 1.266])
"""

from __future__ import annotations

from .core.facade import lazy_names

__getattr__, __dir__ = lazy_names(globals(), "special")
