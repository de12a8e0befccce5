"""Losses by name, with weights for samples.

The names of Keras that end in "crossentropy" take probabilities, as they do there by default; those
of PyTorch ("cross_entropy", "bce_with_logits") take logits, which is faster and more exact.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.tensor import Tensor
from ..nn import Module, functional

LossFunction = Callable[..., Any]
_SMALLEST_PROBABILITY = 1e-7  # Keras's epsilon: the logarithm stays finite


def _elementwise(name: str) -> LossFunction:
    """Return a loss of numbers, which takes (n,) beside (n, 1) and integers beside floats."""

    def loss(output: Tensor, target: Tensor, *, reduction: str = "mean") -> Any:
        shaped = _like(target, output)
        return getattr(functional, name)(output, shaped, reduction=reduction)

    return loss


def _logits(name: str) -> LossFunction:
    def loss(output: Tensor, target: Tensor, *, reduction: str = "mean") -> Any:
        return getattr(functional, name)(output, _labels(target), reduction=reduction)

    return loss


def _of_probabilities(output: Tensor, target: Tensor, *, reduction: str = "mean") -> Any:
    total = output.sum(axis=1, keepdims=True)
    logs = (output / total).clip(_SMALLEST_PROBABILITY, 1.0).log()
    if target.shape == output.shape:
        rows = -(_like(target, output) * logs).sum(axis=1)
        return rows if reduction == "none" else rows.mean()
    return functional.nll_loss(logs, _labels(target), reduction=reduction)


LOSSES: dict[str, LossFunction] = {
    "cross_entropy": _logits("cross_entropy"),
    "nll": _logits("nll_loss"),
    "categorical_crossentropy": _of_probabilities,
    "sparse_categorical_crossentropy": _of_probabilities,
    "bce": _elementwise("binary_cross_entropy"),
    "binary_crossentropy": _elementwise("binary_cross_entropy"),
    "bce_with_logits": _elementwise("binary_cross_entropy_with_logits"),
    "mse": _elementwise("mse_loss"),
    "mean_squared_error": _elementwise("mse_loss"),
    "mae": _elementwise("l1_loss"),
    "mean_absolute_error": _elementwise("l1_loss"),
    "huber": _elementwise("huber_loss"),
    "smooth_l1": _elementwise("smooth_l1_loss"),
    "hinge": _elementwise("hinge_loss"),
    "poisson": _elementwise("poisson_nll_loss"),
}


class Loss:
    """A loss that can weight the samples of a batch.

    With weights it is the mean over the samples of weight times loss, divided by their number and
    not by the sum of weights, as in Keras.
    """

    def __init__(self, function: LossFunction) -> None:
        self.function = function

    def __call__(self, output: Any, target: Any, weights: Tensor | None = None) -> Any:
        """Return the loss of a batch."""
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

    def _of_samples(self, output: Any, target: Any) -> Any:
        function = self.function
        if isinstance(function, Module) and hasattr(function, "reduction"):
            kept, function.reduction = function.reduction, "none"
            try:
                return function(output, target)
            finally:
                function.reduction = kept
        if _takes_reduction(function):
            return function(output, target, reduction="none")
        return function(output, target)


def get_loss(loss: Any) -> Loss:
    """Return a loss from its name, a loss module, or a function of output and target.

    >>> import weft as wf
    >>> get_loss("mse")(wf.tensor([[1.0], [3.0]]), wf.tensor([1.0, 1.0]))
    tensor(2.)
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss not in LOSSES:
            near = difflib.get_close_matches(loss, LOSSES, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(LOSSES)}"
            raise ArgumentError(f"there is no loss {loss!r}; {hint}")
        return Loss(LOSSES[loss])
    if callable(loss) and not isinstance(loss, type):
        return Loss(loss)
    raise ArgumentTypeError(
        f"a loss is a name or a function of output and target. Received: {loss!r:.60}"
    )


def _takes_reduction(function: Any) -> bool:
    try:
        return "reduction" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def _like(target: Tensor, output: Tensor) -> Tensor:
    """Return a target in the shape of an output, if they differ only in a last axis of 1."""
    cast: Tensor = target.to(output.dtype)
    if cast.shape == (*output.shape, 1) or (*cast.shape, 1) == output.shape:
        cast = cast.reshape(output.shape)
    return cast


def _labels(target: Tensor) -> Tensor:
    """Return labels of shape (n, 1), as columns of tables are, as (n,)."""
    is_column = target.ndim == 2 and target.shape[1] == 1 and target.dtype.kind in "iu"
    flat: Tensor = target.reshape(target.shape[0]) if is_column else target
    return flat
