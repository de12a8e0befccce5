"""tf.train.Example: named features, each a list of bytes, floats or integers, as a message.

Example.features = 1; Features.feature = 1 (a map from text)
Feature: bytes_list = 1, float_list = 2, int64_list = 3; the values of a list are field 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ..core.errors import ArgumentTypeError
from ..core.tensor import Tensor
from ..io import wire
from .streams import Array

Feature: TypeAlias = Array | list[bytes]
_FEATURES: Final = 1
_ENTRIES: Final = 1
_BYTES, _FLOATS, _INTEGERS = 1, 2, 3
_VALUES: Final = 1


def parse_example(data: bytes | bytearray | memoryview) -> dict[str, Feature]:
    """Return the features of a serialized tf.train.Example by name, sorted.

    Integers come as an int64 array, floats as a float32 array, bytes as a list; a feature with
    nothing in it is an empty list.

    >>> made = encode_example({"label": 3, "pixels": [0.5, 1.0], "name": "a"})
    >>> parse_example(made)["name"], parse_example(made)["pixels"].tolist()
    ([b'a'], [0.5, 1.0])
    """
    example = wire.Message(data, name="Example")
    features = example.message(_FEATURES, "Features")
    found = {} if features is None else features.map(_ENTRIES, "Feature")
    return {name: _values(found[name]) for name in sorted(found)}


def encode_example(features: Mapping[str, Any]) -> bytes:
    """Return features as a serialized tf.train.Example.

    Numbers, arrays and tensors become lists of int64 or of float32 (flat, in the order of rows);
    text, bytes and lists of those become lists of bytes.

    >>> parse_example(encode_example({"x": [[1, 2], [3, 4]]}))
    {'x': array([1, 2, 3, 4])}
    """
    made = wire.MessageWriter()
    for name in sorted(features):
        feature = wire.MessageWriter()
        number, content = _encoded(name, features[name])
        feature.message(number, content)
        made.message(_ENTRIES, wire.MessageWriter().text(1, name).message(2, feature))
    return wire.MessageWriter().message(_FEATURES, made).content()


def _values(feature: wire.Message) -> Feature:
    """Return the list of a feature; of several the last stands, as in any choice of one."""
    kinds = [number for number in feature.numbers() if number in (_BYTES, _FLOATS, _INTEGERS)]
    if not kinds:
        return []
    content = feature.message(kinds[-1], "list")
    assert content is not None
    if kinds[-1] == _BYTES:
        return [view.tobytes() for view in content.views(_VALUES)]
    if kinds[-1] == _FLOATS:
        return content.floats(_VALUES).astype(np.float32)
    return content.integers(_VALUES)


def _encoded(name: str, value: Any) -> tuple[int, wire.MessageWriter]:
    made = wire.MessageWriter()
    if isinstance(value, str | bytes):
        value = [value]
    if isinstance(value, Sequence) and value and isinstance(value[0], str | bytes):
        for entry in value:
            made.raw(_VALUES, entry.encode() if isinstance(entry, str) else _as_bytes(name, entry))
        return _BYTES, made
    array = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.dtype.kind in "biu":
        return _INTEGERS, made.packed_varints(_VALUES, array.ravel().tolist())
    if array.dtype.kind == "f":
        return _FLOATS, made.packed_floats(_VALUES, array.ravel())
    raise ArgumentTypeError(
        f"encode_example: feature {name!r} must be numbers, text or bytes. "
        f"Received: {type(value).__name__} of {array.dtype}"
    )


def _as_bytes(name: str, entry: Any) -> bytes:
    if isinstance(entry, bytes):
        return entry
    raise ArgumentTypeError(
        f"encode_example: feature {name!r} mixes bytes and {type(entry).__name__}"
    )
