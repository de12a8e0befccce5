"""Differentiation: the derivative rules of the operators, put to work.

Enters: tensors with their tape, functions, symbols. Leaves: gradients. Imports core, ops and graph
only.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.imports import lazy_attributes as _lazy_attributes
from . import policies
from .anomaly import detect_anomaly
from .check import check_grads, numeric_gradient
from .custom_vjp import custom_vjp
from .forward import jvp
from .function import Function
from .reverse import backward, gradients

if _TYPE_CHECKING:
    from .forward_inside import local_forward
    from .implicit_functions import implicit
    from .text.derivatives import source, symbolic

numeric = numeric_gradient

__all__ = [
    "Function",
    "backward",
    "check_grads",
    "custom_vjp",
    "detect_anomaly",
    "gradients",
    "implicit",
    "jvp",
    "local_forward",
    "numeric",
    "numeric_gradient",
    "policies",
    "source",
    "symbolic",
]

# Imported when first used, so that `import weft` stays fast.
__getattr__ = _lazy_attributes(
    globals(),
    {
        "weft.autodiff.implicit_functions": ("implicit",),
        "weft.autodiff.forward_inside": ("local_forward",),
        "weft.autodiff.text.derivatives": ("source", "symbolic"),
    },
)
