"""torch.nn: modules, layers and losses."""

from __future__ import annotations

from ...faces.absent import absent_names
from . import functional, init, module, utils
from .layers import CLASSES
from .module import Module
from .parameter import Buffer, Parameter

globals().update(CLASSES)
__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils"]
modules = module

_REASONS = {
    "DataParallel": "there is one device; leave it out",
    "SyncBatchNorm": "there is one process; use BatchNorm2d",
    "CrossMapLRN2d": "use LocalResponseNorm",
}
__getattr__ = absent_names(globals(), _REASONS)
