"""torchvision's face of Weft: datasets of local files, transforms, and grids of images."""

from __future__ import annotations

from ..faces.absent import absent_names
from . import datasets, transforms, utils

__version__ = "0.28.0"  # of the names that this face has
__all__ = ["datasets", "transforms", "utils"]

_REASONS = {"models": "write the network out, or use wf.nn.models"}
__getattr__ = absent_names(globals(), _REASONS)
