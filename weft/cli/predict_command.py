"""`weft predict`: apply a trained model to new samples."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from ..core.errors import WeftError
from ..data.transforms import Compose
from ..nn import Module
from ..train.captured import Compile, as_compiled
from ..train.objective import evaluating
from .config import ConfigSource
from .data import Prepare, Standardize, eval_transform
from .errors import UsageError
from .evaluate_command import best_metric
from .model import build_model
from .predict_inputs import PredictInput, batches, read_samples
from .predict_outputs import Row, rows_of, write_rows
from .run_schema import resolve
from .saved_runs import facts_of, load_weights, open_source


def predict(options: Namespace) -> int:
    """Write what a trained model says of samples; the training data is not needed."""
    source, directory = open_source(options.run, options.set)
    config = resolve(source)
    facts = facts_of(directory)
    transform = _transform(source, config["data"])
    samples = (
        PredictInput(s.label, (transform(s.inputs[0]), *s.inputs[1:]))
        for s in read_samples(options.inputs, config["data"], facts)
    )
    size = options.batch_size or config["data"].get("eval_batch_size", config["data"]["batch_size"])
    prepare = Prepare(config["precision"], "last")
    rows: list[Row] = []
    model: CompiledModel | None = None
    for labels, inputs in batches(samples, size):
        prepared = prepare(inputs)
        if model is None:
            loaded = _loaded(source, config, prepared, facts)
            load_weights(loaded, directory, options.weights, best_metric(config))
            model = CompiledModel(loaded, config["compile"])
        output = model(prepared, labels)
        rows += rows_of(labels, output, config["loss"]["type"], facts.get("classes"), options.top)
    if not rows:
        raise UsageError("there are no samples to predict")
    write_rows(rows, options.out, options.format)
    if options.out:
        print(f"{len(rows)} predictions written to {options.out}", file=sys.stderr)
    return 0


def _transform(source: ConfigSource, settings: Any) -> Callable[[Any], Any]:
    """Return what evaluation does to an input: standardizing, then its transforms."""
    scale = Standardize(**settings["statistics"]) if "statistics" in settings else None
    return Compose([step for step in (scale, eval_transform(source, settings)) if step is not None])


def _loaded(source: ConfigSource, config: Any, inputs: Any, facts: Any) -> Module:
    settings = {**config["model"]}
    settings.pop("weights", None)  # the trained ones take their place
    try:
        model = build_model(source, {**config, "model": settings}, inputs, facts)
    except WeftError as error:
        raise UsageError(f"the samples do not fit the model: {error}") from error
    return model.to(Prepare(config["precision"], "last").dtype)


class CompiledModel:
    """A trained model that is applied to batches, as compiled programs or eagerly."""

    def __init__(self, model: Module, compile: Compile) -> None:
        self._model = model
        self._run = as_compiled(model, compile)

    def __call__(self, inputs: Any, labels: list[str]) -> Any:
        """Return the output for samples, which have labels for messages."""
        try:
            with evaluating(self._model):
                return self._run(*inputs)
        except WeftError as error:
            raise UsageError(f"the model cannot take {labels[0]}: {error}") from error
