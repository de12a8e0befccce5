"""Caffe's face of Weft: nets and solvers as prototxt files declare them, over Weft's operators.

    import weft.caffe as caffe

or, for scripts as they are, `weft run script.py`. docs/faces/caffe.md says what runs.
"""

from __future__ import annotations

from .loading import load
from .message import TEST, TRAIN
from .pycaffe import Net
from .solver_types import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "NesterovSolver",
    "Net",
    "RMSPropSolver",
    "SGDSolver",
    "get_solver",
    "load",
]
