"""torch.nn: modules, layers and losses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.imports import lazy_attributes
from ..absent import absent
from . import functional, init
from .layers import CLASSES
from .module import Module
from .parameter import Buffer, Parameter

if TYPE_CHECKING:
    from . import modules, parallel, utils
    from .parallel import DataParallel

globals().update(CLASSES)
__all__ = [
    "Buffer",
    "DataParallel",
    "Module",
    "Parameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "utils",
]

_REASONS = {
    "quantized": "quantization is not served",
    "attention": "use torch.nn.functional.scaled_dot_product_attention",
    "SyncBatchNorm": "use wf.distributed.SyncBatchNorm, or BatchNorm2d in one process",
    "CrossMapLRN2d": "use LocalResponseNorm",
}
__getattr__ = lazy_attributes(
    globals(),
    {"weft.torch.nn.parallel": ("DataParallel",)},
    ("modules", "parallel", "utils"),
    otherwise=absent(globals(), _REASONS),
)
