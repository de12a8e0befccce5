"""NetSpec: nets written in Python, as pycaffe has it.

n = caffe.NetSpec()
n.data = L.Input(shape={"dim": [1, 1, 28, 28]})
n.conv1 = L.Convolution(n.data, kernel_size=5, num_output=20)
n.to_proto()
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

from .errors import CaffeError
from .message import MESSAGES, LayerParameter, Message, NetParameter
from .schema import TYPES


class Top:
    """An output of a function of layers: where a net is written, what layers are given."""

    def __init__(self, fn: Function, n: int) -> None:
        self.fn, self.n = fn, n

    def to_proto(self) -> Message:
        """Return the net that computes this."""
        return to_proto(self)


class Function:
    """A layer that is to be, with its inputs and parameters."""

    def __init__(self, type_name: str, inputs: tuple[Any, ...], params: dict[str, Any]) -> None:
        self.type_name, self.inputs = type_name, inputs
        self.ntop = params.pop("ntop", 1)
        self.in_place = params.pop("in_place", False)
        self.params = params
        for index, given in enumerate(inputs):
            if not isinstance(given, Top):
                raise TypeError(
                    f"{type_name} input {index} is not a Top (type is {type(given).__name__})"
                )
        if self.in_place and self.ntop != len(inputs):
            raise CaffeError(f"{type_name}: in_place needs as many tops as inputs")
        self.tops = tuple(Top(self, n) for n in range(self.ntop))

    def add(self, layers: OrderedDict[Function, Message], names: _Names) -> None:
        """Add this layer, and before it those that it reads from."""
        if self in layers:
            return
        for given in self.inputs:
            given.fn.add(layers, names)
        layer = LayerParameter(type=self.type_name)
        layer.bottom.extend(names.top(given) for given in self.inputs)
        tops = self.inputs if self.in_place else self.tops
        layer.top.extend(names.top(top) for top in tops)
        layer.name = names.layer(self)
        for name, value in self.params.items():
            _assign(layer, self.type_name, name, value)
        layers[self] = layer


class _Names:
    """Names of tops: those of a NetSpec, and made ones, Convolution1 and so on."""

    def __init__(self, given: dict[Top, str]) -> None:
        self.given, self.counts = given, Counter[str]()
        self.layers: dict[Function, str] = {}

    def top(self, top: Top) -> str:
        """Return the name of a top."""
        if top.fn.in_place:
            return self.top(top.fn.inputs[top.n])
        if top not in self.given:
            many = top.fn.ntop > 1
            base = self.layer(top.fn)
            self.given[top] = f"{base}{chr(ord('a') + top.n)}" if many else base
        return self.given[top]

    def layer(self, fn: Function) -> str:
        """Return the name of a layer: as its parameters say, or that of its first named top."""
        if fn not in self.layers:
            named = next((self.given[top] for top in fn.tops if top in self.given), None)
            self.layers[fn] = fn.params.pop("name", None) or named or self._made(fn.type_name)
        return self.layers[fn]

    def _made(self, type_name: str) -> str:
        self.counts[type_name] += 1
        return f"{type_name}{self.counts[type_name]}"


def _assign(layer: Message, type_name: str, name: str, value: Any) -> None:
    """Set a parameter: of the layer itself, or of the message of its type."""
    if name in TYPES["LayerParameter"].fields:
        layer.merge(LayerParameter(**{name: value}))
        return
    options = _PARAMETERS.get(type_name)
    if options is None:
        raise CaffeError(f"{type_name}: layers of this type take no parameter {name!r}")
    kind = MESSAGES[TYPES["LayerParameter"].fields[options].message]
    try:
        getattr(layer, options).merge(kind(**{name: value}))
    except AttributeError as error:
        raise CaffeError(f"{type_name}: {error}") from None


class NetSpec:
    """Tops by name: assign them as attributes, in any order that Python allows."""

    def __init__(self) -> None:
        object.__setattr__(self, "tops", OrderedDict())

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, Top):
            raise TypeError(f"NetSpec.{name} takes what layers return. Received: {value!r:.80}")
        self.tops[name] = value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.tops:
            raise AttributeError(f"NetSpec has no top {name!r}")
        return self.tops[name]

    __setitem__ = __setattr__
    __getitem__ = __getattr__

    def __delitem__(self, name: str) -> None:
        del self.tops[name]

    def to_proto(self) -> Message:
        """Return the net."""
        return _net([*self.tops.values()], {top: name for name, top in self.tops.items()})


def to_proto(*tops: Top) -> Message:
    """Return the net that computes some tops."""
    return _net(list(tops), {})


def _net(tops: list[Top], names: dict[Top, str]) -> Message:
    layers: OrderedDict[Function, Message] = OrderedDict()
    naming = _Names(names)
    for top in tops:
        top.fn.add(layers, naming)
    return NetParameter(layer=list(layers.values()))


class Layers:
    """`L`: a function for each type of layers, `L.Convolution(bottom, num_output=20)`."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)

        def made(*inputs: Any, **params: Any) -> Any:
            fn = Function(name, inputs, params)
            return fn.tops[0] if fn.ntop == 1 else (fn.tops or fn)

        return made


class Parameters:
    """`P`: constants of parameters, `P.Pooling.MAX`."""

    def __getattr__(self, name: str) -> Any:
        if f"{name}Parameter" not in MESSAGES:
            raise AttributeError(f"Caffe has no {name}Parameter")
        return MESSAGES[f"{name}Parameter"]


# The field of LayerParameter that takes the options of a type of layers.
_PARAMETERS = {
    field.message.removesuffix("Parameter"): name
    for name, field in TYPES["LayerParameter"].fields.items()
    if field.is_message and name.endswith("_param")
} | {"RNN": "recurrent_param", "LSTM": "recurrent_param", "Deconvolution": "convolution_param"}

layers, params = Layers(), Parameters()
