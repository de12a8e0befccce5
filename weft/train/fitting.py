"""What stands between `model.fit` and the Trainer: the objective, the updater, the callbacks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.masked import plain_array
from ..core.placing import moved_tensors
from ..core.tensor import Tensor, wrap
from ..core.tree import tree_map
from ..data import DataLoader
from ..nn import Module
from ..nn.places import beside, device_of
from ..optim import Optimizer
from .arrays import (
    Arrays,
    BatchParts,
    BatchSource,
    as_arrays,
    class_weights,
    float_dtype,
    is_batched,
    is_dataset,
    source_of_arrays,
    source_of_batches,
    split_off,
    split_sample,
)
from .callbacks import Callback, History
from .captured import Captures
from .checks import overrides
from .extension import PRIORITY_READER, Extension
from .extensions import Evaluator
from .feed import Feed
from .losses import TargetLoss
from .metrics import Mean
from .objective import Objective, Outcome, detached, evaluating, size_of, split_loss
from .outputs import OutputLosses
from .summary import scalar_of, scalars_of
from .trainer import Trainer
from .triggers import Stop
from .updater import Updater

BATCH_SIZE = 32  # Keras's


class CompiledObjective(Objective):
    """The model and loss of `compile`, for batches of x, y and weights."""

    def __init__(
        self,
        model: Module,
        loss: TargetLoss | None,
        source: BatchSource,
        class_weight: Mapping[int, float] | None = None,
        captures: Captures | None = None,
    ) -> None:
        super().__init__(model, loss)
        self._captures = captures or self._captures  # those of the model, for any data
        self.split = source.split
        self.class_weight = class_weight

    def prepared(self, batch: Any) -> BatchParts:
        """Return a batch in parts, with the weights of its samples."""
        x, y, weights = parts = self.split(batch)
        if weights is self.class_weight is None and type(x) is type(y) is Tensor:
            return self._beside(parts)  # as most loaders give it
        parts = BatchParts(as_tensors(x), as_tensors(y), as_tensors(weights))
        if self.class_weight is None:
            return self._beside(parts)
        if not isinstance(parts.y, Tensor):
            raise ArgumentError(
                "class_weight is for models with one output; with several, give sample_weight by "
                "the names of the outputs"
            )
        weights = wrap(class_weights(parts.y, self.class_weight))
        both = weights if parts.weights is None else parts.weights * weights
        return self._beside(parts._replace(weights=both))

    def _beside(self, parts: BatchParts) -> BatchParts:
        where = device_of(self.model)
        return parts if where is None else BatchParts(*[moved_tensors(p, where) for p in parts])

    def outcome(self, batch: BatchParts) -> Outcome:
        """Return the outcome of a prepared batch."""
        output = call_model(self.model, batch.x)
        if self.loss is None or batch.y is None:
            return Outcome(None, {}, output, batch.y)
        if isinstance(batch.weights, Mapping | list | tuple):
            self._check_several()
        loss, values = split_loss(self.loss(output, batch.y, batch.weights))
        return Outcome(loss, values, output, _anew(batch.y))

    def _check_several(self) -> None:
        if not isinstance(self.loss, OutputLosses):
            raise ArgumentError("sample_weight by output goes with a loss for each output")


class FitUpdater(Updater):
    """Updates with a given objective; tells when an iteration begins and ends."""

    def __init__(
        self,
        objective: CompiledObjective,
        optimizer: Optimizer,
        loader: Iterable[Any],
        **options: Any,
    ) -> None:
        super().__init__(objective.model, optimizer, None, loader, **options)
        self.objective = objective
        self._captures = objective._captures
        self.bridge: Bridge | None = None

    def update_core(self, batches: list[Any]) -> dict[str, Any]:
        """Announce the iteration, make it, and tell what came out."""
        if self.bridge is not None:
            self.bridge.before_batch(self)
        observation = super().update_core(batches)
        if self.bridge is not None:
            self.bridge.after_batch(self, observation)
        return observation

    def release(self) -> None:
        """Let go of the data and the callbacks: what is compiled keeps this object."""
        self.feed, self.bridge, self.outcomes = Feed(()), None, []

    def compute(self, batch: Any) -> Outcome:
        """Return the outcome of a prepared batch, which must have a target."""
        outcome = self.objective.outcome(batch)
        if outcome.loss is None:
            raise ArgumentError("training needs targets: fit(x, y), or batches of (x, y)")
        return outcome


class FitStop(Stop):
    """Stops at a number of epochs, or where somebody has set `model.stop_training`."""

    def __init__(self, model: Module, epochs: int) -> None:
        super().__init__(epochs, "epoch")
        self.model = model

    def __call__(self, trainer: Trainer) -> bool:
        """Tell whether to stop, and say why where that was asked for."""
        if self.model.__dict__.get("stop_training") and trainer.iteration:
            trainer.request_stop("model.stop_training was set")
            return True
        return super().__call__(trainer)


class Bridge(Extension):
    """Calls Keras's callbacks at the events of a Trainer."""

    trigger = (1, "epoch")
    priority = PRIORITY_READER

    def __init__(self, model: Module, callbacks: list[Callback], initial_epoch: int) -> None:
        self.model = model
        self.history = History()
        self.callbacks = [self.history, *callbacks]
        self.initial_epoch = initial_epoch
        self._means: dict[str, Mean] = {}
        self._batch = 0
        self._begin, self._end = self.callbacks, self.callbacks  # who listens to batches

    def set_params(self, params: Mapping[str, Any]) -> None:
        """Tell the callbacks what is known of the run."""
        for callback in self.callbacks:
            callback.set_model(self.model)
            callback.set_params(params)

    def emit(self, event: str, *args: Any) -> None:
        """Call one method of all callbacks."""
        for callback in self.callbacks:
            getattr(callback, event)(*args)

    def initialize(self, trainer: Trainer) -> None:
        """Begin training."""
        self.model.__dict__["stop_training"] = False
        self.emit("on_train_begin", {})

    def before_batch(self, updater: Updater) -> None:
        """Begin a batch, and an epoch if it is the first of one."""
        if self._batch == 0:
            self._means = {}
            self.emit("on_epoch_begin", self.initial_epoch + updater.previous_epoch, {})
            self._begin = self._listeners("on_train_batch_begin")
            self._end = self._listeners("on_train_batch_end")
        for callback in self._begin:
            callback.on_train_batch_begin(self._batch, {})

    def after_batch(self, updater: Updater, observation: Mapping[str, Any]) -> None:
        """End a batch: the loss, and what else it reported, go into the means of the epoch."""
        samples = 0
        for outcome in updater.outcomes:
            samples += size_of(outcome.output)
        means = self._means
        for name, value in observation.items():
            number = value if type(value) is float else scalar_of(value)
            if number is not None:
                if name not in means:
                    means[name] = Mean()
                means[name].add(number, samples)
        if self._end:
            values = scalars_of(observation)
            logs = {name.removeprefix(updater.prefix): value for name, value in values.items()}
            for callback in self._end:
                callback.on_train_batch_end(self._batch, {**logs, "size": samples})
        self._batch += 1

    def _listeners(self, event: str) -> list[Callback]:
        """Return the callbacks that do something at an event."""
        return [callback for callback in self.callbacks if overrides(callback, Callback, event)]

    def __call__(self, trainer: Trainer) -> None:
        """End an epoch."""
        self._batch = 0
        logs = self._logs(trainer.observation)
        self.emit("on_epoch_end", self.initial_epoch + trainer.epoch - 1, logs)

    def _logs(self, observation: Mapping[str, Any]) -> dict[str, float]:
        """Return the values of an epoch under Keras's names."""
        found = scalars_of(observation)
        found.update({name: mean.compute() for name, mean in self._means.items()})
        return {
            key.removeprefix("train/").replace("val/", "val_"): value
            for key, value in found.items()
        }

    def finish(self, trainer: Trainer) -> None:
        """End training."""
        self.emit("on_train_end", {})


class Validation(Evaluator):
    """An Evaluator that tells callbacks when it begins and ends."""

    bridge: Bridge

    def __call__(self, trainer: Trainer) -> None:
        """Evaluate and report."""
        self.bridge.emit("on_test_begin", {})
        super().__call__(trainer)
        self.bridge.emit("on_test_end", scalars_of(trainer.observation))


# -- data ------------------------------------------------------------------------------------------


def training_sources(
    model: Module, data: tuple[Any, Any, Any], share: float, **options: Any
) -> tuple[BatchSource, Arrays | None]:
    """Return the batches for training, and what `validation_split` keeps from them."""
    x, y, weights = data
    _check_given(x)
    if is_batched(x) or is_dataset(x):
        if share:
            raise ArgumentError(
                "validation_split takes arrays; split a dataset with random_split and pass "
                "validation_data"
            )
        return source_of(model, x, y, weights, **options), None
    arrays = as_arrays(x, y, weights, float_dtype(model))
    kept = None
    if share:
        arrays, kept = split_off(arrays, share)
    return source_of_arrays(arrays, **_completed(options)), kept


def source_of(
    model: Module, x: Any, y: Any = None, weights: Any = None, **options: Any
) -> BatchSource:
    """Return batches of arrays, of a dataset, or of a loader."""
    _check_given(x)
    if not is_batched(x) and not is_dataset(x):
        arrays = as_arrays(x, y, weights, float_dtype(model))
        return source_of_arrays(arrays, **_completed(options))
    if y is not None or weights is not None:
        raise ArgumentError("a dataset or loader brings its own targets: leave y and weights out")
    if is_batched(x):
        return source_of_batches(x)
    return source_of_batches(DataLoader(x, **_completed(options)))


def validation_source(model: Module, data: Any, batch_size: int | None) -> BatchSource:
    """Return batches for validation from (x, y), (x, y, weights), a dataset or a loader."""
    options = {"batch_size": batch_size}
    if isinstance(data, Arrays):
        return source_of_arrays(data, **_completed(options))
    _check_validation(data)
    parts = split_sample(data) if isinstance(data, tuple | list) else (data,)
    return source_of(model, *parts, **options)


def _check_validation(data: Any) -> None:
    """Raise unless data for validation is of one of the kinds that are taken, with targets."""
    if isinstance(data, tuple | list):
        alone = len(data) == 1 and _brings_targets(data[0])
        fits = alone or (2 <= len(data) <= 3 and (data[1] is not None or _brings_targets(data[0])))
    else:
        fits = _brings_targets(data)
    if not fits:
        raise ArgumentTypeError(
            "validation_data takes (x, y), (x, y, weights), a dataset or a loader. "
            f"Received: {_described(data)}"
        )


def _brings_targets(data: Any) -> bool:
    return not isinstance(data, str | bytes) and (is_batched(data) or is_dataset(data))


def _described(data: Any) -> str:
    """Return what was given, in a few words."""
    if isinstance(data, Tensor | np.ndarray):
        return f"an array of shape {tuple(data.shape)}, without targets"
    if isinstance(data, Mapping):
        keys = ", ".join(repr(key) for key in data)
        return f"a {type(data).__name__} with the keys {keys:.60}, without targets"
    if not isinstance(data, tuple | list):
        return f"{data!r:.60}"
    kind = type(data).__name__
    if len(data) in (2, 3):
        return f"a {kind} whose second item, the targets, is None"
    return f"a {kind} of {len(data)} item{'' if len(data) == 1 else 's'}"


def _check_given(x: Any) -> None:
    if x is None:
        raise ArgumentTypeError("there is no data: x is None")


def _completed(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a DataLoader; only shuffling draws a seed from the global generator."""
    size = BATCH_SIZE if options.get("batch_size") is None else options["batch_size"]
    seed = options.get("seed") if options.get("shuffle") else 0
    return {**options, "batch_size": size, "seed": seed}


def as_tensors(part: Any) -> Any:
    """Return a part of a batch with arrays as tensors, and everything else as it is."""
    return part if part is None or isinstance(part, Tensor) else tree_map(_as_tensor, part)


def _as_tensor(value: Any) -> Any:
    return wrap(plain_array(value, "data")) if isinstance(value, np.ndarray) else value


def _anew(target: Any) -> Any:
    """Return a target; a nest is made anew, as compiled functions return none they were given."""
    return target if isinstance(target, Tensor) else tree_map(detached, target)


def call_model(model: Module, x: Any) -> Any:
    """Call a model with one input, several by position, or several by name."""
    if isinstance(x, Mapping):
        return model(**x)
    return model(*x) if isinstance(x, tuple | list) else model(x)


def settle(model: Module, source: BatchSource) -> None:
    """Run a model once if layers wait for an input to learn their sizes from."""
    if not any(getattr(module, "_pending", False) for module in model.modules()):
        return
    if iter(source.loader) is source.loader:
        raise ArgumentError(
            "the model has layers without input sizes: run it once on an example before training "
            "from a generator"
        )
    with evaluating(model):
        for batch in source.loader:
            call_model(model, beside(model, as_tensors(source.split(batch).x)))
            break
