"""The Keras face: compile, fit, evaluate and predict, as methods of every Module.

`fit` builds an Updater and a Trainer, so that it trains exactly as a loop written with them. Data
may be arrays, tensors, lists of numbers, tuples or dictionaries of those (several inputs: by
position or by name), a dataset of (x, y), or a loader of such batches.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor
from ..core.tree import flatten, tree_map
from ..nn import Module
from ..nn.places import beside
from ..nn.version import leave_unseen
from ..optim import Optimizer
from .callbacks import Callback, History
from .captured import Captures, Compile, checked_compile
from .checks import checked_int, optional_int
from .extension import Extension
from .extensions import ProgressBar, TrainingMetrics
from .extensions import evaluate as evaluate_batches
from .fitting import (
    Bridge,
    CompiledObjective,
    FitStop,
    FitUpdater,
    Validation,
    as_tensors,
    call_model,
    settle,
    source_of,
    training_sources,
    validation_source,
)
from .losses import TargetLoss
from .metrics import Metric
from .objective import evaluating
from .optimizers import check_optimizer, get_optimizer
from .outputs import OutputLosses, loss_of, metrics_of
from .parallel import as_parallel, mode_of
from .trainer import Trainer

# What this module and fitting.py keep at models.
leave_unseen("_captures", "_compiled", "history", "optimizer", "stop_training")


class CompileSettings:
    """What `compile` was given, and the optimizer that follows from it."""

    def __init__(
        self,
        model: Module,
        optimizer: Any,
        loss: TargetLoss,
        metrics: Any,
        clip_norm: float | None,
        compile: Compile,
    ) -> None:
        check_optimizer(optimizer)
        self.compile = checked_compile(compile)
        self.captures = Captures()
        self.choice = optimizer
        self.loss = loss
        several = loss.names if isinstance(loss, OutputLosses) else None
        self.metrics = metrics_of(model, metrics, several)
        self.clip_norm = clip_norm

    def choice_of(self, compile: Compile | None) -> Compile:
        """Return whether to compile: as a call says, or else as `compile` was told."""
        return self.compile if compile is None else checked_compile(compile)

    def fresh_metrics(self) -> dict[str, Metric]:
        """Return metrics of the same kind that have seen nothing."""
        copies = {name: deepcopy(metric) for name, metric in self.metrics.items()}
        for metric in copies.values():
            metric.reset()
        return copies


def compile(
    self: Module,
    optimizer: Any = "rmsprop",
    loss: Any = None,
    metrics: Any = None,
    *,
    loss_weights: Any = None,
    clip_norm: float | None = None,
    compile: Compile = "auto",
) -> None:
    """Say how the model is trained.

    optimizer      a name ("adam"), an Optimizer, or a function of the parameters that returns one
    loss           a name ("cross_entropy", "mse"), a loss module, or a function of output and
                   target; of a model with several outputs one for each, in a list or by name
    metrics        names ("accuracy"), metrics, or functions of output and target; likewise
    loss_weights   of the losses of several outputs, in a list or by name
    clip_norm      largest joint norm of the gradients
    compile        whether training, evaluation and prediction run as compiled programs: "auto"
                   (what cannot be compiled runs eagerly, with a warning), True (or else an error)
                   or False

    An optimizer by name is made when training starts, and lives on from one `fit` to the next.
    """
    if loss is None:
        raise ArgumentError("compile needs a loss, e.g. loss='cross_entropy' or loss='mse'")
    chosen = loss_of(self, loss, loss_weights)
    settings = CompileSettings(self, optimizer, chosen, metrics, clip_norm, compile)
    self.__dict__["_compiled"] = settings
    self.__dict__["optimizer"] = optimizer if isinstance(optimizer, Optimizer) else None


def fit(  # noqa: PLR0913  (Keras's signature)
    self: Module,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: int | str = "auto",
    *,
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool = True,
    class_weight: Mapping[int, float] | None = None,
    sample_weight: Any = None,
    initial_epoch: int = 0,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    validation_freq: int = 1,
    seed: int | None = None,
    out: Any = None,
    compile: Compile | None = None,
    device: Any = None,
    parallel: Any = None,
) -> History:
    """Train for some epochs and return the values of each.

    x, y               the data; y is None if x is a dataset or a loader
    verbose            0: silent, 1 or "auto": a progress bar and a line per epoch, 2: lines only
    callbacks          Callbacks, and extensions of the Trainer
    validation_split   share of the samples, the last ones before shuffling, kept for validation
    validation_data    (x, y), (x, y, weights), a dataset or a loader
    class_weight       weight of each class in the loss
    sample_weight      weight of each sample in the loss
    initial_epoch      where to begin counting; `epochs` is where to end
    steps_per_epoch    batches in an epoch (default: one pass over the data)
    seed               of the shuffling; by default drawn from the global generator
    out                a directory for extensions that write files
    compile            as in `model.compile`, for this call
    device             where the model is to be, and batches beside it; None: where it is
    parallel           whether all processes of `wf.distributed` train together and share the
                       validation: True, or options of `wf.distributed.parallel`. Each has all
                       data, of which it takes its rows; a loader must be made with shard=True
    """
    compiled = settings_of(self)
    if device is not None:
        self.to(device=device)
    first, last = checked_int("initial_epoch", initial_epoch, 0), checked_int("epochs", epochs, 0)
    source, kept = training_sources(
        self,
        (x, y, sample_weight),
        validation_split,
        batch_size=batch_size,
        shuffle=shuffle,
        seed=seed,
        **_sharing(parallel),
    )
    settle(self, source)
    handle = as_parallel(parallel, self)
    updater = FitUpdater(
        CompiledObjective(self, compiled.loss, source, class_weight, compiled.captures),
        _optimizer(self, compiled),
        source.loader,
        epoch_length=steps_per_epoch,
        clip_norm=compiled.clip_norm,
        compile=compiled.choice_of(compile),
        parallel=handle,
    )
    trainer = Trainer(updater, stop=FitStop(self, max(last - first, 0)), out=out)
    bridge, extensions = _bridge(self, callbacks, first)
    bridge.set_params({"epochs": last, "steps": updater.epoch_iterations, "verbose": verbose})
    updater.bridge = bridge
    if compiled.metrics:
        trainer.extend(TrainingMetrics(compiled.fresh_metrics()))
    data = kept if validation_data is None else validation_data
    if data is not None:
        validation = _validation(
            bridge, compiled, data, validation_batch_size or batch_size, validation_steps
        )
        frequency = checked_int("validation_freq", validation_freq, 1)
        trainer.extend(validation, trigger=(frequency, "epoch"))
    _add_display(trainer, bridge, verbose)
    for extension in [bridge, *extensions]:
        trainer.extend(extension)
    self.__dict__["history"] = bridge.history
    try:
        trainer.run()
    finally:
        updater.release()
        if handle is not None and handle is not parallel:  # made for this call
            handle.close()
    return bridge.history


def evaluate(
    self: Module,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    verbose: int | str = "auto",
    sample_weight: Any = None,
    steps: int | None = None,
    callbacks: Any = None,
    return_dict: bool = False,
    *,
    compile: Compile | None = None,
) -> Any:
    """Return the loss and the metrics on data: a number, a list, or a dictionary.

    >>> import weft as wf
    >>> model = wf.nn.Identity()
    >>> compile(model, "sgd", "mse", metrics=["mae"])
    >>> evaluate(model, [[1.0], [2.0]], [[1.0], [4.0]], verbose=0)
    [2.0, 1.0]
    """
    compiled = settings_of(self)
    source = source_of(self, x, y, sample_weight, batch_size=batch_size)
    bridge, _ = _bridge(self, callbacks, 0)
    bridge.set_params({"steps": steps, "verbose": verbose})
    bridge.emit("on_test_begin", {})
    results = evaluate_batches(
        CompiledObjective(self, compiled.loss, source, captures=compiled.captures),
        source.loader,
        compiled.fresh_metrics(),
        max_batches=optional_int("steps", steps, 1),
        compile=compiled.choice_of(compile),
    )
    bridge.emit("on_test_end", results)
    if _is_verbose(verbose):
        print(_line(results), flush=True)
    if return_dict:
        return results
    values = list(results.values())
    return values if len(values) > 1 else values[0]


def predict(
    self: Module,
    x: Any,
    batch_size: int | None = None,
    verbose: int | str = "auto",
    steps: int | None = None,
    callbacks: Any = None,
    *,
    compile: Compile | None = None,
) -> Any:
    """Return the outputs for data as NumPy arrays, in evaluation mode.

    Of a loader of (x, y) only x is used. `compile` is that of `model.compile`, for this call.

    >>> import weft as wf
    >>> predict(wf.nn.Identity(), [[1.0], [2.0]])
    array([[1.],
           [2.]], dtype=float32)
    """
    source = source_of(self, x, batch_size=batch_size)
    limit = optional_int("steps", steps, 1)
    bridge, _ = _bridge(self, callbacks, 0)
    bridge.set_params({"steps": steps, "verbose": verbose})
    bridge.emit("on_predict_begin", {})
    outputs = []
    run = _captures(self).get("predict", partial(call_model, self), _choice(self, compile))
    with evaluating(self):
        for count, batch in enumerate(source.loader):
            if limit is not None and count >= limit:
                break
            output = run(beside(self, as_tensors(source.split(batch).x)))
            outputs.append(tree_map(_as_numpy, output))
    bridge.emit("on_predict_end", {})
    if not outputs:
        raise ArgumentError("there is nothing to predict: the loader gave no batches")
    return _joined(outputs)


def attach(module: type[Module]) -> None:
    """Make the functions of this file methods of Module."""
    for function in (compile, fit, evaluate, predict):
        setattr(module, function.__name__, function)


# -- parts -----------------------------------------------------------------------------------------


def settings_of(model: Module) -> CompileSettings:
    """Return what `compile` was told; raise if it was not called."""
    compiled = model.__dict__.get("_compiled")
    if not isinstance(compiled, CompileSettings):
        raise ArgumentError(
            "say first how the model is trained: "
            "model.compile(optimizer='adam', loss='cross_entropy', metrics=['accuracy'])"
        )
    return compiled


def _choice(model: Module, compile: Compile | None) -> Compile:
    """Return whether to compile; a model can predict that was never told how to train."""
    if compile is not None:
        return checked_compile(compile)
    settings = model.__dict__.get("_compiled")
    return settings.compile if isinstance(settings, CompileSettings) else "auto"


def _captures(model: Module) -> Captures:
    """Return the compiled functions that a model keeps."""
    found: Captures = model.__dict__.setdefault("_captures", Captures())
    return found


def _sharing(parallel: Any) -> dict[str, Any]:
    """Return the options of a loader whose batches processes share."""
    mode = mode_of(parallel)
    if mode not in (None, "sync"):
        raise ArgumentError(
            f"fit trains in step with other processes; for mode={mode!r} use "
            "wf.train.Updater(..., parallel=...)"
        )
    return {} if mode is None else {"shard": True}


def _optimizer(model: Module, compiled: CompileSettings) -> Optimizer:
    """Return the model's optimizer, made when it is first needed."""
    made = model.__dict__.get("optimizer")
    if not isinstance(made, Optimizer):
        made = model.__dict__["optimizer"] = get_optimizer(compiled.choice, model)
    return made


def _validation(
    bridge: Bridge, compiled: CompileSettings, data: Any, batch_size: int | None, steps: int | None
) -> Validation:
    """Return the extension that validates after epochs."""
    source = validation_source(bridge.model, data, batch_size)
    validation = Validation(
        source.loader,
        compiled.fresh_metrics(),
        objective=CompiledObjective(
            bridge.model, compiled.loss, source, captures=compiled.captures
        ),
        max_batches=optional_int("validation_steps", steps, 1),
    )
    validation.bridge = bridge
    return validation


def _bridge(model: Module, callbacks: Any, first: int) -> tuple[Bridge, list[Extension]]:
    """Return the bridge to callbacks, and those that are extensions of the Trainer."""
    listed = callbacks if isinstance(callbacks, Sequence) else [callbacks] if callbacks else []
    for callback in listed:
        if not isinstance(callback, Callback | Extension):
            raise ArgumentTypeError(
                "callbacks must be Callback or Extension objects. "
                f"Received: {type(callback).__name__} {callback!r:.60}"
            )
    plain = [callback for callback in listed if isinstance(callback, Callback)]
    return Bridge(model, plain, first), [e for e in listed if isinstance(e, Extension)]


def _add_display(trainer: Trainer, bridge: Bridge, verbose: int | str) -> None:
    if not _is_verbose(verbose):
        return
    lines = _EpochLines(trainer)
    lines.set_params(bridge.history.params)
    bridge.callbacks.append(lines)
    if verbose != 2 and sys.stdout.isatty() and find_spec("rich") is not None:
        trainer.extend(ProgressBar(transient=True))


class _EpochLines(Callback):
    """Prints a line for each epoch."""

    def __init__(self, trainer: Trainer) -> None:
        self.trainer = trainer

    def on_epoch_end(self, epoch: int, logs: Mapping[str, float] | None = None) -> None:
        """Print the values of an epoch."""
        total = self.params["epochs"]
        self.trainer.write(f"Epoch {epoch + 1}/{total} - {_line(logs or {})}")


def _is_verbose(verbose: Any) -> bool:
    if verbose not in ("auto", 0, 1, 2):
        raise ArgumentError(f"verbose must be 'auto', 0, 1 or 2. Received: {verbose!r}")
    return bool(verbose != 0)


def _line(values: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in values.items() if np.ndim(value) == 0}
    return " - ".join(f"{name}: {float(value):.4g}" for name, value in shown.items())


def _as_numpy(value: Any) -> Any:
    return np.array(value) if isinstance(value, Tensor) else value


def _joined(outputs: list[Any]) -> Any:
    """Return the outputs of all batches as one nest of arrays."""
    structure = flatten(outputs[0])[1]
    columns = zip(
        *(structure.flatten_like(output, "the output") for output in outputs), strict=True
    )
    return structure.unflatten(np.concatenate(column) for column in columns)
