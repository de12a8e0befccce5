"""What layers have: a scope, variables, and a call that builds them the first time."""

from __future__ import annotations

import re
from typing import Any

from .. import initializers
from ..graph import get_default_graph
from ..keys import GraphKeys
from ..recording import convert_to_tensor
from ..variable_scope import get_variable, variable_scope


class Layer:
    """A layer: its variables are made at the first call, under its name.

    A name that is given can share variables with another layer of that name, by `reuse`.
    """

    def __init__(
        self,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        _reuse: Any = None,
        _scope: Any = None,
        activity_regularizer: Any = None,
        **options: Any,
    ) -> None:
        if options:
            raise TypeError(
                f"{type(self).__name__}: Keyword argument not understood: {min(options)!r}"
            )
        self.trainable = trainable
        self._given, self._reuse = name, _reuse
        self._scope: Any = None
        self.built = False
        self.activity_regularizer = activity_regularizer
        self._variables: list[Any] = []
        self._updates: list[Any] = []
        self.dtype = dtype

    @property
    def name(self) -> str:
        """Return the name."""
        return (
            self._given or "" if self._scope is None else str(self._scope.name.rpartition("/")[2])
        )

    def build(self, input_shape: Any) -> None:
        """Make the variables."""
        self.built = True

    def call(self, inputs: Any, **options: Any) -> Any:
        """Return the layer's function of its inputs."""
        raise NotImplementedError

    def __call__(self, inputs: Any, *args: Any, **options: Any) -> Any:
        """Return the layer's function of its inputs."""
        x: Any = inputs if isinstance(inputs, (list, tuple)) else convert_to_tensor(inputs)
        with self._opened():
            if not self.built:
                self.dtype = self.dtype or getattr(x, "dtype", None)
                self.build(x.shape)
                self.built = True
            made = self.call(x, *args, **options)
        if self.activity_regularizer is not None:
            get_default_graph().add_to_collection(
                GraphKeys.REGULARIZATION_LOSSES, self.activity_regularizer(made)
            )
        return made

    apply = __call__

    def _opened(self) -> Any:
        if self._scope is not None:
            return variable_scope(self._scope, reuse=True)
        return _Remembering(
            self,
            variable_scope(
                self._given, default_name=snake_case(type(self).__name__), reuse=self._reuse
            ),
        )

    def add_variable(
        self,
        name: str,
        shape: Any,
        dtype: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        trainable: bool = True,
        constraint: Any = None,
    ) -> Any:
        """Return a variable of the layer."""
        made = get_variable(
            name,
            shape,
            dtype or self.dtype,
            initializer,
            regularizer,
            trainable=trainable and self.trainable,
            constraint=constraint,
        )
        self._variables.append((made, trainable and self.trainable))
        return made

    add_weight = add_variable

    @property
    def variables(self) -> list[Any]:
        """Return the variables."""
        return [v for v, _ in self._variables]

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Return the variables that are trained."""
        return [v for v, trained in self._variables if trained]

    trainable_weights = trainable_variables

    @property
    def updates(self) -> list[Any]:
        """Return operations that must run with each step."""
        return list(self._updates)


class _Remembering:
    """A scope that a layer keeps for its later calls."""

    def __init__(self, layer: Layer, scope: Any) -> None:
        self.layer, self.scope = layer, scope

    def __enter__(self) -> Any:
        self.layer._scope = self.scope.__enter__()
        return self.layer._scope

    def __exit__(self, *exc: Any) -> Any:
        return self.scope.__exit__(*exc)


def snake_case(name: str) -> str:
    """Return the name of a class as that of its scope: `conv2d`, `batch_normalization`."""
    spaced = re.sub(r"(.)([A-Z][a-z0-9]+)", r"\1_\2", name)
    return re.sub(r"([a-z])([A-Z])", r"\1_\2", spaced).lower()


def zeros() -> Any:
    """Return the initializer of biases."""
    return initializers.Zeros()


def last_size(x: Any, axis: int, what: str) -> int:
    """Return a size that must be known to make variables."""
    size = None if x.sizes is None else x.sizes[axis]
    if size is None:
        raise ValueError(
            f"The {what} of the inputs should be defined. Found `None`: the shape is {x}; say it "
            "in the "
            "placeholder or with set_shape"
        )
    return int(size)
