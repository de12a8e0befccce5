"""`tf.train.Example` and its parts, as programs build and take them apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..data import encode_example, parse_example

__all__ = ["BytesList", "Example", "Feature", "Features", "FloatList", "Int64List"]


class _List:
    """A list of values of one type."""

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self.value = [self._checked(x) for x in value]

    @staticmethod
    def _checked(value: Any) -> Any:
        return value

    def __repr__(self) -> str:
        return f"{type(self).__name__}(value={self.value!r:.80})"


class BytesList(_List):
    """A list of bytes."""

    @staticmethod
    def _checked(value: Any) -> bytes:
        if isinstance(value, str):
            return value.encode()
        if not isinstance(value, bytes):
            raise TypeError(
                f"{value!r:.60} has type {type(value).__name__}, but expected one of: bytes"
            )
        return value


class FloatList(_List):
    """A list of floats."""

    @staticmethod
    def _checked(value: Any) -> float:
        return float(np.float32(value))


class Int64List(_List):
    """A list of integers."""

    @staticmethod
    def _checked(value: Any) -> int:
        if isinstance(value, (float, np.floating)) or np.ndim(value):
            raise TypeError(
                f"{value!r:.60} has type {type(value).__name__}, but expected one of: int"
            )
        return int(value)


class Feature:
    """One of three lists."""

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        self.bytes_list = bytes_list or BytesList()
        self.float_list = float_list or FloatList()
        self.int64_list = int64_list or Int64List()

    def WhichOneof(self, name: str) -> str | None:
        """Return which list has values."""
        kinds = ("bytes_list", "float_list", "int64_list")
        return next((kind for kind in kinds if getattr(self, kind).value), None)

    def _encodable(self) -> Any:
        kind = self.WhichOneof("kind")
        if kind == "float_list":
            return np.array(self.float_list.value, np.float32)
        if kind == "int64_list":
            return np.array(self.int64_list.value, np.int64)
        return self.bytes_list.value or np.zeros(0, np.float32)


class Features:
    """Features by name."""

    def __init__(self, feature: Mapping[str, Feature] | None = None) -> None:
        self.feature: dict[str, Feature] = _Named(feature or {})


class _Named(dict[str, Feature]):
    """A map that makes what it is asked for, as protobuf's do."""

    def __missing__(self, key: str) -> Feature:
        self[key] = Feature()
        return self[key]


class Example:
    """Named features: `tf.train.Example(features=tf.train.Features(feature={...}))`."""

    def __init__(self, features: Features | None = None) -> None:
        self.features = Features() if features is None else features

    def SerializeToString(self) -> bytes:
        """Return the message."""
        return encode_example(
            {name: feature._encodable() for name, feature in self.features.feature.items()}
        )

    def ParseFromString(self, serialized: bytes) -> int:
        """Take what a message holds."""
        self.features = self.FromString(serialized).features
        return len(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> Example:
        """Return a message that was written."""
        found = parse_example(serialized)
        return cls(Features({name: _feature(values) for name, values in found.items()}))


def _feature(values: Any) -> Feature:
    if isinstance(values, list):
        return Feature(bytes_list=BytesList(values))
    if values.dtype.kind == "f":
        return Feature(float_list=FloatList(values.tolist()))
    return Feature(int64_list=Int64List(values.tolist()))
