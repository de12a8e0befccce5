"""Layer: Keras's base of layers and models, over Weft's Module.

A layer is made without sizes; `build` makes its weights when the first input, symbolic or not,
tells them. Layers of this face hold a layer of Weft's as `core`, and are names, argument orders,
defaults and layouts around it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from ...core import dtype as dt
from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.modes import eagerly
from ...core.tensor import Tensor
from ...nn import Module, ModuleList, Parameter
from ...nn.version import count_change, leave_unseen
from ...ops.creation import tensor
from .. import activations, initializers
from ..naming import checked_name, fresh_name, snake_case
from ..symbolic import Call, KerasTensor, Shape, checked_shape, known_sizes, record_call
from .weights import Weight

leave_unseen("_calls", "_added")
_NO_INPUTS = ("self", "training", "mask")


class Layer(Module):
    """Base of layers: `build(input_shape)` makes weights, `call(inputs)` computes.

    >>> import weft as wf
    >>> class Scale(Layer):
    ...     def build(self, input_shape):
    ...         self.factor = self.add_weight(shape=(input_shape[-1],), initializer="ones")
    ...
    ...     def call(self, inputs):
    ...         return inputs * self.factor
    >>> Scale()(wf.tensor([[1.0, 2.0]])).detach()
    tensor([[1., 2.]])
    """

    _options: ClassVar[tuple[str, ...]] = ()  # of the constructor, each kept as an attribute
    name: str

    def __init__(
        self,
        *,
        name: str | None = None,
        trainable: bool = True,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__()
        kind = snake_case(type(self).__name__)
        self.__dict__["training"] = False  # as in Keras, unless `fit` or a call says otherwise
        self.name = fresh_name(kind) if name is None else checked_name(name)
        self.__dict__.update(_trainable=bool(trainable), _calls=[], _added=[], _pending=True)
        self.given_shape = _given_shape(self, options)
        self._refuse(options)
        form = _positional(self.call)
        self._takes_list, self._takes_training = form.count("inputs") == 1, "training" in form
        self._dtype = dtype

    def _refuse(self, options: dict[str, Any]) -> None:
        """Raise for options that there are not; those of Keras say what to use."""
        for name, value in options.items():
            if value is None and name.endswith(("regularizer", "constraint", "seed")):
                continue
            if name.endswith("regularizer"):
                advice = "use weight_decay of the optimizer, e.g. optimizers.AdamW"
            elif name.endswith("constraint"):
                advice = "constrain the weight in a callback"
            else:
                advice = "leave it out"
            raise ArgumentTypeError(
                f"{type(self).__name__}: the option {name}={value!r:.40} is not served; {advice}"
            )

    def __setattr__(self, name: str, value: Any) -> None:
        """Set properties by themselves; keep lists of layers so that their weights are found."""
        if isinstance(getattr(type(self), name, None), property):
            object.__setattr__(self, name, value)
            return
        if isinstance(value, list) and value and all(isinstance(v, Module) for v in value):
            value = ModuleList(value)
        super().__setattr__(name, value)

    # -- calling -----------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compute, or note the call if the inputs are symbolic."""
        inputs, options = self._separated(args, kwargs)
        for x in inputs:
            if isinstance(x, KerasTensor):
                return record_call(self, inputs, options)
        training = options.pop("training", None)
        if training is None or training is self.training:
            return self._run(inputs, options)
        with _mode(self, bool(training)):
            return self._run(inputs, options)

    def _run(self, inputs: Sequence[Any], options: dict[str, Any]) -> Any:
        values = [_as_tensor(x) for x in inputs]
        if self._pending:
            self._build_for(values)
        return super().__call__(*values, **options)

    def _separated(self, args: Any, kwargs: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the tensors of a call, lists of them opened, and the named options."""
        inputs: list[Any] = []
        options: dict[str, Any] = {}
        for arg in args:
            inputs.extend(arg if isinstance(arg, list | tuple) else (arg,))
        for name, value in kwargs.items():
            if name == "inputs":
                inputs.extend(value if isinstance(value, list | tuple) else (value,))
            elif value is not None:
                options[name] = value
        if not inputs:
            raise ArgumentError(f"{self.name} was called without inputs")
        return inputs, options

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute by `call`, which takes several inputs as a list unless it names them."""
        if self._takes_training:
            options = {**options, "training": self.training}
        if self._takes_list and len(inputs) > 1:
            return self.call(list(inputs), **options)
        return self.call(*inputs, **options)

    def call(self, inputs: Any) -> Any:
        """Compute the output; subclasses define it."""
        raise ArgumentTypeError(f"{type(self).__name__} defines no call(); a layer must")

    # -- weights -----------------------------------------------------------------------------------

    @property
    def built(self) -> bool:
        """Tell whether the weights are there."""
        return not self._pending

    @built.setter
    def built(self, value: bool) -> None:
        """Take what programs set at the end of `build`: it is known already."""

    @eagerly
    def _build_for(self, inputs: Sequence[Any]) -> None:
        for x in inputs:
            if not hasattr(x, "shape"):
                raise ArgumentTypeError(
                    f"{self.name} takes tensors or arrays. Received: {type(x).__name__} {x!r:.60}"
                )
        shapes = [known_sizes(x.shape) for x in inputs]
        self.build_once(shapes[0] if len(shapes) == 1 else shapes)

    def build_once(self, shape: Any) -> None:
        """Make the weights unless they are there."""
        if not self._pending:
            return
        self.build(shape)
        self._register_added()
        self.__dict__["_pending"] = False
        self.train(self.training)
        if not self._trainable:
            self.trainable = False
        count_change()

    def build(self, input_shape: Any) -> None:
        """Make the weights for inputs of a shape (a list of shapes for several inputs)."""

    def add_weight(
        self,
        shape: Any = (),
        initializer: Any = "glorot_uniform",
        dtype: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **options: Any,
    ) -> Any:
        """Return a new weight of this layer."""
        if isinstance(shape, str):  # Keras 2 has the name first
            name, shape = shape, ()
        self._refuse(options)
        kind = dt.as_dtype(dtype or self._dtype or dt.default_float())
        value = tensor(initializers.get(initializer)(tuple(shape), kind))
        made = Parameter(value) if trainable else value
        self.__dict__["_added"].append((name, made))
        return made

    def _register_added(self) -> None:
        """Register weights that `add_weight` made under the attributes that hold them."""
        for number, (name, made) in enumerate(self.__dict__["_added"]):
            held = next((n for n, value in self.__dict__.items() if value is made), None)
            attribute = held or name or f"weight_{number}"
            if self._kinds.get(attribute) is None:
                self.__dict__.pop(attribute, None)
                kind = self.register_parameter if isinstance(made, Parameter) else None
                (kind or self.register_buffer)(attribute, made)
        self.__dict__["_added"].clear()

    def own_weights(self) -> list[Weight]:
        """Return the weights in Keras's order and layouts: first those that are trained."""
        found = [Weight(name, value) for name, value in self.named_parameters()]
        return found + [Weight(name, value) for name, value in self.named_buffers()]

    @property
    def weights(self) -> list[Weight]:
        """Return all weights."""
        self._check_built()
        return self.own_weights()

    @property
    def trainable_weights(self) -> list[Weight]:
        """Return the weights that are trained."""
        return [weight for weight in self.weights if weight.trainable]

    @property
    def non_trainable_weights(self) -> list[Weight]:
        """Return the weights that are not trained."""
        return [weight for weight in self.weights if not weight.trainable]

    variables = weights

    def get_weights(self) -> list[Any]:
        """Return the weights as arrays in Keras's layouts."""
        return [weight.numpy() for weight in self.weights]

    def set_weights(self, values: Sequence[Any]) -> None:
        """Take weights from arrays in Keras's layouts."""
        held = self.weights
        if len(values) != len(held):
            raise ArgumentError(
                f"{self.name} has {len(held)} weights. Received: {len(values)} arrays"
            )
        for weight, value in zip(held, values, strict=True):
            weight.assign(value)

    def count_params(self) -> int:
        """Return the number of elements of all weights."""
        return sum(int(weight.tensor.size) for weight in self.weights)

    def _check_built(self) -> None:
        if self._pending:
            raise ArgumentError(
                f"{self.name} has no weights yet: call it on an input, symbolic or not, or "
                "build(input_shape)"
            )

    @property
    def trainable(self) -> bool:
        """Tell whether the weights are trained."""
        found: bool = self.__dict__["_trainable"]
        return found

    @trainable.setter
    def trainable(self, value: bool) -> None:
        """Train the weights, or freeze them, here and in all layers below."""
        count_change()
        for module in self.modules():
            if isinstance(module, Layer):
                module.__dict__["_trainable"] = bool(value)
        if not self._pending:
            self.requires_grad_(bool(value))

    # -- symbolic calls ----------------------------------------------------------------------------

    @property
    def calls(self) -> list[Call]:
        """Return the calls on symbolic tensors."""
        found: list[Call] = self.__dict__["_calls"]
        return found

    @property
    def input(self) -> Any:
        """Return the symbolic input of a layer that was called once."""
        return _one(self._only_call().inputs)

    @property
    def output(self) -> Any:
        """Return the symbolic output of a layer that was called once."""
        return _one(self._only_call().outputs)

    def _only_call(self) -> Call:
        if len(self.calls) != 1:
            raise ArgumentError(
                f"{self.name} was called {len(self.calls)} times on symbolic tensors, so it has "
                "no single input and output"
            )
        return self.calls[0]

    @property
    def input_shape(self) -> Any:
        """Return the shape of the symbolic input."""
        return _one([x.shape for x in self._only_call().inputs])

    @property
    def output_shape(self) -> Any:
        """Return the shape of the symbolic output."""
        return _one([x.shape for x in self._only_call().outputs])

    # -- configuration -----------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return what the constructor needs to make this layer again, without weights."""
        config: dict[str, Any] = {"name": self.name, "trainable": self.trainable}
        if self.given_shape is not None:
            config["batch_input_shape"] = list(self.given_shape)
        for name in self._options:
            config[name] = _serialized(name, getattr(self, name))
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return the layer of a configuration."""
        return cls(**config)


# -- helpers -------------------------------------------------------------------------------------


@contextmanager
def _mode(layer: Layer, training: bool) -> Iterator[None]:
    """Put a layer into a mode, and each of its modules back into its own."""
    before = [(module, module.__dict__["training"]) for module in layer.modules()]
    layer.train(training)
    try:
        yield
    finally:
        count_change()
        for module, mode in before:
            module.__dict__["training"] = mode


def _as_tensor(x: Any) -> Any:
    if isinstance(x, Tensor) or not isinstance(x, np.ndarray | int | float):
        return x
    array = np.asarray(x)
    return tensor(array.astype(dt.default_float()) if array.dtype.kind == "f" else array)


def _positional(call: Any) -> list[str]:
    """Return "inputs" for each positional parameter of `call`, and "training" if it takes that."""
    found: list[str] = []
    for name, parameter in inspect.signature(call).parameters.items():
        if name == "training":
            found.append(name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            found += ["inputs", "inputs"]
        elif parameter.kind is not parameter.VAR_KEYWORD and name not in _NO_INPUTS:
            found.append("inputs")
    return found


def _given_shape(layer: Layer, options: dict[str, Any]) -> Shape | None:
    """Take the input's shape out of the options, in any of Keras's ways to say it."""
    shapes = options.pop("batch_input_shape", None), options.pop("batch_shape", None)
    whole = shapes[1] if shapes[0] is None else shapes[0]
    rest, size = options.pop("input_shape", None), options.pop("input_dim", None)
    length = options.pop("input_length", None)
    if whole is not None:
        return checked_shape(layer.name, whole)
    if rest is not None:
        return (None, *checked_shape(layer.name, rest))
    if size is not None:
        return (None, size) if length is None else (None, length, size)
    return None


def _one(items: Sequence[Any]) -> Any:
    return items[0] if len(items) == 1 else list(items)


def _serialized(name: str, value: Any) -> Any:
    if name.endswith("activation"):
        return activations.serialize(value)
    if name.endswith("initializer"):
        return initializers.serialize(value)
    return list(value) if isinstance(value, tuple) else value
