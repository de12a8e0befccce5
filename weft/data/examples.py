"""Features of tf.train.Examples as (input, target), for training by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import ArgumentError
from ..core.tensor import Tensor, wrap
from .errors import DataFileError
from .example import Feature
from .streams import Array
from .tfrecord import TFRecordDataset


class ExampleDataset(TFRecordDataset):
    """The tf.train.Examples of plain TFRecord files, as (features, target).

    paths      a file, or several
    features   the name of the feature that is the input, or several whose values follow another
    target     the name of the target; without one an item is the features alone
    shape      of the input; by default all values in one row
    raw        how features of bytes hold their values: "uint8", "float32", ... (little-endian);
               bytes become float32 in [0, 1]
    """

    def __init__(
        self,
        paths: Any,
        features: str | Sequence[str],
        target: str | None = None,
        *,
        shape: Sequence[int] | None = None,
        raw: str | None = None,
    ) -> None:
        self.feature_names = [features] if isinstance(features, str) else list(features)
        if not self.feature_names:
            raise ArgumentError("ExampleDataset: give the name of one feature at least")
        self._target, self._raw = target, None if raw is None else np.dtype(raw)
        self._shape = None if shape is None else tuple(shape)
        super().__init__(paths)

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        parts = [self._numbers(found, name).astype(np.float32) for name in self.feature_names]
        values = np.concatenate(parts)
        if self._raw == np.uint8:
            values /= np.float32(255)
        row = wrap(values if self._shape is None else self._shaped(values))
        return row if self._target is None else (row, self._label(found, self._target))

    def _label(self, found: dict[str, Feature], name: str) -> Tensor:
        values = self._numbers(found, name)
        return wrap(values.reshape(()) if values.size == 1 else values)

    def _numbers(self, found: dict[str, Feature], name: str) -> Array:
        if name not in found:
            raise self._error(f"an example has no feature {name!r}; it has {list(found)}")
        values = found[name]
        if isinstance(values, np.ndarray):
            return values
        if self._raw is None:
            raise self._error(f"feature {name!r} is bytes; give raw=, the type of its values")
        joined = b"".join(values)
        if len(joined) % self._raw.itemsize:
            raise self._error(f"feature {name!r} has {len(joined)} bytes, no values of {self._raw}")
        return np.frombuffer(joined, self._raw.newbyteorder("<")).astype(self._raw)

    def _shaped(self, values: Array) -> Array:
        try:
            return values.reshape(self._shape)
        except ValueError:
            raise self._error(f"an example has {values.size} values, not {self._shape}") from None

    def _error(self, problem: str) -> DataFileError:
        return DataFileError(", ".join(self.paths), None, problem)
