"""Bodies of all kinds, right and wrong: each mistake has a message that names it."""

import json
from io import BytesIO

import numpy as np
import pytest
import safetensors.numpy

import weft as wf
from weft.serve.bodies import body_reader, parse_body
from weft.serve.errors import RequestError
from weft.serve.model import ServedModel, served_model
from weft.serve.programs import ModuleProgram, input_values

ONE = served_model(lambda x: x, inputs=((2,), "float32"))
TWO = served_model(lambda a, b: a, inputs={"a": ((2,), "float32"), "b": ((), "int64")})
FLAG = served_model(lambda x: x, inputs=((1,), "bool"))
PREPARED = ServedModel(
    ModuleProgram(lambda x: x, input_values(((2,), "float32"))),
    prepare=lambda item: (np.ravel(item[0]) * 10,),
    readers={"text/x-pairs": lambda body: [(np.array([1.0, 2.0]),) for _ in body.split()]},
    items_of=lambda items: [(np.array([len(item), 0.0]),) for item in items],
)


def npy(array, **options):
    file = BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def parse(model, body, kind="application/json", **headers):
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return parse_body(model, body, {"content-type": kind, **named})


def raw(array, shape=None, **headers):
    given = {"x_weft_shape": ",".join(map(str, shape or array.shape)), **headers}
    return parse(ONE, array.tobytes(), "application/octet-stream", **given)


def test_json():
    columns, alone = parse(ONE, {"inputs": [[1, 2], [3.5, -4]]})
    assert not alone
    assert columns[0].dtype == np.float32
    assert columns[0].tolist() == [[1, 2], [3.5, -4]]
    columns, alone = parse(ONE, {"input": [1, 2]})
    assert alone
    assert columns[0].shape == (1, 2)
    assert parse(ONE, {"inputs": {"input": [[1, 2]]}}).arrays[0].shape == (1, 2)
    assert parse(ONE, b'{"input": [1, 2]}', "").alone
    assert parse(ONE, b'{"input": [1, 2]}', "application/x-www-form-urlencoded").alone


def test_json_by_name():
    (a, b), alone = parse(TWO, {"inputs": {"b": [1, 2], "a": [[1, 2], [3, 4]]}})
    assert (a.shape, b.tolist(), alone) == ((2, 2), [1, 2], False)
    (a, b), alone = parse(TWO, {"input": {"b": 5, "a": [1, 2]}})
    assert (a.shape, b.tolist(), alone) == ((1, 2), [5], True)


def test_binary():
    x = np.array([[1, 2], [3, np.nan]], np.float32)
    np.testing.assert_array_equal(parse(ONE, npy(x), "application/x-npy").arrays[0], x)
    np.testing.assert_array_equal(
        parse(ONE, npy(np.asfortranarray(x)), "application/x-npy")[0][0], x
    )
    wide = parse(ONE, npy(x.astype(np.float64)), "Application/X-NPY; v=1").arrays[0]
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(raw(x).arrays[0], x)
    np.testing.assert_array_equal(raw(x.astype(np.float64), x_weft_dtype="float64")[0][0], x)
    body = safetensors.numpy.save({"a": x, "b": np.array([1, 2])})
    (a, b), _ = parse(TWO, body, "application/x-safetensors")
    np.testing.assert_array_equal(a, x)
    assert b.tolist() == [1, 2]


def test_items_are_prepared_one_by_one():
    assert parse(PREPARED, {"inputs": [[[1], [2]]]}).arrays[0].tolist() == [[10, 20]]
    assert parse(PREPARED, npy(np.ones((3, 2))), "application/x-npy").arrays[0].shape == (3, 2)
    assert parse(PREPARED, b"a b c", "text/x-pairs").arrays[0].tolist() == [[10, 20]] * 3
    assert parse(PREPARED, {"inputs": ["ab", "c"]}).arrays[0].tolist() == [[20, 0], [10, 0]]
    assert parse(PREPARED, {"input": {"a": 1}})[0][0].tolist() == [[10, 0]]


BAD_JSON = [
    (ONE, b"", "it is empty"),
    (ONE, b"{", "the body is no JSON"),
    (ONE, b"\xff\xfe{}", "no UTF-8|no JSON"),
    (ONE, b'{"input": [NaN, 1]}', "NaN is no JSON; send numbers that are not finite in a binary"),
    (ONE, b'{"input": [-Infinity, 1]}', "-Infinity is no JSON"),
    (ONE, b'{"input": [1e999, 1]}', "a number beyond float32"),
    (ONE, b'{"input": [1e39, 1]}', "does not fit in float32|beyond float32"),
    (ONE, b"[" * 100_000, "nested too deeply"),
    (ONE, b'{"input": [' + b"1" * 5000 + b", 1]}", "digits|beyond|no JSON"),
    (ONE, [1, 2], "must be an object.*Received: a list"),
    (ONE, "text", "Received: a string"),
    (ONE, {}, "either 'inputs', a list of items, or 'input'.*Received: nothing"),
    (ONE, {"input": [1, 2], "inputs": []}, "either 'inputs'"),
    (ONE, {"inputs": [[1, 2]], "x": 1}, "nothing else. Received: 'inputs', 'x'"),
    (ONE, {"inputs": []}, "'inputs' is empty"),
    (ONE, {"inputs": 3}, "must be a list of items, each float32\\[2\\]. Received: int 3"),
    (ONE, {"inputs": [1, 2]}, r"shape \(2,\); one item alone goes as"),
    (ONE, {"input": [1, 2, 3]}, r"shape \(1, 3\); an item is float32\[2\]"),
    (ONE, {"inputs": [[1, 2], [3]]}, "ragged"),
    (ONE, {"inputs": [["a", "b"]]}, "must hold numbers"),
    (ONE, {"inputs": [[True, False]]}, "bool"),
    (ONE, {"inputs": [[None, 1]]}, "must hold numbers"),
    (ONE, {"inputs": [[2**70, 1]]}, "beyond 64 bits"),
    (ONE, {"inputs": [{"a": 1}]}, "must hold numbers"),
    (FLAG, {"inputs": [[1]]}, "say which values are true"),
    (TWO, {"inputs": [[1, 2]]}, "the inputs a, b: give 'inputs' as an object"),
    (TWO, {"inputs": {"a": [[1, 2]]}}, "'b' is missing"),
    (TWO, {"inputs": {"a": [[1, 2]], "b": [1], "c": 1}}, "'c' is unknown"),
    (TWO, {"inputs": {"a": [[1, 2]], "b": [1, 2]}}, "one row for each item.*a .1, 2., b .2,."),
    (TWO, {"inputs": {"a": [[1, 2]], "b": [1.5]}}, "int64"),
    (PREPARED, {"inputs": [[1, 2, 3]]}, r"float32\[n, 2\]. Received: shape \(1, 3\)"),
]


@pytest.mark.parametrize(("model", "body", "said"), BAD_JSON)
def test_bad_json(model, body, said):
    with pytest.raises(RequestError, match=said) as caught:
        parse(model, body)
    assert caught.value.status == 400


def test_bad_binary():
    x = np.ones((2, 2), np.float32)
    objects = npy(np.array([[object()]]), allow_pickle=True)
    cases = [
        (npy(x)[:-1], "application/x-npy", {}, "takes 16 bytes, found 15"),
        (b"text", "application/x-npy", {}, "no NumPy file"),
        (objects, "application/x-npy", {}, "no pickles"),
        (npy(np.array(["a"])), "application/x-npy", {}, "expected numbers"),
        (npy(x[0]), "application/x-npy", {}, "one item alone"),
        (npy(x[:0]), "application/x-npy", {}, "there are no items"),
        (npy(np.ones((2, 2), int)), "application/x-npy", {}, "Received: dtype int64"),
        (x.tobytes(), "application/octet-stream", {}, "needs the header X-Weft-Shape, e.g. 8,2"),
        (
            x.tobytes(),
            "application/octet-stream",
            {"x_weft_shape": "2,3"},
            "takes 24.*Received: 16",
        ),
        (x.tobytes(), "application/octet-stream", {"x_weft_shape": "2,-2"}, "must be sizes"),
        (
            b"",
            "application/octet-stream",
            {"x_weft_shape": "9" * 30},
            r"takes \d+ bytes. Received: 0",
        ),
        (
            *(x.tobytes(), "application/octet-stream"),
            *({"x_weft_shape": "2,2", "x_weft_dtype": "object"}, "must name a dtype of numbers"),
        ),
        (b"text", "application/x-safetensors", {}, "no safetensors file"),
        (safetensors.numpy.save({"b": x}), "application/x-safetensors", {}, "'input' is missing"),
    ]
    for body, kind, headers, said in cases:
        with pytest.raises(RequestError, match=said) as caught:
            parse(ONE, body, kind, **headers)
        assert caught.value.status == 400
    with pytest.raises(RequestError, match="is one array, and the model has the inputs a, b"):
        parse(TWO, npy(x), "application/x-npy")


def test_unknown_kinds():
    with pytest.raises(
        RequestError, match=r"text/html is not understood. Expected.*x-npy"
    ) as caught:
        parse(ONE, b"", "text/html")
    assert caught.value.status == 415


def test_items_of_different_shapes():
    model = ServedModel(
        ModuleProgram(lambda x: x, input_values(((None,), "float32"))),
        items_of=lambda items: [(np.ones(len(item), np.float32),) for item in items],
    )
    assert parse(model, {"inputs": ["ab", "cd"]}).arrays[0].shape == (2, 2)
    with pytest.raises(RequestError, match=r"must have one shape. Received: \[\(1,\), \(2,\)\]"):
        parse(model, {"inputs": ["ab", "c"]})


def test_bfloat16_is_rounded_from_json():
    pytest.importorskip("ml_dtypes")
    model = served_model(lambda x: x, inputs=((1,), wf.bfloat16))
    assert parse(model, {"input": [1.001]}).arrays[0].astype(float).tolist() == [[1.0]]


def test_bodies_that_are_packed():
    body = {"inputs": [[1, 2]]}
    assert parse(ONE, body, content_encoding="identity")[0][0].tolist() == [[1, 2]]
    with pytest.raises(RequestError, match="Content-Encoding gzip is not understood") as caught:
        parse(ONE, body, content_encoding="gzip")
    assert caught.value.status == 415
    array, packed = np.ones((1, 2), np.float32), {"x-weft-shape": "1,2", "content-encoding": "br"}
    read = body_reader(ONE, {"content-type": "application/octet-stream", **packed}, array.nbytes)
    with pytest.raises(RequestError, match="Content-Encoding br"):
        read(array.tobytes())
