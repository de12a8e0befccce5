"""torch.nn: modules, layers and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..absent import later_or_absent
from . import functional, init, module
from .layers import CLASSES
from .module import Module
from .parameter import Buffer, Parameter

if TYPE_CHECKING:
    from . import parallel, utils
    from .parallel import DataParallel

globals().update(CLASSES)
__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "functional",
    "init",
    "parallel",
    "utils",
]
modules = module

_LATER = {"weft.torch.nn.parallel": ("DataParallel",)}
_REASONS = {
    "SyncBatchNorm": "use wf.distributed.SyncBatchNorm, or BatchNorm2d in one process",
    "CrossMapLRN2d": "use LocalResponseNorm",
}
__getattr__ = later_or_absent(globals(), _LATER, ("parallel", "utils"), _REASONS)
