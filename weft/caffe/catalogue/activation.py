"""Layers that compute element by element, with one formula each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...core.op import F
from ...core.tensor import Tensor
from ..message import FillerParameter, Message
from .base import Layer, Shape, layer


def _relu(p: Message, x: Tensor) -> Tensor:
    slope = p.relu_param.negative_slope
    return F.leaky_relu(x, slope) if slope else F.relu(x)


def _power(p: Message, x: Tensor) -> Tensor:
    options = p.power_param
    inner = _affine(x, options)
    return inner if options.power == 1 else inner**options.power


def _exp(p: Message, x: Tensor) -> Tensor:
    inner = _affine(x, p.exp_param)
    base = p.exp_param.base
    return F.exp(inner if base == -1 else inner * math.log(base))


def _log(p: Message, x: Tensor) -> Tensor:
    logarithm = F.log(_affine(x, p.log_param))
    base = p.log_param.base
    return logarithm if base == -1 else logarithm / math.log(base)


def _affine(x: Tensor, options: Message) -> Tensor:
    scaled = x if options.scale == 1 else x * options.scale
    return scaled if options.shift == 0 else scaled + options.shift


def _swish(p: Message, x: Tensor) -> Tensor:
    beta = p.swish_param.beta
    return F.silu(x) if beta == 1 else x * F.sigmoid(x * beta)


def _threshold(p: Message, x: Tensor) -> Tensor:
    return F.cast(x > p.threshold_param.threshold, x.dtype)


FORMULAS: dict[str, Callable[[Message, Any], Any]] = {
    "AbsVal": lambda p, x: F.abs(x),
    "BNLL": lambda p, x: F.softplus(x),
    "Clip": lambda p, x: F.clip(x, p.clip_param.min, p.clip_param.max),
    "ELU": lambda p, x: F.elu(x, p.elu_param.alpha),
    "Exp": _exp,
    "Log": _log,
    "Power": _power,
    "ReLU": _relu,
    "Sigmoid": lambda p, x: F.sigmoid(x),
    "Swish": _swish,
    "TanH": lambda p, x: F.tanh(x),
    "Threshold": _threshold,
}


@layer(*FORMULAS)
class Elementwise(Layer):
    """A formula of the table, applied to each element."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check the bases of powers and logarithms."""
        for kind, options in (("Exp", self.param.exp_param), ("Log", self.param.log_param)):
            if self.param.type == kind and options.base != -1:
                self.check(options.base > 0, f"base must be strictly positive: {options.base}")
        if self.param.type == "Clip":
            bounds = self.param.clip_param
            self.check(bounds.has("min") and bounds.has("max"), "clip_param needs min and max")
            self.check(bounds.min <= bounds.max, "clip_param: min must not exceed max")

    def top_shapes(self, shapes: list[Shape]) -> list[Shape]:
        """Return the shape of the bottom."""
        return shapes

    def forward(self, x: Tensor) -> Tensor:
        """Return what the formula gives."""
        return FORMULAS[self.param.type](self.param, x)


@layer("PReLU")
class PReLU(Layer):
    """max(0, x) + a * min(0, x) with a slope for each channel, or one for all."""

    def setup(self, shapes: list[Shape]) -> None:
        """Make the slopes."""
        (shape,) = shapes
        options = self.param.prelu_param
        self.check(len(shape) >= 2, f"Number of axes of bottom blob must be >=2: {shape}")
        filler = options.filler if options.has("filler") else FillerParameter(value=0.25)
        self.add_blob("weight", () if options.channel_shared else (shape[1],), filler)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with its negative elements scaled."""
        return F.prelu(x, F.reshape(self.blob(0), (-1,)))


@layer("Dropout")
class Dropout(Layer):
    """Zeros at random in training; what is left is scaled there, or in the TEST phase."""

    def setup(self, shapes: list[Shape]) -> None:
        """Check the ratio."""
        ratio = self.param.dropout_param.dropout_ratio
        self.check(0 < ratio < 1, f"dropout_ratio must lie between 0 and 1. Received: {ratio}")

    def forward(self, x: Tensor) -> Tensor:
        """Return x with elements dropped."""
        options = self.param.dropout_param
        ratio = options.dropout_ratio
        if not self.training:
            return x if options.scale_train else x * (1 - ratio)
        dropped = F.dropout(x, ratio, True)
        return dropped if options.scale_train else dropped * (1 - ratio)
