"""torch.nn: modules, layers and losses."""

from __future__ import annotations

from ..absent import absent
from . import functional, init, module, utils
from .layers import CLASSES
from .module import Module
from .parameter import Buffer, Parameter

globals().update(CLASSES)
__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils"]
modules = module

_REASONS = {
    "DataParallel": "there is one device; leave it out, or use wf.distributed.Parallel",
    "SyncBatchNorm": "use wf.distributed.SyncBatchNorm, or BatchNorm2d in one process",
    "CrossMapLRN2d": "use LocalResponseNorm",
}
__getattr__ = absent(globals(), _REASONS)
