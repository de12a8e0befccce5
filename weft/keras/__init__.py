"""Keras's face of Weft: layers called on symbolic tensors, models of them, and `fit`.

    from weft import keras

or, for scripts as they are, `weft run script.py`. docs/faces/keras.md says what runs.
"""

from __future__ import annotations

from ..faces.absent import absent_names
from . import (
    activations,
    backend,
    callbacks,
    initializers,
    layers,
    losses,
    metrics,
    models,
    optimizers,
    saving,
    utils,
)
from .initializers import Initializer
from .layers.base import Layer
from .layers.core import Input, InputLayer
from .losses import Loss
from .model import Model
from .sequential import Sequential
from .symbolic import KerasTensor

__version__ = "3.0.0"  # of the names that this face has

__all__ = [
    "Initializer",
    "Input",
    "InputLayer",
    "KerasTensor",
    "Layer",
    "Loss",
    "Model",
    "Sequential",
    "activations",
    "backend",
    "callbacks",
    "initializers",
    "layers",
    "losses",
    "metrics",
    "models",
    "optimizers",
    "saving",
    "utils",
]

_REASONS = {
    "applications": "use wf.nn.models (resnet18, VGG ...); no weights are downloaded",
    "datasets": "nothing is downloaded; read local files with wf.data",
    "ops": "use Weft's functions (wf.exp, wf.matmul ...) in a layer of your own, or layers.Lambda",
    "preprocessing": "use wf.data and wf.data.transforms",
    "regularizers": "use weight_decay of the optimizer, e.g. optimizers.AdamW",
    "constraints": "constrain weights in a callback",
    "mixed_precision": "use model.to('float16') and wf.optim.LossScaler",
}
__getattr__ = absent_names(globals(), _REASONS)
