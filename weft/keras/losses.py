"""Losses by Keras's names: functions of (y_true, y_pred), classes along the last axis.

Functions return one number for each sample (and position); objects, and `compile`, take their mean.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ..core.tensor import Tensor
from ..nn import functional
from ..nn.calls import F
from ..ops.creation import tensor
from ..train.losses import CategoricalCrossentropy as ProbabilityLoss
from ..train.losses import TargetLoss, label_column, target_like
from ..train.registry import hint
from .naming import snake_case

_EPSILON = 1e-7  # Keras's
_OF_PROBABILITIES = ProbabilityLoss(reduction="none")


def _element_loss(function: Callable[..., Any], y_true: Any, y_pred: Any, **options: Any) -> Any:
    """Return the mean over the last axis of a loss of elements."""
    rows = function(y_pred, target_like(y_true, y_pred), reduction="none", **options)
    return rows.mean(axis=-1) if rows.ndim > 1 else rows


def mean_squared_error(y_true: Any, y_pred: Any) -> Any:
    """Return mean((y_true - y_pred) ** 2) over the last axis."""
    return _element_loss(functional.mse_loss, y_true, y_pred)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Any:
    """Return mean(|y_true - y_pred|) over the last axis."""
    return _element_loss(functional.l1_loss, y_true, y_pred)


def huber(y_true: Any, y_pred: Any, delta: float = 1.0) -> Any:
    """Return squares near zero and absolute values beyond delta, their mean over the last axis."""
    return _element_loss(functional.huber_loss, y_true, y_pred, delta=delta)


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Any:
    """Return 100 * mean(|y_true - y_pred| / |y_true|) over the last axis."""
    true = target_like(y_true, y_pred)
    return 100.0 * (abs(true - y_pred) / abs(true).clip(_EPSILON)).mean(axis=-1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Any:
    """Return the mean of squared differences of log(1 + x) over the last axis."""
    logs = [F.log1p(y.clip(_EPSILON)) for y in (y_pred, target_like(y_true, y_pred))]
    return mean_squared_error(logs[1], logs[0])


def log_cosh(y_true: Any, y_pred: Any) -> Any:
    """Return mean(log(cosh(y_pred - y_true))) over the last axis."""
    x = y_pred - target_like(y_true, y_pred)
    return (x + functional.softplus(-2.0 * x) - 0.6931471805599453).mean(axis=-1)


def hinge(y_true: Any, y_pred: Any) -> Any:
    """Return mean(max(1 - y_true * y_pred, 0)); labels 0 and 1 are taken as -1 and 1."""
    return functional.relu(1.0 - _signs(y_true, y_pred) * y_pred).mean(axis=-1)


def squared_hinge(y_true: Any, y_pred: Any) -> Any:
    """Return mean(max(1 - y_true * y_pred, 0) ** 2)."""
    return (functional.relu(1.0 - _signs(y_true, y_pred) * y_pred) ** 2).mean(axis=-1)


def poisson(y_true: Any, y_pred: Any) -> Any:
    """Return mean(y_pred - y_true * log(y_pred)) over the last axis."""
    true = target_like(y_true, y_pred)
    return (y_pred - true * F.log(y_pred + _EPSILON)).mean(axis=-1)


def kl_divergence(y_true: Any, y_pred: Any) -> Any:
    """Return sum(y_true * log(y_true / y_pred)) over the last axis."""
    true = target_like(y_true, y_pred).clip(_EPSILON, 1.0)
    return (true * F.log(true / y_pred.clip(_EPSILON, 1.0))).sum(axis=-1)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Any:
    """Return the negative cosine of the angle between both."""
    true = target_like(y_true, y_pred)
    return -functional.cosine_similarity(true, y_pred, dim=axis)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> Any:
    """Return the mean over the last axis of the cross entropy of two classes."""
    true = target_like(y_true, y_pred)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        return _element_loss(functional.binary_cross_entropy_with_logits, true, y_pred)
    inside = y_pred.clip(_EPSILON, 1.0 - _EPSILON)
    return _element_loss(functional.binary_cross_entropy, true, inside)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0.0
) -> Any:
    """Return the cross entropy of one-hot targets (or probabilities) over the last axis."""
    if y_true.ndim < y_pred.ndim or y_true.shape[-1] == 1 < y_pred.shape[-1]:
        raise ShapeError(
            "categorical_crossentropy takes one-hot targets, of the shape of the output "
            f"{tuple(y_pred.shape)}. Received: {tuple(y_true.shape)}; for labels use "
            "sparse_categorical_crossentropy, or utils.to_categorical(y)"
        )
    true = target_like(y_true, y_pred)
    if label_smoothing:
        true = true * (1.0 - label_smoothing) + label_smoothing / y_pred.shape[-1]
    return _classes(true.moveaxis(-1, 1), y_pred, from_logits)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Any:
    """Return the cross entropy of labels; the classes are the last axis of y_pred."""
    labels = y_true
    if labels.ndim == y_pred.ndim and labels.shape[-1] == 1:
        labels = labels.reshape(labels.shape[:-1])
    if labels.ndim == y_pred.ndim and y_pred.ndim > 1:
        raise ShapeError(
            "sparse_categorical_crossentropy takes one label for each output of shape "
            f"{tuple(y_pred.shape)}. Received: {tuple(y_true.shape)}; for one-hot targets use "
            "categorical_crossentropy"
        )
    if labels.dtype.kind == "f":
        labels = labels.to("int64")
    return _classes(label_column(labels, y_pred), y_pred, from_logits)


def _classes(true: Any, y_pred: Any, from_logits: bool) -> Any:
    scores = y_pred.moveaxis(-1, 1)
    if from_logits:
        return functional.cross_entropy(scores, true, reduction="none")
    return _OF_PROBABILITIES(scores, true)


def _signs(y_true: Any, y_pred: Any) -> Any:
    true = target_like(y_true, y_pred)
    are_labels = F.all(F.equal(true, 0.0) | F.equal(true, 1.0))
    return F.where(are_labels, 2.0 * true - 1.0, true)


class Loss:
    """Base of loss objects: `call(y_true, y_pred)` returns a number for each sample."""

    def __init__(
        self, name: str | None = None, reduction: str | None = "sum_over_batch_size", **options: Any
    ) -> None:
        if reduction not in ("sum_over_batch_size", "sum", "none", "mean", "auto", None):
            raise ArgumentError(
                f"reduction is 'sum_over_batch_size', 'sum' or 'none'. Received: {reduction!r}"
            )
        self.name = name or snake_case(type(self).__name__)
        self.reduction, self.options = reduction, options

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each sample."""
        raise ArgumentTypeError(f"{type(self).__name__} defines no call(); a loss must")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Any:
        """Return the loss, reduced as asked for."""
        rows = self.call(_as_tensor(y_true), _as_tensor(y_pred))
        if sample_weight is not None:
            rows = _weighted(rows, _as_tensor(sample_weight))
        if self.reduction in ("none", None):
            return rows
        return rows.sum() if self.reduction == "sum" else rows.mean()

    def get_config(self) -> dict[str, Any]:
        """Return what the constructor needs."""
        return {"name": self.name, "reduction": self.reduction, **self.options}


class _FunctionLoss(Loss):
    """Base of the loss objects that stand for a function."""

    function: Callable[..., Any]

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each sample."""
        return type(self).function(y_true, y_pred, **self.options)


def _object(name: str, function: Callable[..., Any]) -> type[Loss]:
    body = {"function": staticmethod(function), "__doc__": function.__doc__}
    return type(name, (_FunctionLoss,), {**body, "__module__": __name__})


MeanSquaredError = _object("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _object("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _object("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _object("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
Huber = _object("Huber", huber)
LogCosh = _object("LogCosh", log_cosh)
Hinge = _object("Hinge", hinge)
SquaredHinge = _object("SquaredHinge", squared_hinge)
Poisson = _object("Poisson", poisson)
KLDivergence = _object("KLDivergence", kl_divergence)
CosineSimilarity = _object("CosineSimilarity", cosine_similarity)
BinaryCrossentropy = _object("BinaryCrossentropy", binary_crossentropy)
CategoricalCrossentropy = _object("CategoricalCrossentropy", categorical_crossentropy)
SparseCategoricalCrossentropy = _object(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy
)
_OBJECTS = (
    *(MeanSquaredError, MeanAbsoluteError, MeanAbsolutePercentageError),
    *(MeanSquaredLogarithmicError, Huber, LogCosh, Hinge, SquaredHinge, Poisson, KLDivergence),
    *(CosineSimilarity, BinaryCrossentropy, CategoricalCrossentropy),
    SparseCategoricalCrossentropy,
)
mse = MSE = mean_squared_error
mae = MAE = mean_absolute_error
LOSSES: dict[str, Callable[..., Any]] = {
    **{kind.function.__name__: kind.function for kind in _OBJECTS},  # type: ignore[attr-defined]  # made above
    "mse": mse,
    "mae": mae,
    "MSE": mse,
    "MAE": mae,
    "mape": mean_absolute_percentage_error,
    "msle": mean_squared_logarithmic_error,
    "logcosh": log_cosh,
}


class FaceLoss(TargetLoss):
    """A loss of Keras's as `fit` calls it: output first, then target, then weights."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function, self.traits = function, frozenset[str]()

    def __call__(self, output: Any, target: Any = None, weights: Any = None) -> Any:
        """Return the mean over samples, weighted where there are weights."""
        loss = self.function
        if isinstance(loss, Loss):
            reduced = loss(target, output, weights)
            return reduced if reduced.ndim == 0 else reduced.mean()
        rows = loss(target, output)
        return (rows if weights is None else _weighted(rows, weights)).mean()


def get(identifier: Any) -> Any:
    """Return a loss function or object from its name, or as it was given."""
    if isinstance(identifier, str):
        names = {**LOSSES, **{kind.__name__: kind() for kind in _OBJECTS}}
        if identifier not in names:
            raise ArgumentError(f"there is no loss {identifier!r}; {hint(identifier, LOSSES)}")
        return names[identifier]
    if isinstance(identifier, dict):
        kind = {kind.__name__: kind for kind in _OBJECTS}[identifier["class_name"]]
        return kind(**identifier.get("config", {}))
    if isinstance(identifier, type) and issubclass(identifier, Loss):
        return identifier()
    if callable(identifier):
        return identifier
    raise ArgumentTypeError(f"a loss is a name or a function. Received: {identifier!r:.60}")


def get_all(loss: Any) -> Any:
    """Return what `compile` was given with every loss in the form that `fit` calls."""
    if loss is None or isinstance(loss, TargetLoss):
        return loss
    if isinstance(loss, Mapping) and "class_name" not in loss:
        return {name: get_all(each) for name, each in loss.items()}
    if isinstance(loss, list | tuple):
        return [get_all(each) for each in loss]
    return FaceLoss(get(loss))


def serialize(loss: Any) -> Any:
    """Return a loss as JSON can hold it; a function of the user's by its name."""
    if loss is None or isinstance(loss, str):
        return loss
    if isinstance(loss, Mapping):
        return {name: serialize(each) for name, each in loss.items()}
    if isinstance(loss, list | tuple):
        return [serialize(each) for each in loss]
    if isinstance(loss, Loss):
        return {"class_name": type(loss).__name__, "config": loss.get_config()}
    return str(getattr(loss, "__name__", type(loss).__name__))


def _weighted(rows: Any, weights: Any) -> Any:
    if rows.ndim > 1:
        rows = rows.reshape(rows.shape[0], -1).mean(axis=1)
    return rows * weights.to(rows.dtype)


def _as_tensor(value: Any) -> Any:
    return value if isinstance(value, Tensor) else tensor(value)
