"""PyTorch's face of Weft: its names and conventions, over Weft's operators.

    import weft.torch as torch

or, for scripts as they are, `weft run script.py`. docs/faces/torch.md says what runs.
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.imports import lazy_attributes as _lazy_attributes
from ..core.modes import is_grad_enabled
from ..core.recordings import when_recording as _when_recording
from ..core.threads import get_num_threads, set_num_threads
from . import autograd, linalg, nn, random, return_types, special, views
from .absent import TORCH as _TORCH_LACKS
from .absent import absent as _absent
from .autograd import enable_grad, inference_mode, no_grad, set_grad_enabled
from .catalogue import FUNCTIONS as _FUNCTIONS
from .catalogue import attach as _attach
from .catalogue import writing_functions as _writing_functions
from .devices import device
from .dtypes import dtype
from .foreach import FUNCTIONS as _FOREACH
from .old_types import TYPES as _OLD_TYPES
from .old_types import set_default_tensor_type
from .printing import set_printoptions
from .sizes import Size
from .tensor import Tensor
from .top import FUNCTIONS as _TOP
from .types import DTYPES as _DTYPES
from .types import can_cast, finfo, iinfo, promote_types, result_type

if _TYPE_CHECKING:
    from . import (
        amp,
        backends,
        compiler,
        cuda,
        distributed,
        distributions,
        func,
        jit,
        masked,
        mps,
        multiprocessing,
        optim,
        serialization,
        signal,
        testing,
        utils,
        version,
        xpu,
    )
    from .amp import GradScaler, autocast
    from .compiling import compile
    from .func import vmap
    from .serialization import load, save

__version__ = "2.13.0"  # of the names that this face has

_attach()
globals().update(_FUNCTIONS)
globals().update(_TOP)
globals().update(_writing_functions())
globals().update(_FOREACH)
globals().update(_DTYPES)
globals().update(_OLD_TYPES)

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None
strided = "torch.strided"
contiguous_format, preserve_format = "torch.contiguous_format", "torch.preserve_format"
channels_last, channels_last_3d = "torch.channels_last", "torch.channels_last_3d"
default_generator = random


def _prepare_recordings() -> None:
    from . import recorded  # noqa: F401, PLC0415  (when it, or what records, is imported)


_when_recording(_prepare_recordings)
__getattr__ = _lazy_attributes(  # when a program asks for them, so that the import stays fast
    globals(),
    {
        "weft.torch.amp": ("GradScaler", "autocast"),
        "weft.torch.compiling": ("compile",),
        "weft.torch.func": ("vmap",),
        "weft.torch.serialization": ("load", "save"),
    },
    (
        *("_dynamo", "compiler"),
        *("amp", "backends", "cuda", "distributed", "distributions", "func", "jit", "masked"),
        *("mps", "multiprocessing", "optim", "serialization", "signal", "testing", "utils"),
        *("version", "xpu"),
    ),
    otherwise=_absent(globals(), _TORCH_LACKS),
)

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
    "compiler",
    "cuda",
    "device",
    "distributed",
    "distributions",
    "dtype",
    "enable_grad",
    "finfo",
    "func",
    "get_num_threads",
    "iinfo",
    "inference_mode",
    "is_grad_enabled",
    "jit",
    "linalg",
    "load",
    "masked",
    "mps",
    "multiprocessing",
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
    "testing",
    "utils",
    "version",
    "views",
    "vmap",
    "xpu",
]
