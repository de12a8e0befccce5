"""Losses and metrics of networks with several outputs: one for each, by name or by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import ArgumentError
from .losses import TargetLoss, get_loss
from .metrics import Metric, get_metric, named_metrics
from .registry import hint

Names = tuple[str, ...]


class OutputLosses(TargetLoss):
    """The weighted sum of a loss for each output; each is reported as `<output>_loss`.

    losses    by the names of the outputs, in their order; None for an output without a loss
    weights   by the names of the outputs; 1 where there is none
    """

    def __init__(
        self, losses: Mapping[str, TargetLoss | None], weights: Mapping[str, float]
    ) -> None:
        if not any(losses.values()):
            raise ArgumentError(f"none of the outputs {list(losses)} has a loss")
        self.losses, self.weights = dict(losses), dict(weights)
        self.names = tuple(losses)
        self.traits = frozenset[str]()

    def __call__(self, output: Any, target: Any = None, weights: Any = None) -> dict[str, Any]:
        """Return the sum as "loss", and the loss of each output."""
        found: dict[str, Any] = {}
        total: Any = None
        for name, loss in self.losses.items():
            if loss is None:
                continue
            made = part_of(output, name, self.names, "output")
            wanted = part_of(target, name, self.names, "target")
            value = loss(made, wanted, _weights_of(weights, name, self.names))
            found[f"{name}_loss"] = value
            weighted = value * self.weights.get(name, 1.0)
            total = weighted if total is None else total + weighted
        return {"loss": total, **found}


class OutputMetric(Metric):
    """A metric of one of several outputs."""

    def __init__(self, metric: Metric, output: str, names: Names) -> None:
        self.metric, self.output, self.names = metric, output, names
        self.name = f"{output}_{metric.name}"

    def reset(self) -> None:
        """Forget all batches."""
        self.metric.reset()

    def update(self, output: Any, target: Any) -> None:
        """Take in what a batch has for this output."""
        made = part_of(output, self.output, self.names, "output")
        self.metric.update(made, part_of(target, self.output, self.names, "target"))

    def compute(self) -> Any:
        """Return the value over all batches."""
        return self.metric.compute()

    def state_dict(self) -> dict[str, Any]:
        """Return the metric's state."""
        return self.metric.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the metric's state."""
        self.metric.load_state_dict(state)


def part_of(value: Any, name: str, names: Names, what: str) -> Any:
    """Return what belongs to an output: of a dictionary by name, of a list by position."""
    if isinstance(value, Mapping):
        if name not in value:
            raise ArgumentError(f"there is no {what} {name!r}; there are: {', '.join(value)}")
        return value[name]
    if isinstance(value, tuple | list):
        if len(value) != len(names):
            raise ArgumentError(
                f"the model has {len(names)} outputs ({', '.join(names)}). "
                f"Received: {len(value)} {what}s"
            )
        return value[names.index(name)]
    if len(names) > 1:
        raise ArgumentError(
            f"the model has {len(names)} outputs ({', '.join(names)}): give a list or a "
            f"dictionary of {what}s. Received: one {what}"
        )
    return value


def loss_of(model: Any, loss: Any, loss_weights: Any = None) -> TargetLoss:
    """Return the loss of a model from what `compile` was given: one, a list or a dictionary."""
    names = output_names(model, loss)
    if names is None:
        if loss_weights is not None:
            raise ArgumentError(
                "loss_weights go with a loss for each output: loss={'a': 'mse', 'b': 'mae'}"
            )
        return get_loss(loss)
    chosen = _by_output(loss, names, "loss")
    weights = {} if loss_weights is None else _by_output(loss_weights, names, "loss_weights")
    made = {name: _optional_loss(chosen.get(name)) for name in names}
    return OutputLosses(made, {name: float(weight) for name, weight in weights.items()})


def metrics_of(model: Any, metrics: Any, names: Names | None) -> dict[str, Metric]:
    """Return the metrics of a model by name; those of several outputs begin with the output's."""
    if names is None or metrics is None:
        return named_metrics(metrics)
    if isinstance(metrics, Mapping) or _is_one_for_each(metrics, names):
        chosen = _by_output(metrics, names, "metrics")
    else:
        chosen = dict.fromkeys(names, metrics)
    found: dict[str, Metric] = {}
    for output, given in chosen.items():
        for name, metric in named_metrics(given).items():
            found[f"{output}_{name}"] = OutputMetric(get_metric(metric), output, names)
    return found


def output_names(model: Any, loss: Any) -> Names | None:
    """Return the names of several outputs; None for a model with one."""
    known = getattr(model, "output_names", None)
    if known is not None and (len(known) > 1 or isinstance(loss, Mapping)):
        return tuple(known)
    if known is None and isinstance(loss, Mapping):
        return tuple(loss)
    if isinstance(loss, list | tuple):
        count = len(known) if known is not None else len(loss)
        return tuple(known) if known is not None else tuple(f"output_{i}" for i in range(count))
    return None


def _by_output(given: Any, names: Names, what: str) -> dict[str, Any]:
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ArgumentError(f"{what}: there is no output {name!r}; {hint(name, names)}")
        return dict(given)
    if isinstance(given, list | tuple):
        if len(given) != len(names):
            raise ArgumentError(
                f"{what} must have one entry for each of the {len(names)} outputs "
                f"({', '.join(names)}). Received: {len(given)}"
            )
        return dict(zip(names, given, strict=True))
    return dict.fromkeys(names, given)


def _is_one_for_each(metrics: Any, names: Names) -> bool:
    """Tell a list with metrics for each output from one that holds for all of them."""
    if not isinstance(metrics, Sequence) or isinstance(metrics, str):
        return False
    return len(metrics) == len(names) and any(isinstance(m, list | tuple) for m in metrics)


def _weights_of(weights: Any, name: str, names: Names) -> Any:
    """Return the weights of the samples for an output: one array for all of them, or its own."""
    if isinstance(weights, Mapping):
        return weights.get(name)
    return part_of(weights, name, names, "weight") if isinstance(weights, list | tuple) else weights


def _optional_loss(loss: Any) -> TargetLoss | None:
    return None if loss is None else get_loss(loss)
