"""Differentiation: the derivative rules of the operators, put to work.

Enters: tensors with their tape. Leaves: gradients. Imports core, ops and graph only.
"""

from . import policies
from .anomaly import detect_anomaly
from .check import check_grads, numeric_gradient
from .forward import jvp
from .function import Function, custom_vjp
from .reverse import backward, gradients

numeric = numeric_gradient

__all__ = [
    "Function",
    "backward",
    "check_grads",
    "custom_vjp",
    "detect_anomaly",
    "gradients",
    "jvp",
    "numeric",
    "numeric_gradient",
    "policies",
]
