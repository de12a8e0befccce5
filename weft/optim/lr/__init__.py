"""Learning-rate schedules: PyTorch's names and semantics, and the policies of Caffe.

A schedule is made around an optimizer and stepped once per epoch or per iteration, after the
optimizer; it writes `lr` (and for cycles `momentum`) into the parameter groups. All of them have
`state_dict` and `load_state_dict`.
"""

from .base import LRScheduler
from .combine import ChainedScheduler, SequentialLR
from .cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from .cycle import CyclicLR, OneCycleLR
from .plateau import ReduceLROnPlateau
from .policies import (
    ConstantLR,
    ExponentialLR,
    InverseLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolyLR,
    PolynomialLR,
    SigmoidLR,
    StepLR,
)
from .swa import SWALR

__all__ = [
    "SWALR",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "InverseLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolyLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "SigmoidLR",
    "StepLR",
]
