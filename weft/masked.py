"""Reductions over elements that a mask lets through.

>>> import weft as wf
>>> x, mask = wf.tensor([1.0, 5.0, 3.0]), wf.tensor([True, False, True])
>>> wf.masked.mean(x, mask=mask)
tensor(2.)
"""

from __future__ import annotations

from .core.facade import lazy_names

__getattr__, __dir__ = lazy_names(globals(), "masked")
