"""Model: Keras's methods of a network, over `fit` and its like of every Module of Weft's.

`Model(inputs, outputs)` is a Functional (functional.py); a subclass of Model defines `call`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError
from ..nn.version import leave_unseen
from ..train import keras as training
from ..train.callbacks import History
from ..train.outputs import OutputLosses
from ..train.registry import hint
from . import losses, metrics, optimizers
from .layers.base import Layer
from .layers.weights import Weight
from .printing import summary_of

leave_unseen("loss", "compiled_metrics", "_told")


class Model(Layer):
    """A network that is trained by `fit`."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a Functional of `Model(inputs, outputs)`."""
        given = len(args) > 0 or "inputs" in kwargs
        if cls is Model and given:
            from .functional import Functional  # noqa: PLC0415  (it derives from this class)

            return super().__new__(Functional)
        return super().__new__(cls)

    def __init__(self, *, name: str | None = None, trainable: bool = True, **options: Any) -> None:
        super().__init__(name=name, trainable=trainable, **options)
        self.__dict__["_pending"] = False  # its layers wait for their inputs themselves

    # -- training ----------------------------------------------------------------------------------

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        loss_weights: Any = None,
        metrics: Any = None,
        *,
        jit_compile: Any = "auto",
        run_eagerly: bool = False,
        **options: Any,
    ) -> None:
        """Say how the model is trained, with Keras's names and defaults.

        jit_compile, run_eagerly   "auto" and False: programs are compiled where they can be
        """
        for name in options:
            raise ArgumentError(f"compile: the option {name!r} is not served; leave it out")
        if isinstance(metrics, list | tuple) and not metrics:
            metrics = None
        chosen = optimizers.get(optimizer)
        self.__dict__["_told"] = {
            "optimizer": optimizers.serialize(optimizer),
            "loss": losses.serialize(loss),
            "loss_weights": loss_weights,
            "metrics": _metrics.serialize(metrics),
        }
        self.__dict__["loss"] = loss
        training.compile(
            self,
            chosen,
            losses.get_all(loss),
            _metrics.get_all(metrics, loss),
            loss_weights=loss_weights,
            clip_norm=getattr(chosen, "global_clipnorm", None),
            compile=False if run_eagerly else jit_compile,
        )

    def fit(self, *args: Any, **options: Any) -> History:
        """Train for some epochs and return the values of each; see `wf.nn.Module.fit`."""
        for name in ("workers", "use_multiprocessing", "max_queue_size"):
            options.pop(name, None)  # of Keras 2
        try:
            return training.fit(self, *args, **options)
        finally:
            self.eval()

    def evaluate(self, *args: Any, **options: Any) -> Any:
        """Return the loss and the metrics on data."""
        return training.evaluate(self, *args, **options)

    def predict(self, *args: Any, **options: Any) -> Any:
        """Return the outputs for data as arrays; several as a list."""
        made = training.predict(self, *args, **options)
        return list(made) if isinstance(made, tuple) else made

    def train_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Make one step and return its loss."""
        size = {"batch_size": 2**31 - 1, "shuffle": False, "verbose": 0}
        history = self.fit(x, y, sample_weight=sample_weight, **size).history
        values = [history[name][0] for name in history]
        return values if len(values) > 1 else values[0]

    def test_on_batch(self, x: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Return the loss and the metrics of one batch."""
        size = {"batch_size": 2**31 - 1, "verbose": 0}
        return self.evaluate(x, y, sample_weight=sample_weight, **size)

    def predict_on_batch(self, x: Any) -> Any:
        """Return the outputs of one batch."""
        return self.predict(x, batch_size=2**31 - 1, verbose=0)

    @property
    def metrics_names(self) -> list[str]:
        """Return what `evaluate` gives, in its order."""
        settings = training.settings_of(self)
        loss = settings.loss
        losses = loss.losses if isinstance(loss, OutputLosses) else {}
        found = [f"{name}_loss" for name, each in losses.items() if each is not None]
        return ["loss", *found, *settings.metrics]

    # -- layers and weights ------------------------------------------------------------------------

    @property
    def layers(self) -> list[Any]:
        """Return the layers, in the order of their calls."""
        return list(self.children())

    def get_layer(self, name: str | None = None, index: int | None = None) -> Any:
        """Return a layer by its name or number."""
        if index is not None:
            if not -len(self.layers) <= index < len(self.layers):
                raise ArgumentError(f"{self.name} has {len(self.layers)} layers: no {index}")
            return self.layers[index]
        for layer in self.layers:
            if layer.name == name:
                return layer
        known = hint(str(name), [layer.name for layer in self.layers])
        raise ArgumentError(f"{self.name} has no layer {name!r}; {known}")

    def own_weights(self) -> list[Weight]:
        """Return the weights of all layers, in their order."""
        found: list[Weight] = []
        for layer in self.layers:
            if isinstance(layer, Layer):
                layer._check_built()
                found += layer.own_weights()
        return found

    def summary(self, *inputs: Any, print_fn: Any = print, **options: Any) -> Any:
        """Print a table of the layers: names, output shapes, weights and what each is fed by."""
        if inputs or options:
            return super().summary(*inputs, **options)
        print_fn(summary_of(self))
        return None

    # -- files -------------------------------------------------------------------------------------

    def to_json(self, **options: Any) -> str:
        """Return the architecture as JSON."""
        from .saving import described  # noqa: PLC0415  (it imports this module)

        return json.dumps(described(self), **options)

    def save(self, filepath: Any, overwrite: bool = True) -> None:
        """Write architecture, weights and what `compile` was told to one file."""
        from .saving import save_model  # noqa: PLC0415  (it imports this module)

        save_model(self, filepath, overwrite)

    def save_weights(self, filepath: Any, overwrite: bool = True) -> None:
        """Write the weights as safetensors."""
        from .saving import save_weights  # noqa: PLC0415  (it imports this module)

        save_weights(self, filepath, overwrite)

    def load_weights(self, filepath: Any) -> None:
        """Take the weights from a file that `save_weights` or `save` wrote."""
        from .saving import load_weights  # noqa: PLC0415  (it imports this module)

        load_weights(self, filepath)


_metrics = metrics  # `metrics` is also an argument of Keras's `compile`


def flattened(value: Any) -> list[Any]:
    """Return the items of a nest of lists, tuples and dictionaries, in order."""
    if isinstance(value, dict):
        return [item for part in value.values() for item in flattened(part)]
    if isinstance(value, list | tuple):
        return [item for part in value for item in flattened(part)]
    return [value]


def unique(items: Sequence[Any]) -> list[Any]:
    """Return the items, each once, by identity."""
    seen: dict[int, Any] = {}
    for item in items:
        seen.setdefault(id(item), item)
    return list(seen.values())
