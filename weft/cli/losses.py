"""Losses by name."""

from __future__ import annotations

from typing import Any

from .. import nn
from ..core.errors import ShapeError
from ..core.tensor import Tensor
from ..nn import Module, models
from .registry import Registry

LOSSES = Registry("loss", given=frozenset({"size_average", "reduce"}))

_OF_CLASSES = {
    "cross_entropy": nn.CrossEntropyLoss,
    "nll": nn.NLLLoss,
    "multi_margin": nn.MultiMarginLoss,
}
# These compare element by element; a target (n,) beside an output (n, 1) is reshaped, and never
# broadcast to (n, n).
_OF_ELEMENTS = {
    "mse": nn.MSELoss,
    "mae": nn.L1Loss,
    "l1": nn.L1Loss,
    "huber": nn.HuberLoss,
    "smooth_l1": nn.SmoothL1Loss,
    "bce": nn.BCELoss,
    "bce_with_logits": nn.BCEWithLogitsLoss,
    "focal": nn.SigmoidFocalLoss,
    "hinge": nn.HingeLoss,
    "soft_margin": nn.SoftMarginLoss,
    "multi_label_soft_margin": nn.MultiLabelSoftMarginLoss,
    "poisson_nll": nn.PoissonNLLLoss,
    "kl_div": nn.KLDivLoss,
}
for _name, _make in {**_OF_CLASSES, **_OF_ELEMENTS}.items():
    LOSSES.add(_name, _make)
LOSSES.add("vae", models.VAELoss)

CLASS_SCORES = frozenset(_OF_CLASSES)
BINARY_SCORES = frozenset({"bce_with_logits", "focal", "soft_margin"})
BINARY_PROBABILITIES = frozenset({"bce"})


class AlignedLoss(Module):
    """A loss of elements, with targets in the shape and dtype of outputs."""

    def __init__(self, loss: Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, output: Tensor, target: Tensor) -> Any:
        """Return the loss of outputs and targets of one shape, but for a last axis of 1."""
        target = target.to(output.dtype) if target.dtype.kind in "biuf" else target
        if target.shape != output.shape:
            if target.size != output.size or {*target.shape} - {1} != {*output.shape} - {1}:
                raise ShapeError(
                    "output and target must have one shape. Received: "
                    f"{tuple(output.shape)} and {tuple(target.shape)}"
                )
            target = target.reshape(output.shape)
        return self.loss(output, target)


def finish_loss(name: str, loss: Any) -> Any:
    """Return a loss as it is used in training."""
    return AlignedLoss(loss) if name in _OF_ELEMENTS else loss
