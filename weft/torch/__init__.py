"""PyTorch's face of Weft: its names and conventions, over Weft's operators.

    import weft.torch as torch

or, for scripts as they are, `weft run script.py`. docs/faces/torch.md says what runs.
"""

from __future__ import annotations

import math as _math
from typing import Any

from ..core.modes import is_grad_enabled
from ..core.threads import get_num_threads, set_num_threads
from . import (
    amp,
    autograd,
    backends,
    cuda,
    distributions,
    func,
    linalg,
    masked,
    nn,
    optim,
    random,
    return_types,
    serialization,
    signal,
    special,
    utils,
    views,
)
from .absent import TORCH as _TORCH_LACKS
from .absent import absent as _absent
from .amp import GradScaler, autocast
from .autograd import enable_grad, inference_mode, no_grad, set_grad_enabled
from .catalogue import FUNCTIONS as _FUNCTIONS
from .catalogue import attach as _attach
from .catalogue import writing_functions as _writing_functions
from .compiling import compile
from .devices import device
from .func import vmap
from .old_types import TYPES as _OLD_TYPES
from .old_types import set_default_tensor_type
from .printing import set_printoptions
from .serialization import load, save
from .sizes import Size
from .tensor import Tensor
from .top import FUNCTIONS as _TOP
from .types import DTYPES as _DTYPES
from .types import can_cast, finfo, iinfo, promote_types, result_type

__version__ = "2.13.0"  # of the names that this face has

_attach()
globals().update(_FUNCTIONS)
globals().update(_TOP)
globals().update(_writing_functions())
globals().update(_DTYPES)
globals().update(_OLD_TYPES)

dtype = type(_DTYPES["float32"]).__mro__[1]
bfloat16: Any = "bfloat16"  # which asks for the package that has it when it is used
inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
strided = "torch.strided"
contiguous_format, preserve_format = "torch.contiguous_format", "torch.preserve_format"
channels_last, channels_last_3d = "torch.channels_last", "torch.channels_last_3d"
default_generator = random

__getattr__ = _absent(globals(), _TORCH_LACKS)

__all__ = [
    "GradScaler",
    "Size",
    "Tensor",
    "amp",
    "autocast",
    "autograd",
    "backends",
    "can_cast",
    "compile",
    "cuda",
    "device",
    "distributions",
    "enable_grad",
    "finfo",
    "func",
    "get_num_threads",
    "iinfo",
    "inference_mode",
    "is_grad_enabled",
    "linalg",
    "load",
    "masked",
    "nn",
    "no_grad",
    "optim",
    "promote_types",
    "random",
    "result_type",
    "return_types",
    "save",
    "serialization",
    "set_default_tensor_type",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "signal",
    "special",
    "utils",
    "views",
    "vmap",
]
