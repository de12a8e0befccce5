"""Answers: outputs as JSON or as arrays, and errors as JSON.

JSON knows finite numbers only; others are the strings "NaN", "Infinity" and "-Infinity".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import numpy as np

from ..core.dtype import Array, DType
from ..core.imports import require
from .bodies import JSON, NPY, RAW, SAFETENSORS
from .errors import RequestError
from .model import ServedModel

ANSWER_KINDS = (JSON, NPY, RAW, SAFETENSORS)
_ANY = frozenset(("", "*/*", "application/*"))


class Answer(NamedTuple):
    """What is sent: the status, headers in small letters, and the body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


class AnswerForm(NamedTuple):
    """What a client asks for: the type of the answer, and how many classes of each item."""

    kind: str
    top: int

    def answer(self, model: ServedModel, outputs: Sequence[Array], alone: bool) -> Answer:
        """Return outputs in this form; alone if the request held an item that is no list."""
        return format_outputs(model, outputs, kind=self.kind, alone=alone, top=self.top)


def answer_form(headers: Mapping[str, str], query: str) -> AnswerForm:
    """Return the form of an answer that a request's headers and query ask for."""
    return AnswerForm(answer_kind(headers.get("accept", "")), _top(query))


def format_outputs(
    model: ServedModel, outputs: Sequence[Array], *, kind: str, alone: bool, top: int
) -> Answer:
    """Return the answer to a request for predictions, in a form that `answer_kind` chose."""
    if kind == JSON:
        return json_answer(200, _json_outputs(model, outputs, alone, top))
    names = model.program.outputs
    if kind == SAFETENSORS:
        save = require("safetensors.numpy", "io", f"an answer of type {SAFETENSORS}").save
        arrays = {n: np.ascontiguousarray(a) for n, a in zip(names, outputs, strict=True)}
        return _answer(kind, save(arrays))
    if len(outputs) > 1:
        raise RequestError(
            406,
            f"an answer of type {kind} is one array, and the model has the outputs "
            f"{', '.join(names)}: accept {SAFETENSORS} or {JSON}",
        )
    return _npy(outputs[0]) if kind == NPY else _raw(outputs[0])


def answer_kind(accept: str) -> str:
    """Return the type of the answer that the header Accept asks for."""
    wanted = [part.partition(";")[0].strip().lower() for part in accept.split(",")]
    for kind in wanted:
        if kind in ANSWER_KINDS:
            return kind
        if kind in _ANY:
            return JSON
    known = ", ".join(ANSWER_KINDS)
    raise RequestError(406, f"no answer of type {accept:.80} can be given, only: {known}")


def _top(query: str) -> int:
    """Return how many classes of each item are asked for: ?top=3."""
    if not query:
        return 1
    found = parse_qs(query).get("top", ["1"])[-1]
    if not (found.isascii() and found.isdigit() and int(found[:9]) >= 1):
        raise RequestError(400, f"top must be a number from 1. Received: {found!r:.40}")
    return int(found[:9])


def error_answer(error: RequestError) -> Answer:
    """Return the answer that tells an error."""
    answer = json_answer(error.status, {"error": error.message, "status": error.status})
    extra = [(name.encode(), value.encode()) for name, value in error.headers.items()]
    return answer._replace(headers=answer.headers + extra)


def json_answer(status: int, content: Any) -> Answer:
    """Return something as an answer in JSON."""
    try:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False)
    return _answer(JSON, text.encode("utf-8", "replace"))._replace(status=status)


def _json_outputs(
    model: ServedModel, outputs: Sequence[Array], alone: bool, top: int
) -> dict[str, Any]:
    if model.rows_of is not None:
        rows = model.rows_of(outputs, top)
        return {"prediction": rows[0]} if alone else {"predictions": rows}
    lists = [_as_list(output[0] if alone else output) for output in outputs]
    said = lists[0] if len(lists) == 1 else dict(zip(model.program.outputs, lists, strict=True))
    return {"output" if alone else "outputs": said}


def _as_list(array: Array) -> Any:
    known = array.dtype.kind in "biuf"
    return (array if known else array.astype(np.float32)).tolist()  # bfloat16 is no kind of NumPy's


def _finite(content: Any) -> Any:
    """Return content with strings in place of numbers that JSON lacks."""
    if isinstance(content, float) and not math.isfinite(content):
        return "NaN" if math.isnan(content) else "Infinity" if content > 0 else "-Infinity"
    if isinstance(content, list):
        return [_finite(one) for one in content]
    if isinstance(content, dict):
        return {key: _finite(one) for key, one in content.items()}
    return content


def _npy(array: Array) -> Answer:
    file = BytesIO()
    np.save(file, array, allow_pickle=False)
    return _answer(NPY, file.getvalue())


def _raw(array: Array) -> Answer:
    return Answer(200, _raw_headers(array.dtype, array.shape), array.tobytes())


@lru_cache(256)
def _raw_headers(dtype: DType, shape: tuple[int, ...]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an array's bytes: to say them takes longer than to copy the bytes."""
    length = math.prod(shape) * dtype.itemsize
    return [
        (b"content-type", RAW.encode()),
        (b"content-length", str(length).encode()),
        (b"x-weft-dtype", dtype.name.encode()),
        (b"x-weft-shape", ",".join(map(str, shape)).encode()),
    ]


def _answer(kind: str, body: bytes) -> Answer:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    return Answer(200, headers, body)
