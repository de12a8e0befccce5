"""Caffe's face of Weft: nets and solvers as prototxt files declare them, over Weft's operators.

    import weft.caffe as caffe

or, for scripts as they are, `weft run script.py`. docs/faces/caffe.md says what runs.
"""

from __future__ import annotations

from typing import NoReturn

from ..faces.absent import absent_names
from ..ops.random.draw import manual_seed as _manual_seed
from . import draw, io, proto
from .catalogue import LAYERS as _LAYERS
from .catalogue import Limits
from .catalogue import PythonLayer as Layer
from .classifier import Classifier
from .converting import convert, load_converted
from .errors import CaffeError, CaffemodelError, PrototxtError
from .inputs import INPUTS as _INPUTS
from .loading import load
from .message import TEST, TRAIN
from .net_spec import NetSpec, layers, params, to_proto
from .network import Network
from .pycaffe import Net
from .solver import Solver
from .solver_types import (
    AdaDeltaSolver,
    AdaGradSolver,
    AdamSolver,
    NesterovSolver,
    RMSPropSolver,
    SGDSolver,
    get_solver,
)

__version__ = "1.0.0"

__all__ = [
    "TEST",
    "TRAIN",
    "AdaDeltaSolver",
    "AdaGradSolver",
    "AdamSolver",
    "CaffeError",
    "CaffemodelError",
    "Classifier",
    "Layer",
    "Limits",
    "NesterovSolver",
    "Net",
    "NetSpec",
    "Network",
    "PrototxtError",
    "RMSPropSolver",
    "SGDSolver",
    "Solver",
    "convert",
    "draw",
    "get_solver",
    "init_log",
    "io",
    "layer_type_list",
    "layers",
    "load",
    "load_converted",
    "log",
    "params",
    "proto",
    "set_device",
    "set_mode_cpu",
    "set_mode_gpu",
    "set_random_seed",
    "to_proto",
]


def set_mode_cpu() -> None:
    """Compute on the processor, as Weft does."""


def set_mode_gpu() -> NoReturn:
    """Refuse: this face computes on the processor."""
    raise CaffeError("Cannot use GPU in CPU-only Caffe: check mode. Call caffe.set_mode_cpu()")


def set_device(device: int) -> NoReturn:
    """Refuse: this face computes on the processor."""
    raise CaffeError(
        f"set_device({device}): Cannot use GPU in CPU-only Caffe. Call caffe.set_mode_cpu()"
    )


def set_random_seed(seed: int) -> None:
    """Begin all random numbers anew: fillers, dropout, data."""
    _manual_seed(seed)


def layer_type_list() -> list[str]:
    """Return the types of layers that nets may have."""
    return sorted([*_LAYERS, *_INPUTS])


def init_log(level: int = 0) -> None:
    """Do nothing: Weft writes no log of glog's."""


def log(message: str) -> None:
    """Print a line."""
    print(message)


_REASONS = {
    "Detector": "use caffe.Classifier on the windows of an image",
    "NCCL": "Weft trains on the processor",
    "set_multiprocess": "Weft trains in one process",
    "set_solver_count": "Weft trains in one process",
}

__getattr__ = absent_names(globals(), _REASONS)
