"""Sequential: layers one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..nn import Module, ModuleDict
from ..nn.version import leave_unseen
from .functional import Functional
from .layers.base import Layer
from .layers.core import Input, InputLayer
from .model import Model
from .symbolic import KerasTensor

leave_unseen("_functional")


class Sequential(Model):
    """A stack of layers; without an input's shape, the first input tells the sizes.

    >>> import weft as wf
    >>> from weft.keras import layers
    >>> model = Sequential([layers.Dense(8, activation="relu", input_shape=(4,)), layers.Dense(1)])
    >>> model.output_shape, model(wf.zeros(2, 4)).shape
    ((None, 1), (2, 1))
    """

    def __init__(
        self, layers: Sequence[Any] | None = None, name: str | None = None, **options: Any
    ) -> None:
        super().__init__(name=name, **options)
        self.stack = ModuleDict()
        self.__dict__["_functional"] = None
        self.start: Any = None
        for layer in layers or ():
            self.add(layer)

    def add(self, layer: Any) -> None:
        """Put a layer after the others."""
        if isinstance(layer, KerasTensor):
            layer = layer.call.layer
        if not isinstance(layer, Module):
            raise ArgumentTypeError(
                f"Sequential takes layers. Received: {type(layer).__name__} {layer!r:.60}"
            )
        self.__dict__["_functional"] = None
        if isinstance(layer, InputLayer):
            self._begin(layer)
            return
        name = getattr(layer, "name", f"layer_{len(self.stack)}")
        if name in self.stack:
            raise ArgumentError(f"two layers of {self.name} have the name {name!r}; rename one")
        if self.start is None and not len(self.stack) and isinstance(layer, Layer):
            given = _shape_of(layer)
            if given is not None:
                self._begin(Input(batch_shape=given).call.layer)
        self.stack[name] = layer
        self._settle()

    def _begin(self, layer: Any) -> None:
        if self.start is not None or len(self.stack):
            raise ArgumentError(f"{self.name}: an input is the first layer, and there is one only")
        self.__dict__["start"] = layer

    def pop(self) -> None:
        """Take the last layer away."""
        if not len(self.stack):
            raise ArgumentError(f"{self.name} has no layers")
        del self.stack[list(self.stack)[-1]]
        self.__dict__["_functional"] = None

    def build(self, input_shape: Any) -> None:
        """Make the weights of all layers for inputs of a shape, the batch included."""
        if self.start is None:
            layer = Input(batch_shape=tuple(input_shape)).call.layer
            self.__dict__["start"] = layer
        self._settle()

    def _settle(self) -> None:
        """Let layers make their weights as soon as sizes are known."""
        if self.start is not None and all(isinstance(m, Layer) for m in self.stack.values()):
            x = self.start.calls[0].outputs[0]
            for layer in self.stack.values():
                x = _called_on(layer, x)

    def functional(self) -> Functional:
        """Return the same layers as a model of symbolic tensors."""
        if self.start is None:
            raise ArgumentError(
                f"{self.name} does not know the shape of its input: begin with Input(shape), or "
                "call it on data"
            )
        made: Functional | None = self.__dict__["_functional"]
        if made is None:
            x = first = self.start.calls[0].outputs[0]
            for layer in self.stack.values():
                x = _called_on(layer, x)
            made = self.__dict__["_functional"] = Functional(first, x, name=self.name)
        return made

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return what the last layer makes."""
        if not len(self.stack):
            raise ArgumentError(f"{self.name} has no layers")
        (x,) = inputs if len(inputs) == 1 else (list(inputs),)
        for layer in self.stack.values():
            x = layer(x)
        return x

    @property
    def layers(self) -> list[Any]:
        """Return the layers, without that of the input."""
        return list(self.stack.values())

    @property
    def inputs(self) -> list[KerasTensor]:
        """Return the symbolic input in a list."""
        return self.functional().inputs

    @property
    def outputs(self) -> list[KerasTensor]:
        """Return the symbolic output in a list."""
        return self.functional().outputs

    @property
    def input(self) -> Any:
        """Return the symbolic input."""
        return self.functional().input

    @property
    def output(self) -> Any:
        """Return the symbolic output."""
        return self.functional().output

    @property
    def input_shape(self) -> Any:
        """Return the shape of the input."""
        return self.functional().input_shape

    @property
    def output_shape(self) -> Any:
        """Return the shape of the output."""
        return self.functional().output_shape

    def get_config(self) -> dict[str, Any]:
        """Return the layers in the form of Keras 2's JSON."""
        from .saving import described  # noqa: PLC0415  (it imports this module)

        listed = [*([self.start] if self.start is not None else []), *self.layers]
        return {"name": self.name, "layers": [described(layer) for layer in listed]}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Return the model of a configuration."""
        from .saving import layer_from  # noqa: PLC0415  (it imports this module)

        made = [layer_from(each, custom_objects or {}) for each in config["layers"]]
        return cls(made, name=config.get("name"))


def _shape_of(layer: Layer) -> Any:
    """Return the shape that a first layer was given for its input."""
    if isinstance(layer, Functional):
        return layer.inputs[0].shape
    return layer.given_shape


def _called_on(layer: Any, x: KerasTensor) -> Any:
    """Return the output of a layer's call on this very tensor, which is made if there is none."""
    for call in layer.calls:
        if len(call.outputs) == 1 and len(call.inputs) == 1 and call.inputs[0] is x:
            return call.outputs[0]
    return layer(x)
