"""Evaluate on other data; report metrics of the training data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from ...core.errors import ArgumentError, ArgumentTypeError
from ...distributed import ProcessGroup
from ..captured import Compile, checked_compile
from ..extension import PRIORITY_WRITER, Extension
from ..metrics import Mean, Metric, named_metrics
from ..objective import Objective, Outcome, evaluating, size_of
from ..parallel import group_of
from ..sharing import merge_all, shared_batches
from ..triggers import as_trigger

if TYPE_CHECKING:
    from ..trainer import Trainer

Averages = Callable[[], AbstractContextManager[Any]]


def evaluate(
    objective: Callable[[Any], Outcome],
    loader: Iterable[Any],
    metrics: Mapping[str, Metric] | None = None,
    *,
    model: Any = None,
    max_batches: int | None = None,
    compile: Compile = "auto",
    group: ProcessGroup | None = None,
) -> dict[str, Any]:
    """Return the mean loss per sample and the metrics of a model over a loader.

    It runs in evaluation mode without gradients; modes and random numbers come back as they were.
    `compile` says whether an Objective runs as compiled programs: "auto", True or False; any other
    function of a batch runs as it is. The processes of a `group` share the batches, and all of
    them have the result.

    >>> import weft as wf
    >>> objective = Objective(lambda x: x * 2.0, lambda output, target: (output - target).sum())
    >>> evaluate(objective, [(wf.tensor([1.0]), wf.tensor([0.5]))])
    {'loss': 1.5}
    """
    metrics = metrics or {}
    checked_compile(compile)
    run = objective.compiled(compile) if isinstance(objective, Objective) else objective
    means: dict[str, Mean] = {}
    for metric in metrics.values():
        metric.reset()
    with evaluating(getattr(objective, "model", None) if model is None else model):
        found = False
        for batch, counts in shared_batches(loader, group, max_batches):
            found = True
            outcome = run(batch)
            if counts:
                _take(outcome, size_of(batch), means, metrics)
    merge_all(group, means, metrics)
    if not means and not metrics:
        why = "batches without targets" if found else "no batches"
        raise ArgumentError(f"there is nothing to evaluate: the loader gave {why}")
    return {
        **{name: mean.compute() for name, mean in means.items()},
        **{name: metric.compute() for name, metric in metrics.items()},
    }


def _take(
    outcome: Outcome, size: int, means: dict[str, Mean], metrics: Mapping[str, Metric]
) -> None:
    for name, value in {"loss": outcome.loss, **outcome.values}.items():
        if value is not None:
            means.setdefault(name, Mean()).add(float(value), size)
    for metric in metrics.values():
        metric.update(outcome.output, outcome.target)


class Evaluator(Extension):
    """Evaluate the model on other data and put the results into the observation as `val/...`.

    loader        the data
    metrics       names, metrics or functions of output and target
    name          prefix of the results
    objective     how to compute output and loss (default: as in training)
    average       an Average extension whose weights are evaluated
    max_batches   evaluate only so many
    shard         whether processes that train together share the batches, which they do exactly;
                  if not, each evaluates all of them
    """

    trigger = (1, "epoch")
    priority = PRIORITY_WRITER

    def __init__(
        self,
        loader: Any,
        metrics: Any = None,
        *,
        name: str = "val",
        objective: Objective | None = None,
        average: Any = None,
        max_batches: int | None = None,
        shard: bool = True,
    ) -> None:
        if not isinstance(loader, Iterable) or iter(loader) is loader:
            raise ArgumentTypeError(
                "a loader for evaluation must be iterable again and again. "
                f"Received: {type(loader).__name__}"
            )
        self.loader = loader
        self.metrics = named_metrics(metrics)
        self.prefix = self.name = name
        self.objective = objective
        self.average = average
        self.max_batches = max_batches
        self.shard = shard

    def __call__(self, trainer: Trainer) -> None:
        """Evaluate and report."""
        objective = self.objective or trainer.updater.objective
        context = nullcontext() if self.average is None else self.average.applied()
        with context:
            results = evaluate(
                objective,
                self.loader,
                self.metrics,
                max_batches=self.max_batches,
                compile=trainer.updater.compile,
                group=group_of(trainer.updater) if self.shard else None,
            )
        for name, value in results.items():
            trainer.observation[f"{self.prefix}/{name}"] = value


class TrainingMetrics(Extension):
    """Gather metrics of the training batches, as they were predicted before each update.

    metrics   names, metrics or functions of output and target
    report    when to put them into the observation as `train/...` and start anew
    """

    priority = PRIORITY_WRITER

    def __init__(self, metrics: Any, report: Any = (1, "epoch"), prefix: str = "train") -> None:
        self.metrics = named_metrics(metrics)
        self.report = as_trigger(report)
        self.prefix = prefix

    def __call__(self, trainer: Trainer) -> None:
        """Take in the outputs of this iteration; report if it is time."""
        for outcome in trainer.updater.outcomes:
            for metric in self.metrics.values():
                metric.update(outcome.output, outcome.target)
        if self.report(trainer):
            merge_all(group_of(trainer.updater), {}, self.metrics)
            for name, metric in self.metrics.items():
                trainer.observation[f"{self.prefix}/{name}"] = metric.compute()
                metric.reset()

    def state_dict(self) -> dict[str, Any]:
        """Return what the metrics have gathered."""
        return {name: metric.state_dict() for name, metric in self.metrics.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` returned, for the metrics that are still there."""
        for name, metric in self.metrics.items():
            if name in state:
                metric.load_state_dict(state[name])
