"""A trained run that is ready for samples: what is done to them, and the model with its weights.

`weft predict` and `weft serve` share it, so that both see a sample as evaluation did in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.errors import WeftError
from ..data.transforms import Compose
from ..nn import Module
from .config import ConfigSource
from .data import Prepare, Standardize, eval_transform
from .errors import UsageError
from .evaluate_command import best_metric
from .model import build_model
from .run_schema import resolve
from .saved_runs import facts_of, load_weights, open_source


@dataclass
class TrainedRun:
    """The configuration of a run and what was known of its data.

    transform   what evaluation does to an input: standardizing, then its transforms; None: nothing
    prepare     what brings a batch into the precision of the run
    """

    source: ConfigSource
    directory: Path | None
    config: dict[str, Any]
    facts: dict[str, Any]
    transform: Callable[[Any], Any] | None
    prepare: Prepare

    def model(self, inputs: Sequence[Any], weights: str) -> Module:
        """Return the trained model; its sizes follow from example inputs."""
        settings = {**self.config["model"]}
        settings.pop("weights", None)  # the trained ones take their place
        config = {**self.config, "model": settings}
        try:
            model = build_model(self.source, config, inputs, self.facts)
        except WeftError as error:
            raise UsageError(f"the samples do not fit the model: {error}") from error
        model.to(self.prepare.dtype)
        load_weights(model, self.directory, weights, best_metric(self.config))
        return model.to(device=self.config["device"])


def open_trained(target: str, settings: list[str]) -> TrainedRun:
    """Return a run directory, or a TOML file whose weights are given, as a run to be used."""
    source, directory = open_source(target, settings)
    config = resolve(source)
    return TrainedRun(
        source,
        directory,
        config,
        facts_of(directory),
        _transform(source, config["data"]),
        Prepare(config["precision"], "last"),
    )


def _transform(source: ConfigSource, settings: Any) -> Callable[[Any], Any] | None:
    scale = Standardize(**settings["statistics"]) if "statistics" in settings else None
    steps = [step for step in (scale, eval_transform(source, settings)) if step is not None]
    return Compose(steps) if steps else None
