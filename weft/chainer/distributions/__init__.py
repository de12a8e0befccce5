"""`chainer.distributions`: those that programs train with."""

from __future__ import annotations

from ...faces.absent import absent_names
from .base import Distribution, kl_divergence, register_kl
from .common import Bernoulli, Categorical, Independent, Normal, Uniform

__all__ = [
    "Bernoulli",
    "Categorical",
    "Distribution",
    "Independent",
    "Normal",
    "Uniform",
    "kl_divergence",
    "register_kl",
]

__getattr__ = absent_names(globals(), {})
