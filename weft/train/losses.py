"""Losses by name, with weights for samples.

The names of Keras that end in "crossentropy" take probabilities, as they do there by default; those
of PyTorch ("cross_entropy", "bce_with_logits") take logits, which is faster and more exact.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from typing import Any

from .. import nn
from ..core.errors import ArgumentTypeError, ShapeError
from ..core.tensor import Tensor
from ..nn import Module, functional, models
from ..nn.loss import Loss as LossLayer
from .registry import Registry

LossFunction = Callable[..., Any]
_SMALLEST_PROBABILITY = 1e-7  # Keras's epsilon: the logarithm stays finite


class CategoricalCrossentropy(LossLayer):
    """Return the cross entropy between probabilities (N, C) and labels or probabilities."""

    def forward(self, output: Tensor, target: Tensor) -> Any:
        """Return the loss."""
        total = output.sum(axis=1, keepdims=True)
        logs = (output / total).clip(_SMALLEST_PROBABILITY, 1.0).log()
        if target.shape != output.shape:
            return functional.nll_loss(logs, target, reduction=self.reduction)
        rows = -(target.to(output.dtype) * logs).sum(axis=1)
        return rows if self.reduction == "none" else getattr(rows, self.reduction)()


# Traits: a loss of "classes" compares scores or probabilities of classes with labels, one of
# "elements" compares numbers of one shape; "scores" and "probabilities" say what the model gives.
LOSSES = Registry("loss")
for _names, _make, *_traits in (
    ("cross_entropy", nn.CrossEntropyLoss, "classes", "scores"),
    ("nll", nn.NLLLoss, "classes", "scores"),
    ("multi_margin", nn.MultiMarginLoss, "classes", "scores"),
    (
        ("categorical_crossentropy", "sparse_categorical_crossentropy"),
        CategoricalCrossentropy,
        "classes",
        "probabilities",
    ),
    (("mse", "mean_squared_error"), nn.MSELoss, "elements"),
    (("mae", "mean_absolute_error", "l1"), nn.L1Loss, "elements"),
    ("huber", nn.HuberLoss, "elements"),
    ("smooth_l1", nn.SmoothL1Loss, "elements"),
    (("bce", "binary_crossentropy"), nn.BCELoss, "elements", "probabilities"),
    ("bce_with_logits", nn.BCEWithLogitsLoss, "elements", "scores"),
    ("focal", nn.SigmoidFocalLoss, "elements", "scores"),
    ("hinge", nn.HingeLoss, "elements"),
    ("soft_margin", nn.SoftMarginLoss, "elements", "scores"),
    ("multi_label_soft_margin", nn.MultiLabelSoftMarginLoss, "elements"),
    (("poisson_nll", "poisson"), nn.PoissonNLLLoss, "elements"),
    ("kl_div", nn.KLDivLoss, "elements"),
    ("vae", models.VAELoss),
):
    LOSSES.add(_names, _make, traits=_traits)


class TargetLoss:
    """A loss that brings targets into the form it takes, and can weight the samples of a batch.

    With weights it is the mean over the samples of weight times loss, divided by their number and
    not by the sum of weights, as in Keras.
    """

    def __init__(self, function: LossFunction, traits: Iterable[str] = ()) -> None:
        self.function = function
        self.traits = frozenset(traits)
        self._of_samples = _without_reduction(function)

    def __call__(self, output: Any, target: Any = None, weights: Tensor | None = None) -> Any:
        """Return the loss of a batch; without a target, it is a function of the output alone."""
        if target is None:
            return self.function(output)
        if "elements" in self.traits:
            target = target_like(target, output)
        elif "classes" in self.traits:
            target = label_column(target, output)
        if weights is None:
            return self.function(output, target)
        rows = self._of_samples(output, target)
        if not isinstance(rows, Tensor) or rows.shape[:1] != weights.shape:
            shape = getattr(rows, "shape", None)
            raise ShapeError(
                f"to weight samples, the loss must give one number for each of the "
                f"{weights.size} samples. Received: shape {shape}"
            )
        if rows.ndim > 1:
            rows = rows.reshape(rows.shape[0], -1).mean(axis=1)
        return (rows * weights.to(rows.dtype)).mean()


def get_loss(loss: Any, **options: Any) -> TargetLoss:
    """Return a loss from its name and options, a loss module, or a function of output and target.

    >>> import weft as wf
    >>> get_loss("mse")(wf.tensor([[1.0], [3.0]]), wf.tensor([1.0, 1.0]))
    tensor(2.)
    """
    if isinstance(loss, TargetLoss):
        return loss
    if isinstance(loss, str):
        entry = LOSSES[loss]
        return TargetLoss(entry(**options), entry.traits)
    if callable(loss) and not isinstance(loss, type):
        return TargetLoss(loss)
    raise ArgumentTypeError(
        f"a loss is a name or a function of output and target. Received: {loss!r:.60}"
    )


def _without_reduction(function: LossFunction) -> LossFunction:
    """Return a loss that gives a number for each sample, if the function can."""
    if isinstance(function, Module) and hasattr(function, "reduction"):
        rows = copy(function)  # which shares weights with it
        rows.reduction = "none"
        return rows
    return partial(function, reduction="none") if _takes_reduction(function) else function


def _takes_reduction(function: Any) -> bool:
    try:
        return "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def target_like(target: Tensor, output: Tensor) -> Tensor:
    """Return a target in dtype and shape of an output, if they differ only in axes of size 1."""
    cast: Tensor = target.to(output.dtype)
    if cast.shape == output.shape:
        return cast
    if [n for n in cast.shape if n != 1] != [n for n in output.shape if n != 1]:
        raise ShapeError(  # never broadcast: (n,) beside (n, 1) would be (n, n)
            "output and target must have one shape. Received: "
            f"{tuple(output.shape)} and {tuple(target.shape)}"
        )
    shaped: Tensor = cast.reshape(output.shape)
    return shaped


def label_column(target: Tensor, output: Tensor) -> Tensor:
    """Return labels of shape (n, 1), as columns of tables are, as (n,)."""
    is_column = target.ndim == output.ndim == 2 and target.shape[1] == 1
    is_label = target.dtype.kind in "iu"
    flat: Tensor = target.reshape(target.shape[0]) if is_column and is_label else target
    return flat
