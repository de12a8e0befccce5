"""Examples and other texts, parsed by operations: `tf.parse_single_example`, `tf.decode_csv` ..."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.errors import WeftError
from ..data import parse_example as features_of
from ..data.imagefolder import decode_image as pixels_of
from .dtypes import as_dtype, float32, int64, string, uint8
from .errors import InvalidArgumentError
from .host import host_operation
from .recording import constant_array, convert_to_tensor
from .shapes import TensorShape
from .sparse_values import SparseTensor

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "VarLenFeature",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "parse_example",
    "parse_single_example",
    "string_to_number",
]


class FixedLenFeature(NamedTuple):
    """A feature of one shape; without a default every example must have it."""

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature of any number of values, which becomes a sparse tensor."""

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature of any number of rows of one shape."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


def parse_single_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Return the features of one tf.train.Example as tensors by name."""
    return _parsed(serialized, features, name or "ParseSingleExample", batch=False)


def parse_example(
    serialized: Any, features: Any, name: str | None = None, example_names: Any = None
) -> dict[str, Any]:
    """Return the features of a batch of tf.train.Examples as tensors by name."""
    return _parsed(serialized, features, name or "ParseExample", batch=True)


def _parsed(serialized: Any, features: Any, name: str, batch: bool) -> dict[str, Any]:
    if not isinstance(features, Mapping) or not features:
        raise ValueError("Missing: features was empty or no dictionary.")
    keys = sorted(features)
    outputs: list[tuple[Any, Any]] = []
    for key in keys:
        outputs += _outputs(key, features[key], batch)

    def call(session: Any, array: Any) -> list[Any]:
        texts = np.asarray(array, object)
        if texts.ndim != batch:
            raise InvalidArgumentError(
                None, None, f"Expected serialized to be a {'vector' if batch else 'scalar'}"
            )
        examples = [_features(text) for text in texts.reshape(-1).tolist()]
        made: list[Any] = []
        for key in keys:
            made += _values(key, features[key], [example.get(key) for example in examples], batch)
        return made

    tensors = host_operation(
        "ParseExample", call, [convert_to_tensor(serialized, string)], outputs=outputs, name=name
    )
    found = iter(tensors if len(outputs) > 1 else [tensors])
    return {
        key: SparseTensor(next(found), next(found), next(found))
        if isinstance(features[key], VarLenFeature)
        else next(found)
        for key in keys
    }


def _outputs(key: str, feature: Any, batch: bool) -> list[tuple[Any, Any]]:
    lead = [None] if batch else []
    if isinstance(feature, VarLenFeature):
        rank = 1 + batch
        return [(int64, [None, rank]), (as_dtype(feature.dtype), [None]), (int64, [rank])]
    if isinstance(feature, FixedLenFeature):
        return [(as_dtype(feature.dtype), [*lead, *TensorShape(feature.shape).as_list()])]
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise ValueError(
                "Unsupported: FixedLenSequenceFeature requires allow_missing to be True."
            )
        return [(as_dtype(feature.dtype), [*lead, None, *TensorShape(feature.shape).as_list()])]
    raise ValueError(f"Invalid feature {key}:{feature!r:.60}")


def _features(content: Any) -> dict[str, Any]:
    try:
        return features_of(content)
    except WeftError as error:
        raise InvalidArgumentError(
            None, None, f"Could not parse example input, value: {content!r:.40} ({error})"
        ) from error


def _values(key: str, feature: Any, found: Sequence[Any], batch: bool) -> list[Any]:
    rows = [_typed(key, feature, values) for values in found]
    if isinstance(feature, VarLenFeature):
        return _sparse(rows, as_dtype(feature.dtype).dtype, batch)
    shape: list[Any] = TensorShape(feature.shape).as_list()
    if isinstance(feature, FixedLenSequenceFeature):
        made = _filled([_row(key, feature, row, [-1, *shape]) for row in rows], feature)
    else:
        made = [_row(key, feature, _or_default(key, feature, row), shape) for row in rows]
    return [np.stack(made) if batch else made[0]]


def _typed(key: str, feature: Any, values: Any) -> Any:
    """Return the values of a feature as an array of its type; None if it is missing."""
    if values is None or len(values) == 0:
        return None
    wanted = as_dtype(feature.dtype)
    kind = string if isinstance(values, list) else as_dtype(values.dtype)
    if kind != wanted:
        raise InvalidArgumentError(
            None,
            None,
            f"Key: {key}.  Data types don't match. Data type: {kind.name} but expected type: "
            f"{wanted.name}",
        )
    return np.array(values, object) if kind == string else values


def _or_default(key: str, feature: FixedLenFeature, row: Any) -> Any:
    if row is not None:
        return row
    if feature.default_value is None:
        raise InvalidArgumentError(
            None,
            None,
            f"Feature: {key} (data type: {as_dtype(feature.dtype).name}) is required but could not "
            "be found.",
        )
    default = constant_array(feature.default_value, feature.dtype)
    shape: list[Any] = TensorShape(feature.shape).as_list()
    return np.broadcast_to(default, shape) if default.ndim == 0 else default


def _row(key: str, feature: Any, row: Any, shape: list[int]) -> Any:
    dtype = as_dtype(feature.dtype).dtype
    values = np.zeros(0, dtype) if row is None else row
    try:
        return values.reshape(shape)
    except ValueError:
        raise InvalidArgumentError(
            None,
            None,
            f"Key: {key}.  Number of {as_dtype(feature.dtype).name} values != expected.  Values "
            f"size: {values.size} but output shape: {shape}",
        ) from None


def _filled(rows: list[Any], feature: FixedLenSequenceFeature) -> list[Any]:
    """Return rows of different lengths, filled up to the longest."""
    longest = max(len(row) for row in rows)
    fill = feature.default_value
    if fill is None:
        fill = b"" if as_dtype(feature.dtype) == string else 0
    made = []
    for row in rows:
        whole = np.full((longest, *row.shape[1:]), fill, row.dtype)
        whole[: len(row)] = row
        made.append(whole)
    return made


def _sparse(rows: Sequence[Any], dtype: np.dtype[Any], batch: bool) -> list[Any]:
    there = [(i, row) for i, row in enumerate(rows) if row is not None]
    longest = max((len(row) for _, row in there), default=0)
    values = np.concatenate([np.zeros(0, dtype), *[row for _, row in there]])
    columns = np.concatenate([np.arange(len(row)) for _, row in there] or [np.zeros(0, int)])
    if not batch:
        return [columns[:, None].astype(np.int64), values, np.array([longest], np.int64)]
    numbers = np.concatenate([np.full(len(row), i) for i, row in there] or [np.zeros(0, int)])
    indices = np.stack([numbers, columns], axis=1).astype(np.int64)
    return [indices, values, np.array([len(rows), longest], np.int64)]


# -- other texts -----------------------------------------------------------------------------------


def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, name: str | None = None, **k: Any
) -> Any:
    """Return bytes as the numbers that they hold."""
    given = convert_to_tensor(k.get("bytes", input_bytes), string)
    kind = as_dtype(out_type)
    order = kind.dtype.newbyteorder("<" if little_endian else ">")

    def call(session: Any, array: Any) -> list[Any]:
        texts = np.asarray(array, object)
        rows = [_numbers(text, order) for text in texts.reshape(-1).tolist()]
        if len({len(row) for row in rows}) > 1:
            raise InvalidArgumentError(
                None, None, "DecodeRaw requires input strings to all be the same size"
            )
        whole = np.stack(rows).astype(kind.dtype) if rows else np.zeros((0, 0), kind.dtype)
        return [whole.reshape(*texts.shape, -1)]

    sizes = given.shape.concatenate([None])
    return host_operation(
        "DecodeRaw", call, [given], outputs=[(kind, sizes)], name=name or "DecodeRaw"
    )


def _numbers(text: bytes, order: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if len(text) % order.itemsize:
        raise InvalidArgumentError(
            None,
            None,
            f"Input to DecodeRaw has length {len(text)} that is not a multiple of "
            f"{order.itemsize}, the size of {order.name}",
        )
    return np.frombuffer(text, order)


def decode_csv(
    records: Any,
    record_defaults: Sequence[Any],
    field_delim: str = ",",
    use_quote_delim: bool = True,
    name: str | None = None,
    na_value: str = "",
    select_cols: Sequence[int] | None = None,
) -> list[Any]:
    """Return the columns of lines of CSV; the type of each is that of its default."""
    given = convert_to_tensor(records, string)
    defaults = [constant_array(default) for default in record_defaults]
    types = [as_dtype(default.dtype) for default in defaults]

    def call(session: Any, array: Any) -> list[Any]:
        texts = np.asarray(array, object)
        rows = [
            _fields(text, field_delim, use_quote_delim, select_cols, len(defaults))
            for text in texts.reshape(-1).tolist()
        ]
        return [
            np.array(
                [_field(row[i], defaults[i], types[i], i, na_value) for row in rows],
                types[i].dtype,
            ).reshape(texts.shape)
            for i in range(len(defaults))
        ]

    made = host_operation(
        "DecodeCSV",
        call,
        [given],
        outputs=[(kind, given.shape) for kind in types],
        name=name or "DecodeCSV",
    )
    return list(made) if len(types) > 1 else [made]


def _fields(text: bytes, delimiter: str, quotes: bool, chosen: Any, count: int) -> list[str]:
    lines = io.StringIO(text.decode("utf-8", "surrogateescape"))
    reader = csv.reader(
        lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )
    found = next(reader, [])
    if chosen is not None:
        found = [found[i] for i in chosen if i < len(found)]
    if len(found) != count:
        raise InvalidArgumentError(
            None, None, f"Expect {count} fields but have {len(found)} in record {text!r:.60}"
        )
    return found


def _field(text: str, default: Any, kind: Any, column: int, missing: str) -> Any:
    if text == missing or not text:
        if default.size == 0:
            raise InvalidArgumentError(
                None, None, f"Field {column} is required but missing in record!"
            )
        return default.reshape(-1)[0]
    if kind == string:
        return text.encode("utf-8", "surrogateescape")
    try:
        return kind.dtype.type(text.strip())
    except (ValueError, OverflowError):
        raise InvalidArgumentError(
            None, None, f"Field {column} in record is not a valid {kind.name}: {text!r:.60}"
        ) from None


def string_to_number(string_tensor: Any, out_type: Any = float32, name: str | None = None) -> Any:
    """Return texts as the numbers that they say."""
    given = convert_to_tensor(string_tensor, string)
    kind = as_dtype(out_type)

    def call(session: Any, array: Any) -> list[Any]:
        texts = np.asarray(array, object)
        try:
            numbers = [kind.dtype.type(text.decode()) for text in texts.reshape(-1).tolist()]
        except (ValueError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                None, None, f"StringToNumberOp could not correctly convert string: {error}"
            ) from None
        return [np.array(numbers, kind.dtype).reshape(texts.shape)]

    return host_operation("StringToNumber", call, [given], outputs=[(kind, given.shape)], name=name)


_MODES = {0: "RGB", 1: "L", 3: "RGB", 4: "RGBA"}


def decode_image(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None, **others: Any
) -> Any:
    """Return the picture in an encoded file as bytes, (height, width, channels)."""
    count = channels or 0
    if count not in _MODES or as_dtype(dtype) != uint8:
        raise ValueError(f"channels must be in (0, 1, 3, 4), and dtype uint8. Received: {channels}")

    def call(session: Any, array: Any) -> list[Any]:
        text = np.asarray(array, object).item()
        try:
            found = pixels_of(io.BytesIO(text), _MODES[count], "contents")
        except WeftError as error:
            raise InvalidArgumentError(None, None, str(error)) from error
        return [found if found.ndim == 3 else found[:, :, None]]

    return host_operation(
        "DecodeImage",
        call,
        [convert_to_tensor(contents, string)],
        outputs=[(uint8, [None, None, count or 3])],
        name=name or "DecodeImage",
    )


def decode_jpeg(contents: Any, channels: int = 0, *args: Any, **others: Any) -> Any:
    """Return the picture in a JPEG file."""
    return decode_image(contents, channels, name=others.get("name") or "DecodeJpeg")


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Any:
    """Return the picture in a PNG file."""
    return decode_image(contents, channels, dtype, name or "DecodePng")


def decode_gif(contents: Any, name: str | None = None) -> Any:
    """Refuse several frames; say what to use."""
    raise NotImplementedError("decode_gif: use tf.image.decode_image, which gives the first frame")
