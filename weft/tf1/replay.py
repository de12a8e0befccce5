"""Building the operations of a run in a graph of Weft's, for the shapes that are fed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.modes import current_tracer, interpret_with
from ..core.op import F
from ..ops.creation import tensor as make_tensor
from .environment import (
    constant_value,
    eagerly,
    is_known,
    is_sizes,
    results,
)
from .errors import InvalidArgumentError, OpError, at_node
from .graph import Operation

MAY_BE_VALUES = 4096  # elements of an integer that is fed up to which a program is made for them


class NeedsValueError(Exception):
    """A shape depends on what is fed: the program must be made for that very value."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor.name)
        self.tensor = tensor


class Replay:
    """The environment in which a part of a run is built.

    session     whose variables and random numbers it uses
    values      what tensors are: arrays that are known, and symbols
    written     what variables are from this point on
    read_first  variables whose values of before the run are read
    """

    def __init__(self, session: Any, parent: Replay | None = None) -> None:
        self.session = session
        self.parent = parent
        self.values: dict[Any, Any] = {}
        self.first_values: dict[Any, Any] = {}
        self.written: dict[Any, Any] = {}
        self.read_first: dict[Any, None] = {} if parent is None else parent.read_first
        self.external: set[Any] = set() if parent is None else parent.external
        self.shown: list[Any] = []  # what effects look at, which must be computed
        self._lifted: dict[Any, Any] = {}

    def child(self) -> Replay:
        """Return the environment of a branch or a loop's body."""
        return Replay(self.session, self)

    # -- operations --------------------------------------------------------------------------------

    def evaluate(self, operations: Sequence[Operation]) -> None:
        """Build operations, each after those that it depends on."""
        for operation in operations:
            self._evaluate(operation)

    def _evaluate(self, operation: Operation) -> None:
        raw = [self.value(tensor) for tensor in operation.inputs]
        if operation.fold is not None and raw and all(map(is_sizes, raw)):
            made = results(operation.fold(*raw))
        else:
            made = self._applied(operation)
        for tensor, value in zip(operation.outputs, made, strict=False):
            if tensor not in self.values:  # else it is fed
                self.values[tensor] = value

    def _applied(self, operation: Operation) -> tuple[Any, ...]:
        values = [
            self.static(tensor) if i in operation.static else self.symbol(tensor)
            for i, tensor in enumerate(operation.inputs)
        ]
        try:
            return results(operation.evaluate(self, values))
        except (OpError, NeedsValueError):
            raise
        except (ValueError, TypeError, IndexError, NotImplementedError) as error:
            raise at_node(InvalidArgumentError, operation, str(error)) from error

    # -- values ------------------------------------------------------------------------------------

    def value(self, tensor: Any) -> Any:
        """Return what a tensor is here, or outside of the branch."""
        env: Replay | None = self
        while env is not None:
            if tensor in env.values:
                return env.values[tensor]
            env = env.parent
        if tensor.op.type == "Const":
            return tensor.op.array
        raise AssertionError(f"{tensor.name} was not built")

    def symbol(self, tensor: Any) -> Any:
        """Return a tensor as one of Weft's; a known array becomes a constant, once."""
        value = self.value(tensor)
        if not is_known(value):
            return value
        env: Replay | None = self
        while env is not None:  # outside of a branch it may be a constant already
            if tensor in env._lifted:
                return env._lifted[tensor]
            env = env.parent
        self._lifted[tensor] = self._constant(tensor, value)
        return self._lifted[tensor]

    def _constant(self, tensor: Any, array: np.ndarray[Any, Any]) -> Any:
        if array.dtype == object:
            if any(isinstance(x, (str, bytes)) for x in array.flat):
                raise TypeError(f"{tensor.name} is text, with which only Python computes")
            numbers = [constant_value(np.array(0, np.int32)) + size for size in array.flat]
            return (
                F.stack(numbers).reshape(array.shape)
                if numbers
                else constant_value(array.astype(np.int32))
            )
        if not tensor.differentiated:
            return constant_value(array)
        with interpret_with(None):  # equal constants are one; gradients tell them apart
            own = make_tensor(array)
        return current_tracer().symbol_of(own)

    def static(self, tensor: Any) -> np.ndarray[Any, Any]:
        """Return the value of a tensor that must be known, such as a shape."""
        value = self.value(tensor)
        return value if is_known(value) else self._forced(tensor)

    def _forced(self, tensor: Any) -> np.ndarray[Any, Any]:
        """Return a value that follows from what is fed."""
        value = self.value(tensor)
        if is_known(value):
            return value
        if tensor in self.external:
            if tensor.dtype.is_floating or value.numel() > MAY_BE_VALUES:
                raise self._unknown(tensor)
            raise NeedsValueError(tensor)
        operation = tensor.op
        if not operation.inputs or getattr(operation, "effect", False):
            raise self._unknown(tensor)
        arrays = [self._forced(x) for x in operation.inputs]
        made = eagerly(operation, self, arrays)
        for output, array in zip(operation.outputs, made, strict=True):
            self.values[output] = array
        return self.values[tensor]

    def _unknown(self, tensor: Any) -> OpError:
        return at_node(
            InvalidArgumentError,
            tensor.op,
            f"{tensor.name} decides about a shape, but is computed from variables or other values "
            "that are not known when the run begins; compute it from what is fed, or from shapes",
        )

    # -- variables ---------------------------------------------------------------------------------

    def read(self, variable: Any) -> Any:
        """Return the value of a variable at this point."""
        env: Replay | None = self
        while env is not None:
            if variable in env.written:
                return env.written[variable]
            env = env.parent
        return self.read_first_value(variable)

    def read_first_value(self, variable: Any) -> Any:
        """Return the value that a variable has when the run begins."""
        root = self._root()
        root.read_first[variable] = None
        if variable not in root.first_values or self is not root:
            tensor = current_tracer().symbol_of(self.session.storage(variable))
            if self is not root:
                return tensor
            root.first_values[variable] = tensor
        return root.first_values[variable]

    def write(self, variable: Any, value: Any) -> None:
        """Let a variable have another value from this point on."""
        self.written[variable] = value

    def generator(self, operation: Operation) -> Any:
        """Return the random numbers of an operation."""
        return self.session.generator(operation)

    def _root(self) -> Replay:
        return self if self.parent is None else self.parent._root()
