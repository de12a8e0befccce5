"""`tf.layers`: functions that make the variables of a layer and apply it, and the layers."""

from __future__ import annotations

from ...faces.absent import absent_names
from .base import Layer
from .convolutional import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3D,
    SeparableConv2D,
    conv1d,
    conv2d,
    conv2d_transpose,
    conv3d,
    separable_conv2d,
)
from .core import Dense, Dropout, Flatten, dense, dropout, flatten
from .normalization import BatchNormalization, batch_normalization
from .pooling import (
    average_pooling1d,
    average_pooling2d,
    average_pooling3d,
    max_pooling1d,
    max_pooling2d,
    max_pooling3d,
)

__all__ = [
    "BatchNormalization",
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Dense",
    "Dropout",
    "Flatten",
    "Layer",
    "SeparableConv2D",
    "average_pooling1d",
    "average_pooling2d",
    "average_pooling3d",
    "batch_normalization",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "dense",
    "dropout",
    "flatten",
    "max_pooling1d",
    "max_pooling2d",
    "max_pooling3d",
    "separable_conv2d",
]

_REASONS = {
    "conv3d_transpose": "use tf.nn.conv3d_transpose",
    "MaxPooling2D": "use tf.layers.max_pooling2d(x, pool_size, strides)",
    "AveragePooling2D": "use tf.layers.average_pooling2d(x, pool_size, strides)",
    "separable_conv1d": "use tf.layers.separable_conv2d with a height of 1",
}
__getattr__ = absent_names(globals(), _REASONS)
