"""Answers: in JSON numbers that JSON has, in binary the arrays themselves."""

import json
from io import BytesIO

import numpy as np
import pytest
import safetensors.numpy

from weft.serve.answers import answer_kind, error_answer, format_outputs, json_answer
from weft.serve.errors import RequestError
from weft.serve.model import ServedModel, served_model

Y = np.array([[1.5, -2.0], [0.1, 3.0]], np.float32)


def model_of(outputs, **hooks):
    model = served_model(lambda x: x, inputs=((2,), "float32"))
    model.program.outputs = outputs
    return ServedModel(model.program, **hooks)


def answer(outputs, kind="application/json", alone=False, top=1, names=None, **hooks):
    names = names or [f"output{i}" for i in range(len(outputs))]
    return format_outputs(model_of(names, **hooks), outputs, kind=kind, alone=alone, top=top)


def said(*args, **options):
    return json.loads(answer(*args, **options).body)


def test_json():
    assert said([Y]) == {"outputs": Y.tolist()}
    assert said([Y[:1]], alone=True) == {"output": Y[0].tolist()}
    two = said([Y, Y[:, 0] > 1], names=["a", "b"])
    assert two == {"outputs": {"a": Y.tolist(), "b": [True, False]}}


def test_numbers_that_json_lacks_are_strings():
    strange = np.array([[np.nan, np.inf, -np.inf, 1.0]])
    content = answer([strange]).body.decode()
    assert json.loads(content, parse_constant=pytest.fail) == {
        "outputs": [["NaN", "Infinity", "-Infinity", 1.0]]
    }


def test_rows_of_runs():
    rows = lambda outputs, top: [{"label": top, "class": "é"} for _ in outputs[0]]  # noqa: E731  (short)
    assert said([Y], rows_of=rows, top=3) == {"predictions": [{"label": 3, "class": "é"}] * 2}
    assert said([Y[:1]], rows_of=rows, alone=True) == {"prediction": {"label": 1, "class": "é"}}


def test_binary():
    found = answer([Y], "application/x-npy")
    np.testing.assert_array_equal(np.load(BytesIO(found.body)), Y)
    found = answer([Y], "application/octet-stream")
    assert dict(found.headers)[b"x-weft-shape"] == b"2,2"
    assert dict(found.headers)[b"x-weft-dtype"] == b"float32"
    np.testing.assert_array_equal(np.frombuffer(found.body, np.float32).reshape(2, 2), Y)
    found = answer([Y, Y.T], "application/x-safetensors", names=["a", "b"])
    loaded = safetensors.numpy.load(found.body)
    np.testing.assert_array_equal(loaded["b"], Y.T)
    with pytest.raises(RequestError, match="is one array, and the model has the outputs a, b"):
        answer([Y, Y], "application/x-npy", names=["a", "b"])


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html, application/x-npy;q=0.9, */*", "application/x-npy"),
        ("APPLICATION/OCTET-STREAM", "application/octet-stream"),
    ],
)
def test_what_is_accepted(accept, kind):
    assert answer_kind(accept) == kind


def test_what_cannot_be_given():
    with pytest.raises(RequestError, match="no answer of type text/html can be given") as caught:
        answer_kind("text/html")
    assert caught.value.status == 406


def test_errors_and_their_headers():
    found = error_answer(RequestError(503, "busy", {"retry-after": "2"}))
    assert found.status == 503
    assert json.loads(found.body) == {"error": "busy", "status": 503}
    assert (b"retry-after", b"2") in found.headers
    assert dict(found.headers)[b"content-length"] == str(len(found.body)).encode()


def test_text_that_is_no_unicode_does_not_break_an_error():
    assert json_answer(400, {"error": "\udcff"}).status == 400
