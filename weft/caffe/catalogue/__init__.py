"""Caffe's catalogue of layers, each a few lines over Weft's operators.

`LAYERS` maps the names that prototxt files give to classes; a class is made of a LayerParameter and
the shapes of its bottoms.
"""

from __future__ import annotations

from . import (
    accuracy,
    activation,
    combination,
    convolution,
    linear,
    loss,
    normalization,
    output,
    pooling,
    python,
    recurrent,
    shape,
    sources,
)
from .base import LAYERS, Layer, Limits
from .python import PythonLayer
from .sources import DummyData, Input, Sourced

__all__ = ["LAYERS", "DummyData", "Input", "Layer", "Limits", "PythonLayer", "Sourced"]

_CATALOGUE = (
    *(accuracy, activation, combination, convolution, linear, loss, normalization),
    *(output, pooling, python, recurrent, shape, sources),
)
