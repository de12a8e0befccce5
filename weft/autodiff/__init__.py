"""Differentiation: the derivative rules of the operators, put to work.

Enters: tensors with their tape, functions, symbols. Leaves: gradients. Imports core, ops and graph
only.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from ..core.imports import lazy_attributes as _lazy_attributes
from .anomaly import detect_anomaly
from .reverse import backward, gradients

if _TYPE_CHECKING:
    from . import policies
    from .check import check_grads, numeric, numeric_gradient
    from .custom.vjp import custom_vjp
    from .forward import jvp
    from .forward_inside import local_forward
    from .function import Function
    from .implicit_functions import implicit
    from .text.derivatives import source, symbolic

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
        "weft.autodiff.check": ("check_grads", "numeric", "numeric_gradient"),
        "weft.autodiff.custom.vjp": ("custom_vjp",),
        "weft.autodiff.forward": ("jvp",),
        "weft.autodiff.forward_inside": ("local_forward",),
        "weft.autodiff.function": ("Function",),
        "weft.autodiff.implicit_functions": ("implicit",),
        "weft.autodiff.text.derivatives": ("source", "symbolic"),
    },
    packages=("policies",),
)
