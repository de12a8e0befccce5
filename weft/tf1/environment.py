"""Where operations are evaluated: what is known of their results.

A value is a tensor of Weft's (a symbol of the graph that is being built) or, if it is known before
anything runs, an array: constants, sizes, and what is computed with them. Sizes that are not known
yet stand in arrays of objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..core.dim import Dim, unknown_size
from ..core.errors import WeftError
from ..core.modes import interpret_with
from ..core.tensor import Tensor as Value
from ..graph.frontend import placeholder
from ..graph.graph import Graph as WeftGraph
from ..ops.creation import tensor as make_tensor
from .dtypes import as_dtype
from .graph import Operation
from .messages import shape_error
from .shapes import TensorShape


class NotKnownError(Exception):
    """What must be known to go on is not known yet."""


def is_known(value: Any) -> bool:
    """Tell whether a value is known before anything runs."""
    return isinstance(value, np.ndarray)


def is_sizes(value: Any) -> bool:
    """Tell whether a value is known and made of whole numbers, which are computed with at once."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "iubO"


def results(made: Any) -> tuple[Any, ...]:
    """Return what an operation makes as a tuple."""
    return tuple(made) if isinstance(made, (tuple, list)) else (made,)


def constant_value(array: np.ndarray[Any, Any]) -> Value:
    """Return a known array as a constant of the graph that is being built."""
    made: Value = make_tensor(array)
    return made


class Inference:
    """The environment that finds dtypes and shapes when operations are made.

    Operations are applied to symbols of a graph that never runs.
    """

    def __init__(self) -> None:
        self.graph = WeftGraph("inference")
        self._sizes = 0

    def infer(self, operation: Operation) -> list[Any] | None:
        """Return what is known of the results; None if their shapes cannot be told."""
        shadows = [tensor.shadow for tensor in operation.inputs]
        folded = self._folded(operation, shadows)
        if folded is not None:
            return list(results(folded))
        try:
            with self.graph:
                values = [self._operand(operation, i, s) for i, s in enumerate(shadows)]
                made = results(operation.evaluate(self, values))
                return [None if x is None else _as_shadow(x) for x in made]
        except NotKnownError:
            return None
        except (WeftError, ValueError, TypeError, IndexError) as error:
            if any(not _is_defined(tensor) for tensor in operation.inputs):
                return None
            raise shape_error(operation, error) from error

    def _folded(self, operation: Operation, shadows: Sequence[Any]) -> Any:
        """Return results that are computed with sizes; unknown numbers are unknown sizes."""
        if operation.fold is None or not shadows:
            return None
        known = [self._as_sizes(shadow) for shadow in shadows]
        if any(value is None for value in known):
            return None
        if not any(is_known(shadow) for shadow in shadows):
            return None
        try:
            return operation.fold(*known)
        except (TypeError, WeftError):
            return None

    def _as_sizes(self, shadow: Any) -> Any:
        if is_sizes(shadow):
            return shadow
        if shadow is None or is_known(shadow) or shadow.ndim or shadow.dtype.kind not in "iu":
            return None
        return size_array(self.fresh_size())

    def _operand(self, operation: Operation, position: int, shadow: Any) -> Any:
        if position in operation.static:
            if not is_known(shadow):
                raise NotKnownError
            return shadow
        if shadow is None:
            raise NotKnownError
        return self.lifted(shadow)

    def lifted(self, shadow: Any) -> Value:
        """Return what is known of a tensor as a symbol."""
        if not is_known(shadow):
            found: Value = shadow
            return found
        if shadow.dtype == object:
            if any(isinstance(x, (str, bytes)) for x in shadow.flat):
                raise NotKnownError
            return placeholder(shadow.shape, np.int32)
        return constant_value(shadow)

    def fresh_size(self) -> Dim:
        """Return a size of which nothing is known."""
        self._sizes += 1
        return unknown_size(f"size_{self._sizes}")

    def symbol(self, shape: TensorShape, dtype: Any) -> Any:
        """Return a new symbol of a static shape; None if its rank is not known."""
        if shape.sizes is None or dtype.name == "string":
            return None
        with self.graph:
            return placeholder(
                tuple(self.fresh_size() if size is None else size for size in shape.sizes),
                dtype.dtype,
            )

    def restate(self, tensor: Any) -> None:
        """Let a tensor be known by the static shape that it has been given."""
        tensor.shadow = self.symbol(tensor.shape, tensor.dtype)

    def generator(self, operation: Operation) -> Any:
        """Return None: what draws are made from does not change their shapes."""
        return None

    def read(self, variable: Any) -> Any:
        """Return what is known of a variable."""
        return self.symbol(variable.shape, variable.dtype)

    read_first_value = read

    def write(self, variable: Any, value: Any) -> None:
        """Do nothing: nothing runs."""

    def static(self, tensor: Any) -> Any:
        """Return the value of a tensor if it is known."""
        if not is_known(tensor.shadow):
            raise NotKnownError
        return tensor.shadow


def size_array(size: Any) -> np.ndarray[Any, Any]:
    """Return a size as an array without dimensions."""
    array = np.empty((), object)
    array[()] = size
    return array


def sizes_of(sizes: Iterable[Any]) -> np.ndarray[Any, Any]:
    """Return sizes as a known vector: of int32, or of objects if one is not known."""
    whole = list(sizes)
    if any(isinstance(size, Dim) for size in whole):
        array = np.empty(len(whole), object)
        array[:] = whole
        return array
    return np.array(whole, np.int32)


def whole_numbers(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """Return a known vector as a tuple of ints and unknown sizes."""
    return tuple(x if isinstance(x, Dim) else int(x) for x in np.atleast_1d(array).ravel())


def static_shape(shadow: Any) -> TensorShape:
    """Return what users see of a shape."""
    if shadow is None:
        return TensorShape(None)
    return TensorShape(
        [size if isinstance(size, (int, np.integer)) else None for size in shadow.shape]
    )


def static_dtype(shadow: Any) -> Any:
    """Return the element type of what is known of a tensor."""
    if shadow.dtype == object:
        texts = any(isinstance(x, (str, bytes)) for x in shadow.flat)
        return as_dtype("string" if texts else "int32")
    return as_dtype(shadow.dtype)


def _as_shadow(value: Any) -> Any:
    return value if is_known(value) else _own_symbol(value)


def _own_symbol(value: Any) -> Any:
    """Return a symbol: a constant that an operation made has to be put into the graph."""
    return value if getattr(value, "symbolic", False) else value + 0 * value


def _is_defined(tensor: Any) -> bool:
    return bool(tensor.shape.is_fully_defined())


def eagerly(operation: Operation, env: Any, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of an operation on known arrays, computed now."""
    with interpret_with(None):
        values = [
            array if i in operation.static else make_tensor(array) for i, array in enumerate(arrays)
        ]
        made = results(operation.evaluate(env, values))
    return tuple(x if is_known(x) else x.numpy() for x in made)
