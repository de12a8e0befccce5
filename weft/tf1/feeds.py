"""What is fed: values that are cast to the types of tensors as TensorFlow casts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .graph import Graph
from .tensor import Tensor


def fed_values(graph: Graph, feed_dict: Mapping[Any, Any]) -> dict[Any, np.ndarray[Any, Any]]:
    """Return the arrays of what is fed, by tensors."""
    found: dict[Any, np.ndarray[Any, Any]] = {}
    for key, value in feed_dict.items():
        if isinstance(key, (tuple, list)):  # a state of several tensors
            found.update(fed_values(graph, dict(zip(_flat(key), _flat(value), strict=True))))
            continue
        tensor = _target(graph, key)
        found[tensor] = _array(tensor, value)
    return found


def _flat(nest: Any) -> list[Any]:
    if isinstance(nest, (tuple, list)):
        return [leaf for part in nest for leaf in _flat(part)]
    return [nest]


def _target(graph: Graph, key: Any) -> Any:
    if key.__class__ is Tensor and key.op.graph is graph:  # as in almost every run
        return key
    try:
        return graph.as_graph_element(key, allow_operation=False)
    except (TypeError, ValueError, KeyError) as error:
        text = error.args[0] if error.args else error
        raise TypeError(f"Cannot interpret feed_dict key as Tensor: {text}") from None


def _array(tensor: Any, value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, Tensor) or hasattr(value, "_as_tensor"):
        raise TypeError(
            "The value of a feed cannot be a tf.Tensor object. Acceptable feed values include "
            "Python "
            "scalars, strings, lists, numpy ndarrays, or TensorHandles. For reference, the tensor "
            f"object was {value} which was passed to the feed with key {tensor}."
        )
    kind = tensor.dtype
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_number(kind, value)
    array = np.asarray(value, kind.dtype)
    if not _fits(tensor.shape.sizes, array.shape):
        raise ValueError(
            f"Cannot feed value of shape {array.shape!r} for Tensor {tensor.name!r}, which has "
            f"shape {str(tensor.shape)!r}"
        )
    return array


def _fits(sizes: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether a value has a static shape."""
    if sizes is None:
        return True
    return len(sizes) == len(shape) and all(
        a is None or a == b for a, b in zip(sizes, shape, strict=True)
    )


def _check_number(kind: Any, value: Any) -> None:
    if isinstance(value, int) and kind.is_integer and not kind.min <= value <= kind.max:
        raise TypeError(
            f"Type of feed value {value} with type {type(value)} is not compatible with Tensor "
            "type "
            f"{kind.as_numpy_dtype}. Try explicitly setting the type of the feed tensor to a "
            "larger "
            "type (e.g. int64)."
        )
