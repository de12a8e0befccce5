"""`weft predict`: apply a trained model to new samples."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from ..core.errors import WeftError
from ..nn import Module
from ..nn.places import beside
from ..train.captured import Compile, as_compiled
from ..train.objective import evaluating
from .errors import UsageError
from .predict_inputs import PredictInput, batches, read_samples
from .predict_outputs import Row, rows_of, write_rows
from .trained import TrainedRun, open_trained


def predict(options: Namespace) -> int:
    """Write what a trained model says of samples; the training data is not needed."""
    run = open_trained(options.run, options.set)
    config, facts = run.config, run.facts
    samples = (
        _transformed(run, sample) for sample in read_samples(options.inputs, config["data"], facts)
    )
    size = options.batch_size or config["data"].get("eval_batch_size", config["data"]["batch_size"])
    rows: list[Row] = []
    model: CompiledModel | None = None
    for labels, inputs in batches(samples, size):
        prepared = run.prepare(inputs)
        if model is None:
            model = CompiledModel(run.model(prepared, options.weights), config["compile"])
        output = model(prepared, labels)
        rows += rows_of(labels, output, config["loss"]["type"], facts.get("classes"), options.top)
    if not rows:
        raise UsageError("there are no samples to predict")
    write_rows(rows, options.out, options.format)
    if options.out:
        print(f"{len(rows)} predictions written to {options.out}", file=sys.stderr)
    return 0


def _transformed(run: TrainedRun, sample: PredictInput) -> PredictInput:
    if run.transform is None:
        return sample
    first, *others = sample.inputs
    return PredictInput(sample.label, (run.transform(first), *others))


class CompiledModel:
    """A trained model that is applied to batches, as compiled programs or eagerly."""

    def __init__(self, model: Module, compile: Compile) -> None:
        self._model = model
        self._run = as_compiled(model, compile)

    def __call__(self, inputs: Any, labels: list[str]) -> Any:
        """Return the output for samples, which have labels for messages."""
        try:
            with evaluating(self._model):
                return self._run(*beside(self._model, inputs))
        except WeftError as error:
            raise UsageError(f"the model cannot take {labels[0]}: {error}") from error
