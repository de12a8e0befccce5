"""Functional: a model from symbolic inputs to symbolic outputs, run as a LayerGraph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dim import may_equal
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor
from ..nn.models import LayerGraph
from ..nn.version import leave_unseen
from .layers.core import InputLayer
from .model import Model, flattened, unique
from .symbolic import Call, KerasTensor

leave_unseen("_symbols")


class Functional(Model):
    """The layers between inputs and outputs; what `Model(inputs, outputs)` returns.

    The calls that made the outputs become steps of a LayerGraph, which runs them. A layer that was
    called several times is one module of it, with one set of weights.
    """

    def __init__(self, inputs: Any, outputs: Any, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        begin, end = _symbolic(inputs, "inputs"), _symbolic(outputs, "outputs")
        self.__dict__["_symbols"] = begin, end
        self._output_keys = tuple(outputs) if isinstance(outputs, dict) else None
        calls = _ordered(begin, end)
        self.input_names = _names_of_inputs(inputs, begin)
        self.output_names = self._output_keys or _different([y.name for y in end])
        begun = (x.call.layer for x in begin)
        self.input_layers = tuple(layer for layer in begun if isinstance(layer, InputLayer))
        self.graph, values = _graph_of(begin, calls)
        self.graph.outputs = tuple(_reference(values, y) for y in end)
        _check_different(self.layers)

    def _separated(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Take inputs by position, as a list, in a dictionary, or by name."""
        named = dict(args[0]) if len(args) == 1 and isinstance(args[0], dict) else {}
        if named:
            args = ()
        for name in self.input_names:
            if name in kwargs:
                named[name] = kwargs.pop(name)
        if not args:  # what else is a tensor was meant to be an input
            named |= {name: kwargs.pop(name) for name in _names_of_data(kwargs)}
        if not named:
            inputs, options = super()._separated(args, kwargs)
        else:
            unknown = set(named) - set(self.input_names)
            if unknown:
                known = ", ".join(self.input_names)
                raise ArgumentError(f"{self.name} has no input {sorted(unknown)}; it has: {known}")
            inputs, options = [self._one_of(named, name) for name in self.input_names], kwargs
        if len(inputs) != len(self.input_names):
            raise ArgumentError(
                f"{self.name} takes {len(self.input_names)} inputs "
                f"({', '.join(self.input_names)}). Received: {len(inputs)}"
            )
        return inputs, options

    def _one_of(self, named: dict[str, Any], name: str) -> Any:
        if name not in named:
            raise ArgumentError(f"{self.name}: the input {name!r} is missing in {sorted(named)}")
        return named[name]

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Return the outputs: one, several, or a dictionary, as the model was made."""
        self._check_shapes(inputs)
        made = self.graph(*inputs)
        if self._output_keys is None:
            return made
        parts = made if len(self._output_keys) > 1 else (made,)
        return dict(zip(self._output_keys, parts, strict=True))

    def _check_shapes(self, inputs: Any) -> None:
        for x, symbol in zip(inputs, self.__dict__["_symbols"][0], strict=True):
            if not _fits(x.shape, symbol.shape):
                raise ArgumentError(
                    f"{self.name}: the input {symbol.name!r} has the shape {symbol.shape}. "
                    f"Received: {tuple(x.shape)}"
                )

    @property
    def inputs(self) -> list[KerasTensor]:
        """Return the symbolic inputs."""
        return list(self.__dict__["_symbols"][0])

    @property
    def outputs(self) -> list[KerasTensor]:
        """Return the symbolic outputs."""
        return list(self.__dict__["_symbols"][1])

    @property
    def input(self) -> Any:
        """Return the symbolic input, or a list of them."""
        return self.inputs[0] if len(self.inputs) == 1 else self.inputs

    @property
    def output(self) -> Any:
        """Return the symbolic output, or a list of them."""
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs

    @property
    def input_shape(self) -> Any:
        """Return the shape of the input, or a list of them."""
        shapes = [x.shape for x in self.inputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def output_shape(self) -> Any:
        """Return the shape of the output, or a list of them."""
        shapes = [y.shape for y in self.outputs]
        return shapes[0] if len(shapes) == 1 else shapes

    @property
    def layers(self) -> list[Any]:
        """Return the layers: inputs, then the others in the order of their calls."""
        return [*self.input_layers, *self.graph.children()]

    def get_config(self) -> dict[str, Any]:
        """Return layers and calls in the form of Keras 2's JSON."""
        from .saving import functional_config  # noqa: PLC0415  (it imports this module)

        return functional_config(self)

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Return the model of a configuration."""
        from .saving import functional_from_config  # noqa: PLC0415  (it imports this module)

        return functional_from_config(config, custom_objects or {})


def _names_of_data(kwargs: dict[str, Any]) -> list[str]:
    kinds = (Tensor, np.ndarray, KerasTensor)
    known = ("inputs", "mask")
    return [
        name for name, value in kwargs.items() if isinstance(value, kinds) and name not in known
    ]


def _fits(shape: Any, expected: Any) -> bool:
    """Tell whether a shape may be one of which some sizes, None, are not told."""
    if len(shape) != len(expected):
        return False
    known = [n if size is None else size for n, size in zip(shape, expected, strict=True)]
    return bool(may_equal(known, list(shape)))


def _symbolic(given: Any, what: str) -> list[KerasTensor]:
    found = flattened(given)
    for value in found:
        if not isinstance(value, KerasTensor):
            raise ArgumentTypeError(
                f"Model: {what} must be symbolic tensors, from Input and layers called on them. "
                f"Received: {type(value).__name__}"
            )
    if not found:
        raise ArgumentError(f"Model: there are no {what}")
    return found


def _ordered(begin: list[KerasTensor], end: list[KerasTensor]) -> list[Call]:
    """Return the calls from inputs to outputs, each after those it needs."""
    known = {id(x) for x in begin}
    done: dict[int, Call] = {}
    pending: list[tuple[KerasTensor, bool]] = [(y, False) for y in reversed(end)]
    while pending:
        tensor, ready = pending.pop()
        call = tensor.call
        if id(tensor) in known or id(call) in done:
            continue
        if not call.inputs:
            raise ArgumentError(
                f"the outputs depend on the input {tensor.name!r}, which is not among the model's "
                f"inputs ({', '.join(x.name for x in begin)}): the graph is disconnected"
            )
        if ready:
            done[id(call)] = call
            continue
        pending.append((tensor, True))
        pending += [(x, False) for x in reversed(call.inputs)]
    return list(done.values())


def _graph_of(
    begin: list[KerasTensor], calls: list[Call]
) -> tuple[LayerGraph, dict[int, tuple[str, int]]]:
    """Return the graph of some calls, and the value's name for each symbolic tensor."""
    names = _different([f"input:{x.name}" for x in begin])
    graph = LayerGraph(names)
    values = {id(x): (name, -1) for x, name in zip(begin, names, strict=True)}
    slots: dict[int, str] = {}
    for call in calls:
        count = sum(step.module == slots.get(id(call.layer)) for step in graph.steps)
        shared = slots.get(id(call.layer))
        module: Any = call.layer if shared is None else shared
        slot = _free_slot(graph, call.layer.name) if shared is None else shared
        slots[id(call.layer)] = slot
        name = f"{slot}:{count}" if count else slot
        read = [_reference(values, x) for x in call.inputs]
        graph.append(name, module, read, **call.options)
        several = len(call.outputs) > 1
        for y in call.outputs:
            values[id(y)] = (name, y.index if several else -1)
    return graph, values


def _free_slot(graph: LayerGraph, name: str) -> str:
    """Return a name for a module of the graph, which has attributes of its own."""
    while hasattr(graph, name):
        if graph._kinds.get(name) is not None:
            raise ArgumentError(f"two layers of the model have the name {name!r}; rename one")
        name += "_"
    return name


def _reference(values: dict[int, tuple[str, int]], tensor: KerasTensor) -> str:
    name, index = values[id(tensor)]
    return name if index < 0 else f"{name}.{index}"


def _names_of_inputs(given: Any, begin: list[KerasTensor]) -> tuple[str, ...]:
    if isinstance(given, dict):
        return tuple(given)
    names = [x.name for x in begin]
    if len(set(names)) != len(names):
        raise ArgumentError(f"the inputs of a model need names of their own. Received: {names}")
    return tuple(names)


def _different(names: list[str]) -> tuple[str, ...]:
    """Return names of outputs; a layer that makes several gives them numbers."""
    found: list[str] = []
    for name in names:
        count = sum(other == name or other.startswith(f"{name}_") for other in found)
        found.append(f"{name}_{count}" if name in found else name)
    return tuple(found)


def _check_different(layers: list[Any]) -> None:
    names = [layer.name for layer in unique(layers)]
    for name in names:
        if names.count(name) > 1:
            raise ArgumentError(f"two layers of the model have the name {name!r}; rename one")
