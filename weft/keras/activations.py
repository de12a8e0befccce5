"""Activations by Keras's names."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.facade import public_function
from ..train.registry import hint

Activation = Callable[[Any], Any]
_found = cache(public_function)


def _named(name: str, operator: str, **options: Any) -> Activation:
    def activation(x: Any) -> Any:
        return _found(operator)(x, **options)  # found when it is called, not imported

    activation.__name__ = activation.__qualname__ = name
    activation.__doc__ = f"Return {name} of x."
    return activation


def linear(x: Any) -> Any:
    """Return x."""
    return x


# Keras's name, the operator, and its options where Keras's defaults are others.
_TABLE: tuple[tuple[Any, ...], ...] = (
    ("relu", "relu"),
    ("relu6", "relu6"),
    ("sigmoid", "sigmoid"),
    ("tanh", "tanh"),
    ("softmax", "softmax", {"dim": -1}),
    ("log_softmax", "log_softmax", {"dim": -1}),
    ("softplus", "softplus"),
    ("softsign", "softsign"),
    ("elu", "elu"),
    ("selu", "selu"),
    ("gelu", "gelu"),
    ("silu", "silu"),
    ("swish", "silu"),
    ("mish", "mish"),
    ("leaky_relu", "leaky_relu", {"negative_slope": 0.2}),
    ("hard_sigmoid", "hardsigmoid"),
    ("hard_silu", "hardswish"),
    ("exponential", "exp"),
)
ACTIVATIONS: dict[str, Activation] = {
    "linear": linear,
    **{
        name: _named(name, operator, **(options[0] if options else {}))
        for name, operator, *options in _TABLE
    },
}
globals().update(ACTIVATIONS)

__all__ = ["ACTIVATIONS", "deserialize", "get", "serialize", *ACTIVATIONS]  # noqa: PLE0604  (names)


def get(identifier: Any) -> Activation:
    """Return an activation from its name, a function, or None (which is linear)."""
    if identifier is None:
        return linear
    if isinstance(identifier, str):
        if identifier not in ACTIVATIONS:
            known = hint(identifier, ACTIVATIONS)
            raise ArgumentError(f"there is no activation {identifier!r}; {known}")
        return ACTIVATIONS[identifier]
    if callable(identifier):
        found: Activation = identifier
        return found
    raise ArgumentTypeError(f"an activation is a name or a function. Received: {identifier!r:.60}")


def is_elementwise(activation: Any) -> bool:
    """Tell whether an activation acts on each element alone, wherever the channels are."""
    name = getattr(activation, "__name__", "")
    return ACTIVATIONS.get(name) is activation and not name.endswith("softmax")


def serialize(activation: Any) -> str:
    """Return the name of an activation."""
    return str(getattr(activation, "__name__", type(activation).__name__))


deserialize = get
