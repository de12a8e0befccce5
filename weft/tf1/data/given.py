"""What datasets are given: numbers, arrays, and tensors whose values a run says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import as_dtype
from ..errors import InvalidArgumentError
from ..recording import constant_array, convert_to_tensor, is_tensor
from ..shapes import TensorShape
from .nests import Component

Resolve = Callable[[Any], Any]  # the value of a number or a tensor that a dataset was given


def resolver(values: dict[Any, Any]) -> Resolve:
    """Return what gives the values of tensors: those that are said, and constants."""

    def resolve(given: Any) -> Any:
        if not is_tensor(given):
            return given
        if given in values:
            return values[given]
        known = getattr(given.op, "array", given.shadow)
        if isinstance(known, np.ndarray):
            return known
        raise ValueError(
            f"Failed to create a one-shot iterator for a dataset: it needs {given.name!r}, whose "
            "value is not known yet. Use `Dataset.make_initializable_iterator()` instead"
        )

    return resolve


def leaf_of(value: Any, dtype: Any = None) -> Any:
    """Return a tensor as it is, and anything else as an array."""
    if is_tensor(value):
        return convert_to_tensor(value)
    if isinstance(value, (list, tuple)) and any(is_tensor(x) for x in value):
        return convert_to_tensor(value)
    return constant_array(value, dtype)


def component_of(leaf: Any) -> Component:
    """Return what is known of a component."""
    if is_tensor(leaf):
        return Component(leaf.dtype, leaf.shape)
    return Component(as_dtype(leaf.dtype), TensorShape(leaf.shape))


def positive(value: Any) -> int:
    """Return a size, which is 1 at least."""
    number = int(value)
    if number < 1:
        raise InvalidArgumentError(None, None, f"the size must be greater than zero, not {number}")
    return number


def row_of(array: Any, index: int) -> Any:
    """Return a row as an array, also where it is one number or text."""
    if array.ndim > 1:
        return array[index]
    made = np.empty((), array.dtype)
    made[()] = array[index]
    return made


def shapes_of(given: Any) -> list[Any]:
    """Return the shapes in a nest: lists, shapes and tuples of sizes are shapes themselves."""
    if isinstance(given, dict):
        return [shape for key in sorted(given) for shape in shapes_of(given[key])]
    if isinstance(given, tuple) and not all(x is None or isinstance(x, int) for x in given):
        return [shape for part in given for shape in shapes_of(part)]
    if isinstance(given, tuple) and given == ():
        return [()]
    return [given]


def common_shape(a: TensorShape, b: TensorShape) -> TensorShape:
    """Return what two shapes have in common."""
    if a.sizes is None or b.sizes is None or len(a.sizes) != len(b.sizes):
        return TensorShape(None)
    return TensorShape([m if m == n else None for m, n in zip(a.sizes, b.sizes, strict=True)])
