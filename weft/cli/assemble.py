"""From a configuration to everything a command needs: data, model, loss, metrics, optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.modes import no_grad
from ..core.tensor import Tensor
from ..nn import Module
from ..ops.random.draw import manual_seed
from ..optim import LossScaler, Optimizer, match_groups
from ..train import Metric, Objective, Updater
from ..train.losses import LOSSES, TargetLoss
from ..train.metrics import METRICS
from ..train.optimizers import OPTIMIZERS
from ..train.parallel import as_parallel, mode_of, own_batches
from ..train.registry import Registry
from .config import ConfigSource
from .data import (
    Data,
    Prepare,
    absolute_paths,
    batch_transform,
    build_data,
    example_batch,
)
from .errors import BUILD_ERRORS
from .model import build, build_model, run_example
from .run_schema import SPLITS, resolve


@dataclass
class Run:
    """A run before training: all that its configuration names, made and tried on an example."""

    source: ConfigSource
    config: dict[str, Any]
    data: Data
    model: Module
    loss: Any
    prepare: Prepare
    example: tuple[Any, ...]  # the inputs of an example batch

    @property
    def objective(self) -> Objective:
        """Return how a batch becomes a loss."""
        return Objective(self.model, self.loss, target=self.prepare.position, prepare=self.prepare)

    def metrics(self) -> dict[str, Metric]:
        """Return new metrics by name."""
        return build_metrics(self.source, self.config)

    def loader(self, split: str) -> Any:
        """Return the batches of a split."""
        made = batch_transform(self.source, self.config, self.data.facts)
        parallel = self.config["trainer"]["parallel"] if split == "train" else False
        in_turns = mode_of(parallel) == "async"
        shard = parallel is not False and not in_turns
        loader = self.data.loader(split, self.config["seed"], made, shard=shard)
        return own_batches(loader, parallel) if in_turns else loader


def build_run(source: ConfigSource, wanted: tuple[str, ...] = SPLITS) -> Run:
    """Check a configuration and make its parts; every mistake is found here, before training."""
    config = resolve(source)
    absolute_paths(source, config)
    data = build_data(source, config, wanted)
    prepare = Prepare(config["precision"], config["data"]["target"])
    batch = prepare(example_batch(source, data, next(iter(data.splits))))
    inputs, target = _divided(source, prepare, batch)
    manual_seed(config["seed"])  # here, so that a program that builds the same model draws the same
    model = build_model(source, config, inputs, data.facts)
    model.to(prepare.dtype)
    loss = build_loss(source, config)
    run = Run(source, config, data, model, loss, prepare, inputs)
    _try(run, inputs, target)
    model.to(device=config["device"])  # batches go where it is
    return run


def _divided(source: ConfigSource, prepare: Prepare, batch: tuple[Any, ...]) -> tuple[Any, Any]:
    if prepare.position is None:
        return batch, None
    if len(batch) < 2:
        raise source.error(
            ("data",),
            "the data has no target; name one (e.g. target of a CSV file), or set data.target to "
            "'input' for an autoencoder or 'none'",
        )
    return batch[:-1], batch[-1]


def _try(run: Run, inputs: Any, target: Any) -> None:
    """Compute loss and metrics of an example, so that a misfit is found before training."""
    output = run_example(run.model, inputs)
    has_target = run.prepare.position is not None
    with no_grad(), run.source.blaming(("loss",), f"loss {run.config['loss']['type']!r}"):
        loss = run.loss(output, target) if has_target else run.loss(output)
    if isinstance(loss, Tensor) and loss.size != 1:
        raise run.source.error(
            ("loss",), f"the loss must be one number, not shape {loss.shape}; set reduction"
        )
    _check_labels(run, output)
    for i, metric in enumerate(run.metrics().values()):
        with run.source.blaming(("metrics", i), "metric"):
            metric.update(output, target)


def _check_labels(run: Run, output: Any) -> None:
    """Refuse labels beyond the classes of the output; an example alone would not show them."""
    if "classes" not in run.loss.traits or not isinstance(output, Tensor):
        return
    ignored = run.config["loss"].get("ignore_index", -100)
    for split, labels in run.data.labels.items():
        if labels is None or output.ndim != 2:
            continue
        used = labels[labels != ignored]
        if used.size and not 0 <= used.min() <= used.max() < output.shape[1]:
            raise run.source.error(
                ("loss",),
                f"loss {run.config['loss']['type']!r}: the {split} data has labels from "
                f"{used.min()} to {used.max()}, but the model has {output.shape[1]} outputs",
            )


# -- parts ---------------------------------------------------------------------------------------


def build_loss(source: ConfigSource, config: Mapping[str, Any]) -> Any:
    """Return the loss of a configuration."""
    made = _made(source, config["loss"], ("loss",), LOSSES)
    return TargetLoss(made, LOSSES[config["loss"]["type"]].traits)


def build_metrics(source: ConfigSource, config: Mapping[str, Any]) -> dict[str, Metric]:
    """Return the metrics of a configuration by name."""
    metrics: dict[str, Metric] = {}
    for i, table in enumerate(config["metrics"]):
        metric = _made(source, table, ("metrics", i), METRICS)
        name = metric.name
        if name in metrics:
            raise source.error(("metrics", i), f"the metric {name!r} is there twice")
        metrics[name] = metric
    return metrics


def _made(source: ConfigSource, table: Mapping[str, Any], keys: Any, registry: Registry) -> Any:
    options = {name: value for name, value in table.items() if name != "type"}
    with source.blaming(keys, f"{registry.kind} {table['type']!r}"):
        return build(registry[table["type"]], options)


def build_optimizer(run: Run) -> Optimizer:
    """Return the optimizer of a run, with its parameter groups."""
    settings = run.config["optimizer"]
    entry = OPTIMIZERS[settings["type"]]
    options = {n: v for n, v in settings.items() if n in entry.options}
    named = [(n, p) for n, p in run.model.named_parameters() if p.requires_grad]
    if not named:
        raise run.source.error(("model",), "the model has no parameters to train")
    groups = settings.get("groups", [])
    rules = {
        group["match"]: {"name": group["match"], **{n: v for n, v in group.items() if n != "match"}}
        for group in groups
    }
    try:
        params = match_groups(named, rules) if rules else named
        optimizer: Optimizer = entry(params, **options)
    except BUILD_ERRORS as error:
        keys = _group_keys(groups, str(error))
        raise run.source.blame(keys, error, f"optimizer {entry.name!r}") from error
    if run.config["precision"] == "float16":
        LossScaler(optimizer, scale=2.0**10)  # the loss itself is of float16, up to 65504
    return optimizer


def _group_keys(groups: list[dict[str, Any]], message: str) -> tuple[str | int, ...]:
    """Return the place of the group whose pattern a message quotes, or of the optimizer."""
    for i, group in enumerate(groups):
        if repr(group["match"]) in message:
            return ("optimizer", "groups", i)
    return ("optimizer",)


def build_updater(run: Run) -> Updater:
    """Return what makes an iteration of training."""
    trainer = run.config["trainer"]
    parallel = trainer["parallel"]
    if mode_of(parallel) == "sync":  # first: the optimizer is of what is left of parameters here
        with run.source.blaming(("trainer", "parallel"), "parallel"):
            parallel = as_parallel(parallel, run.model)
    return Updater(
        run.model,
        build_optimizer(run),
        run.loss,
        run.loader("train"),
        target=run.prepare.position,
        prepare=run.prepare,
        accumulate=trainer["accumulate"],
        clip_norm=trainer.get("clip_norm"),
        clip_value=trainer.get("clip_value"),
        compile=run.config["compile"],
        parallel=parallel,
    )
