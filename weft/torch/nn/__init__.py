"""torch.nn: modules, layers and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...core.imports import load
from ..absent import absent
from . import functional, init, module
from .layers import CLASSES
from .module import Module
from .parameter import Buffer, Parameter

if TYPE_CHECKING:
    from . import utils

globals().update(CLASSES)
__all__ = ["Buffer", "Module", "Parameter", "functional", "init", "utils"]
modules = module

_REASONS = {
    "DataParallel": "there is one device; leave it out, or use wf.distributed.Parallel",
    "SyncBatchNorm": "use wf.distributed.SyncBatchNorm, or BatchNorm2d in one process",
    "CrossMapLRN2d": "use LocalResponseNorm",
}
_missing = absent(globals(), _REASONS)


def __getattr__(name: str) -> Any:
    return load("weft.torch.nn.utils") if name == "utils" else _missing(name)
