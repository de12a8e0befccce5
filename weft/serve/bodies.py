"""Bodies of requests: from bytes to columns of items.

JSON              {"inputs": [item, ...]}, by name {"inputs": {"a": [...], "b": [...]}}, or
                  {"input": item} for one item alone
x-npy             an array with items along its first axis
octet-stream      its bytes, with the headers X-Weft-Dtype and X-Weft-Shape
x-safetensors     an array for each input, by name

Whatever is wrong is the client's to know: each error says what was received and what is expected.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..core.dtype import Array, as_dtype, check_dtype, is_float
from ..core.errors import ShapeError, WeftError
from ..core.imports import require
from ..core.operands import array_in
from ..core.tensor import Tensor
from ..data.numpyfile import parse_npy
from ..graph.feeds import as_feed
from ..graph.node import Value
from .errors import RequestError
from .model import Item, ServedModel

JSON, NPY, RAW = "application/json", "application/x-npy", "application/octet-stream"
SAFETENSORS = "application/x-safetensors"
DTYPE, SHAPE = "x-weft-dtype", "x-weft-shape"
ENCODING, PLAIN = "content-encoding", "identity"
_MOST_AXES = 32
_KEYS = ("input", "inputs")
# What `curl -d` says of any text is no type that a model could be given by.
_JSON_KINDS = frozenset((JSON, "", "application/x-www-form-urlencoded"))


class Columns(NamedTuple):
    """Items of a request: an array for each input; alone if it was one that is no list."""

    arrays: list[Array]
    alone: bool


def parse_body(model: ServedModel, body: bytes, headers: Mapping[str, str]) -> Columns:
    """Return the items of a body, ready for the model."""
    kind = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if headers.get(ENCODING, PLAIN).strip().lower() != PLAIN:
        raise RequestError(
            415,
            f"a body with Content-Encoding {headers[ENCODING]:.40} is not understood: send it as "
            "it is",
        )
    try:
        if kind in _JSON_KINDS:
            return _from_json(model, body)
        if kind in model.readers:
            return Columns(_from_items(model, model.readers[kind](body)), False)
        parse = _ARRAYS.get(kind)
        if parse is None:
            raise RequestError(415, _unknown_kind(model, kind))
        arrays = parse(model.inputs, body, headers)
        return Columns(_prepared(model, arrays), False)
    except WeftError as error:
        raise RequestError(400, _plain(error)) from error


def body_reader(
    model: ServedModel, headers: Mapping[str, str], length: int
) -> Callable[[bytes], Columns]:
    """Return what reads bodies of a length that come with such headers.

    The bytes of an array are as the headers say, so what they say is looked at once.
    """
    kind = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind == RAW and model.prepare is None and ENCODING not in headers:
        with suppress(RequestError, WeftError):  # which each of the requests is told
            return _raw_reader(model, headers, length)
    return partial(parse_body, model, headers=headers)


def body_kinds(model: ServedModel) -> list[str]:
    """Return the types of bodies that a model takes."""
    return [JSON, *_ARRAYS, *model.readers]


def _unknown_kind(model: ServedModel, kind: str) -> str:
    known = ", ".join(body_kinds(model))
    return f"a body of type {kind:.80} is not understood. Expected one of: {known}"


def _plain(error: WeftError) -> str:
    return str(error).removeprefix("predict: ")


# -- JSON ------------------------------------------------------------------------------------------


def _from_json(model: ServedModel, body: bytes) -> Columns:
    parsed = _parsed(body)
    key = _the_key(parsed)
    data, alone = parsed[key], key == "input"
    inputs = model.inputs
    items = [data] if alone else data
    if model.items_of and isinstance(items, list) and items and isinstance(items[0], dict | str):
        return Columns(_from_items(model, model.items_of(items)), alone)
    by_name = isinstance(data, dict) and (len(inputs) > 1 or inputs[0].name in data)
    if len(inputs) > 1 and not by_name:
        names = ", ".join(value.name for value in inputs)
        raise _bad(f"the model has the inputs {names}: give {key!r} as an object with these names")
    given = _by_name(inputs, data) if by_name else [data]
    arrays = [
        _json_array(model, value, [one] if alone else one, alone)
        for value, one in zip(inputs, given, strict=True)
    ]
    return Columns(_prepared(model, arrays), alone)


def _parsed(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body, parse_constant=_refuse_constant)
    except RequestError:
        raise
    except UnicodeDecodeError as error:
        raise _bad(f"the body is no UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise _bad("the body is nested too deeply") from None
    except ValueError as error:
        shown = f"{error}" if body else "it is empty"
        raise _bad(f'the body is no JSON: {shown}. Expected: {{"inputs": [item, ...]}}') from None
    if not isinstance(parsed, dict):
        raise _bad(
            f'the body must be an object, {{"inputs": [item, ...]}} or {{"input": item}}. '
            f"Received: {_named(parsed)}"
        )
    return parsed


def _refuse_constant(name: str) -> NoReturn:
    raise _bad(f"{name} is no JSON; send numbers that are not finite in a binary body ({NPY})")


def _the_key(parsed: Mapping[str, Any]) -> str:
    found = [key for key in _KEYS if key in parsed]
    unknown = [key for key in parsed if key not in _KEYS]
    if len(found) != 1 or unknown:
        shown = ", ".join(map(repr, [*parsed][:8])) or "nothing"
        raise _bad(
            "the object must have either 'inputs', a list of items, or 'input', one item, and "
            f"nothing else. Received: {shown:.200}"
        )
    return found[0]


def _by_name(inputs: Sequence[Value], data: Mapping[str, Any]) -> list[Any]:
    names = [value.name for value in inputs]
    missing = [name for name in names if name not in data]
    unknown = [name for name in data if name not in names]
    if missing or unknown:
        wrong = f"{missing[0]!r} is missing" if missing else f"{unknown[0]!r:.60} is unknown"
        raise _bad(f"the model has the inputs {', '.join(names)}: {wrong}")
    return [data[name] for name in names]


def _json_array(model: ServedModel, value: Value, data: Any, alone: bool) -> Array:
    if not isinstance(data, list):
        raise _bad(
            f"'inputs' must be a list of items, each {_item_text(value)}. Received: "
            f"{_named(data)}; one item alone goes as 'input'"
        )
    if not data:
        raise _bad("there are no items: 'inputs' is empty")
    if model.prepare is not None:
        array = array_in(data, value.dtype, f"the value for {value.name}")
    else:
        array = _fed(value, data, alone)
    # 1e999 is written as a number and read as infinity.
    if is_float(value.dtype) and not np.isfinite(array).all():
        raise _bad(f"{value.name} holds a number beyond {value.dtype}; JSON has finite numbers")
    return array


def _named(data: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", type(None): "null"}
    return f"{names.get(type(data), type(data).__name__)} {data!r:.40}"


# -- binary ----------------------------------------------------------------------------------------


def _from_npy(inputs: Sequence[Value], body: bytes, headers: Mapping[str, str]) -> list[Array]:
    _check_single(inputs, NPY)
    return [parse_npy(body, "the body")]


def _from_raw(inputs: Sequence[Value], body: bytes, headers: Mapping[str, str]) -> list[Array]:
    _check_single(inputs, RAW)
    dtype, shape = _raw_dtype(inputs[0], headers), _raw_shape(inputs[0], headers)
    expected = math.prod(shape) * dtype.itemsize
    if expected != len(body):
        raise _bad(
            f"an array of shape {shape} of {dtype} takes {expected} bytes. Received: {len(body)}"
        )
    return [np.frombuffer(body, dtype).reshape(shape)]


def _raw_reader(
    model: ServedModel, headers: Mapping[str, str], length: int
) -> Callable[[bytes], Columns]:
    _check_single(model.inputs, RAW)
    value = model.inputs[0]
    dtype, shape = _raw_dtype(value, headers), _raw_shape(value, headers)
    if dtype != value.dtype or math.prod(shape) * dtype.itemsize != length:
        raise _bad("numbers that are cast, or too few of them")
    _prepared(model, [np.broadcast_to(np.zeros((), dtype), shape)])
    return lambda body: Columns([np.frombuffer(body, dtype).reshape(shape)], False)


def _raw_dtype(value: Value, headers: Mapping[str, str]) -> Any:
    given = headers.get(DTYPE)
    if given is None:
        return value.dtype
    try:
        return check_dtype(as_dtype(given))
    except WeftError:
        raise _bad(
            f"X-Weft-Dtype must name a dtype of numbers, e.g. {value.dtype.name}. "
            f"Received: {given!r:.60}"
        ) from None


def _raw_shape(value: Value, headers: Mapping[str, str]) -> tuple[int, ...]:
    given = headers.get(SHAPE)
    if given is None:
        example = _example_shape(value)
        raise _bad(f"a body of type {RAW} needs the header X-Weft-Shape, e.g. {example}")
    parts = given.strip("()[] ").split(",")
    sizes = [part.strip() for part in parts if part.strip()]
    if len(sizes) > _MOST_AXES or not all(s.isascii() and s.isdigit() for s in sizes):
        example = _example_shape(value)
        raise _bad(f"X-Weft-Shape must be sizes, e.g. {example}. Received: {given!r:.60}")
    return tuple(int(size[:20]) for size in sizes)


def _example_shape(value: Value) -> str:
    return ",".join("8" if i == 0 else str(size) for i, size in enumerate(value.shape))


def _from_safetensors(
    inputs: Sequence[Value], body: bytes, headers: Mapping[str, str]
) -> list[Array]:
    numpy = require("safetensors.numpy", "io", f"a body of type {SAFETENSORS}")
    try:
        arrays = numpy.load(body)
    except Exception as error:  # its own class, and KeyError for dtypes that NumPy lacks
        raise _bad(f"the body is no safetensors file: {error!s:.120}") from None
    return _by_name(inputs, arrays)


def _check_single(inputs: Sequence[Value], kind: str) -> None:
    if len(inputs) > 1:
        names = ", ".join(value.name for value in inputs)
        raise _bad(
            f"a body of type {kind} is one array, and the model has the inputs {names}: send "
            f"{SAFETENSORS} or JSON"
        )


_Parse = Callable[[Sequence[Value], bytes, Mapping[str, str]], list[Array]]
_ARRAYS: dict[str, _Parse] = {NPY: _from_npy, RAW: _from_raw, SAFETENSORS: _from_safetensors}


# -- items for the model ---------------------------------------------------------------------------


def _prepared(model: ServedModel, arrays: list[Array]) -> list[Array]:
    """Return columns as the model takes them: items prepared one by one, if that is to be."""
    _check_counts(model.inputs, arrays)
    if model.prepare is None:
        pairs = zip(model.inputs, arrays, strict=True)
        return [_fed(value, array, False) for value, array in pairs]
    return _from_items(model, [tuple(items) for items in zip(*arrays, strict=True)])


def _from_items(model: ServedModel, items: Sequence[Item]) -> list[Array]:
    if not items:
        raise _bad("there are no items in the body")
    ready = items if model.prepare is None else [model.prepare(item) for item in items]
    inputs = model.inputs
    if len(ready[0]) != len(inputs):
        raise _bad(f"the model has {len(inputs)} inputs. Received: {len(ready[0])}")
    columns = zip(*[[_array(part) for part in item] for item in ready], strict=True)
    return [
        _fed(value, _stacked(value, parts), False)
        for value, parts in zip(inputs, columns, strict=True)
    ]


def _array(part: Any) -> Array:
    return part.numpy() if isinstance(part, Tensor) else np.asarray(part)


def _stacked(value: Value, parts: Sequence[Array]) -> Array:
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise _bad(
            f"the items of a request must have one shape. Received: {sorted(shapes)} for "
            f"{value.name}; send them in requests of their own"
        )
    return np.stack(parts)


def _check_counts(inputs: Sequence[Value], arrays: Sequence[Array]) -> None:
    counts = {array.shape[:1] for array in arrays}
    if () in counts or len(counts) > 1:
        shown = ", ".join(f"{v.name} {a.shape}" for v, a in zip(inputs, arrays, strict=True))
        raise _bad(f"arrays must have one row for each item. Received: {shown}")
    if counts == {(0,)}:
        raise _bad("there are no items in the body: the first axis has size 0")


def _fed(value: Value, data: Any, alone: bool) -> Array:
    """Return data in the dtype and a shape of an input."""
    try:
        return as_feed(value, data, "predict")
    except WeftError as error:
        hint = ""
        if alone:  # the shape that is named has the axis of items, which one alone lacks
            hint = f"; an item is {_item_text(value)}"
        elif isinstance(error, ShapeError) and _rank(data) == len(value.shape) - 1:
            hint = "; one item alone goes as {'input': item}"
        raise _bad(f"{_plain(error)}{hint}") from error


def _rank(data: Any) -> int:
    """Return how many axes an array has, or a nest of lists seems to have."""
    if isinstance(data, np.ndarray):
        return data.ndim
    return 1 + _rank(data[0]) if isinstance(data, list) and data else 0


def _item_text(value: Value) -> str:
    shape = ", ".join(map(str, value.shape[1:]))
    return f"{value.dtype.name}[{shape}]"


def _bad(message: str) -> RequestError:
    return RequestError(400, message)
