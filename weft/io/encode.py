"""Nested states as JSON: arrays are taken out and named, everything else becomes JSON.

What JSON has is written as it is. What it lacks is an object with the key "$": tuples, keys that
are no strings, NaN and infinities, and the places where arrays stood.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor, wrap
from .errors import FileFormatError
from .spans import ArrayPart
from .tensorfile import Array, as_array

TAG: Final = "$"
_MAX_DEPTH: Final = 100  # the JSON reader's own recursion must not be the limit


def encode_state(state: Any) -> tuple[Any, dict[str, Array]]:
    """Return a state as JSON data and the arrays that stood in it, by name."""
    encoder = _Encoder()
    return encoder.encode(state, ()), encoder.arrays


def encode_parts(state: Any) -> tuple[Any, dict[str, Array], dict[str, ArrayPart]]:
    """Return the same of a state that may hold parts of arrays, with those parts by name."""
    encoder = _Encoder(parts=True)
    return encoder.encode(state, ()), encoder.arrays, encoder.parts


def decode_state(data: Any, arrays: Mapping[str, Array]) -> Any:
    """Return the state that `encode_state` took apart."""
    try:
        return _decode(data, arrays)
    except RecursionError:
        raise FileFormatError("the state is nested too deeply to be one of Weft's") from None


def encode_plain(value: Any, what: str) -> Any:
    """Return a value without tensors as JSON data; `what` names it in errors."""
    data, arrays = encode_state(value)
    if arrays:
        raise ArgumentTypeError(
            f"{what} may hold only numbers, strings, lists, tuples and dictionaries; it holds an "
            f"array at {next(iter(arrays))!r}: use float(x) or x.tolist()"
        )
    return data


def dump(data: Any) -> bytes:
    """Return JSON data as text, the same for the same data."""
    return json.dumps(data, allow_nan=False, ensure_ascii=True, separators=(",", ":")).encode()


def parse(text: bytes | str, what: str) -> Any:
    """Return the JSON data in a text; `what` names it in errors."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # ValueError: also of the encoding
        raise FileFormatError(f"{what} does not hold valid JSON: {error}") from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


class _Encoder:
    """Walks a state and collects its arrays."""

    def __init__(self, *, parts: bool = False) -> None:
        self.arrays: dict[str, Array] = {}
        self.parts: dict[str, ArrayPart] = {}
        self._takes_parts = parts
        self._names: dict[int, str] = {}  # id of a stored array -> its name

    def encode(self, value: Any, path: tuple[str, ...]) -> Any:
        if len(path) > _MAX_DEPTH:
            raise ArgumentError(
                f"the state is nested more than {_MAX_DEPTH} levels deep at {_shown(path[:5])}...; "
                "does it contain itself?"
            )
        if value is None or isinstance(value, bool | int | str):
            return _plain(value)
        if isinstance(value, float):
            return _encode_float(float(value))
        if isinstance(value, np.generic):
            return self.encode(_python_scalar(value, path), path)
        if isinstance(value, Tensor | np.ndarray):
            return self._encode_array(value, path)
        if isinstance(value, ArrayPart) and self._takes_parts:
            return self._encode_part(value, path)
        return self._encode_container(value, path)

    def _encode_container(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, Mapping):
            return self._encode_mapping(value, path)
        if isinstance(value, list | tuple):
            items = [self.encode(item, (*path, str(i))) for i, item in enumerate(value)]
            return items if isinstance(value, list) else {TAG: "tuple", "items": items}
        raise ArgumentTypeError(
            f"the state holds a {type(value).__name__} at {_shown(path)}; it may hold tensors, "
            "arrays, numbers, strings, None, lists, tuples and dictionaries"
        )

    def _encode_mapping(self, value: Mapping[Any, Any], path: tuple[str, ...]) -> Any:
        for key in value:
            if isinstance(key, bool) or not isinstance(key, str | int):
                raise ArgumentTypeError(
                    f"keys of a state must be strings or integers. Received: {key!r} of type "
                    f"{type(key).__name__} at {_shown(path)}"
                )
        items = [(key, self.encode(item, (*path, str(key)))) for key, item in value.items()]
        if TAG not in value and all(isinstance(key, str) for key in value):
            return dict(items)
        return {TAG: "dict", "items": [list(item) for item in items]}

    def _encode_array(self, value: Any, path: tuple[str, ...]) -> Any:
        is_tensor = isinstance(value, Tensor)
        # Tensors are values, so two that share a buffer may be stored once; arrays are not.
        stored = value._value if is_tensor else value
        name = self._names.get(id(stored)) if is_tensor else None
        if name is None:
            name = self._free_name(".".join(path))
            self.arrays[name] = as_array(name, value)
            if is_tensor and self.arrays[name] is stored:  # the dictionary keeps it, and its id
                self._names[id(stored)] = name
        return {TAG: "tensor" if is_tensor else "array", "name": name}

    def _encode_part(self, part: ArrayPart, path: tuple[str, ...]) -> Any:
        name = self._free_name(".".join(path))
        self.parts[name] = part
        is_tensor = isinstance(part.values, Tensor)
        return {TAG: "tensor" if is_tensor else "array", "name": name}

    def _free_name(self, name: str) -> str:
        """Return a name not yet taken: {"a.b": x, "a": {"b": y}} gives two of the same path."""
        free, count = name, 1
        while free in self.arrays or free in self.parts or free == "__metadata__":
            count += 1
            free = f"{name}~{count}"
        return free


def _plain(value: Any) -> Any:
    """Return a subclass (an IntEnum, say) as the builtin it extends."""
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else str(value)


def _python_scalar(value: np.generic, path: tuple[str, ...]) -> Any:
    number = value.item()
    if not isinstance(number, bool | int | float | str):
        raise ArgumentTypeError(f"the state holds a {value.dtype} scalar at {_shown(path)}")
    return number


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {TAG: "float", "value": str(value)}


def _shown(path: tuple[str, ...]) -> str:
    return "state" + "".join(f"[{key!r}]" for key in path)


# -- decoding --------------------------------------------------------------------------------------


def _decode(data: Any, arrays: Mapping[str, Array]) -> Any:
    if isinstance(data, list):
        return [_decode(item, arrays) for item in data]
    if not isinstance(data, dict):
        return data
    if TAG not in data:
        return {key: _decode(item, arrays) for key, item in data.items()}
    try:
        return _DECODERS[data[TAG]](data, arrays)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(f"the state holds an unknown entry: {data!r:.80}") from None


def _decode_tuple(data: dict[str, Any], arrays: Mapping[str, Array]) -> Any:
    return tuple(_decode(item, arrays) for item in data["items"])


def _decode_dict(data: dict[str, Any], arrays: Mapping[str, Array]) -> Any:
    return {key: _decode(item, arrays) for key, item in data["items"]}


def _decode_float(data: dict[str, Any], _: Mapping[str, Array]) -> Any:
    return float(data["value"])


def _decode_tensor(data: dict[str, Any], arrays: Mapping[str, Array]) -> Any:
    return wrap(_stored(data, arrays))


def _decode_array(data: dict[str, Any], arrays: Mapping[str, Array]) -> Any:
    return _stored(data, arrays).copy()


def _stored(data: dict[str, Any], arrays: Mapping[str, Array]) -> Array:
    if data["name"] not in arrays:
        raise FileFormatError(f"the state names an array that is not there: {data['name']!r}")
    return arrays[data["name"]]


_DECODERS: Final[dict[str, Callable[[dict[str, Any], Mapping[str, Array]], Any]]] = {
    "tuple": _decode_tuple,
    "dict": _decode_dict,
    "float": _decode_float,
    "tensor": _decode_tensor,
    "array": _decode_array,
}
