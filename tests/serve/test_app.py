"""The pages, over real sockets: predictions, errors, health, metrics, the model."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

import numpy as np
import pytest

import weft as wf
from tests.serve.lab import cnn, lab, lookup, mlp


def expected(model, x):
    return model(wf.tensor(np.asarray(x, np.float32))).numpy()


def test_predictions_of_one_and_of_many(mlp_lab):
    model, _ = mlp()
    x = np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32)
    status, said, _ = mlp_lab.post({"inputs": x.tolist()})  # more than a batch
    assert status == 200
    np.testing.assert_allclose(said["outputs"], expected(model, x), rtol=1e-4, atol=1e-5)
    status, said, _ = mlp_lab.post({"input": x[0].tolist()})
    np.testing.assert_allclose(said["output"], expected(model, x[:1])[0], rtol=1e-4, atol=1e-5)


def test_binary_bodies_and_answers(mlp_lab):
    model, _ = mlp()
    x = np.random.default_rng(1).standard_normal((3, 4)).astype(np.float32)
    file = BytesIO()
    np.save(file, x)
    status, body, _ = mlp_lab.post(file.getvalue(), "application/x-npy", Accept="application/x-npy")
    assert status == 200
    np.testing.assert_allclose(np.load(BytesIO(body)), expected(model, x), rtol=1e-4, atol=1e-5)
    raw = "application/octet-stream"
    status, body, headers = mlp_lab.post(x.tobytes(), raw, Accept=raw, X_Weft_Shape="3,4")
    assert (status, headers["x-weft-shape"], headers["x-weft-dtype"]) == (200, "3,3", "float32")
    found = np.frombuffer(body, np.float32).reshape(3, 3)
    np.testing.assert_allclose(found, expected(model, x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "no JSON"),
        ({"inputs": [[1, 2]]}, 400, "float32[n, 4]"),
        (b'{"input": [NaN, 0, 0, 0]}', 400, "NaN is no JSON"),
        (b"0" * 100_001, 413, "may have 100000 bytes. Received: 100001"),
        ({"inputs": [[0, 0, 0, 0]] * 1025}, 413, "may have 1024 items. Received: 1025"),
    ],
)
def test_bad_requests(mlp_lab, body, status, said):
    found, content, _ = mlp_lab.post(body)
    assert found == content["status"] == status
    assert said in content["error"]


def test_kinds_and_queries_that_are_not_known(mlp_lab):
    good = {"input": [0, 0, 0, 0]}
    assert mlp_lab.post(good, "text/html")[0] == 415
    assert mlp_lab.post(good, Accept="text/html")[0] == 406
    status, content, _ = mlp_lab.post(good, path="/v1/predict?top=x")
    assert (status, content["error"]) == (400, "top must be a number from 1. Received: 'x'")


def test_a_body_in_chunks_is_limited_too(mlp_lab):
    connection = mlp_lab.connection()
    connection.request("POST", "/v1/predict", (b" " * 1000 for _ in range(101)))
    assert connection.getresponse().status == 413
    connection.close()
    parts = iter([b'{"input": [0,', b"0, 0, 0]}"])
    assert mlp_lab.request("POST", "/v1/predict", parts)[0] == 200


def test_pages_that_are_not_there(mlp_lab):
    status, content, _ = mlp_lab.get("/nothing")
    assert status == 404
    assert "there is no GET /nothing; there are: POST /v1/predict" in content["error"]
    status, content, headers = mlp_lab.get("/v1/predict")
    assert (status, headers["allow"]) == (405, "POST")
    assert mlp_lab.post({}, path="/health")[0] == 405


def test_health(mlp_lab):
    for path in ("/health", "/health/live", "/health/ready"):
        status, content, _ = mlp_lab.get(path)
        assert (status, content) == (200, {"status": "ready", "live": True, "ready": True})


def test_the_model_is_told(mlp_lab):
    for path in ("/", "/v1/model"):
        _, told, _ = mlp_lab.get(path)
        assert told["name"] == "Sequential"
        assert told["weft"] == wf.__version__
        assert told["inputs"] == [{"name": "input", "dtype": "float32", "shape": [4]}]
        assert told["outputs"] == [{"name": "output", "dtype": "float32", "shape": [3]}]
        assert told["limits"]["max_body"] == 100_000
        assert "application/x-npy" in told["accepts"]


def test_metrics_count_what_was_answered(mlp_lab):
    before = mlp_lab.metric("items_total"), mlp_lab.metric('requests_total{status="200"}')
    mlp_lab.post({"inputs": [[0, 0, 0, 0]] * 3})
    mlp_lab.post({"inputs": [[0, 0, 0, 0]] * 40})
    after = mlp_lab.metric("items_total"), mlp_lab.metric('requests_total{status="200"}')
    assert (after[0] - before[0], after[1] - before[1]) == (43, 2)
    assert mlp_lab.metric("ready") == 1
    assert mlp_lab.metric("in_flight") == 0
    kind = mlp_lab.get("/metrics")[2]["content-type"]
    assert kind.startswith("text/plain; version=0.0.4")


def test_requests_at_a_time_share_batches_and_each_gets_its_own():
    model, _ = cnn()
    x = np.random.default_rng(2).standard_normal((64, 1, 6, 6)).astype(np.float32)
    wanted = expected(model, x)
    with lab("cnn", max_wait=0.02) as started:
        assert started.get("/")[1]["batching"]["sizes"] == [1, 2, 4, 8]
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda item: started.post({"input": item.tolist()}), x))
        assert started.metric("batches_total") < 64
        for (status, said, _), output in zip(answers, wanted, strict=True):
            assert status == 200
            np.testing.assert_allclose(said["output"], output, rtol=1e-4, atol=1e-5)


def test_one_bad_request_of_a_batch_does_not_fail_the_others():
    model, _ = lookup()
    table = model.weight.numpy()
    with lab("lookup", max_wait=0.05) as started:
        rows = [[i % 5, 0, 9 if i % 7 == 3 else 1] for i in range(40)]
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda row: started.post({"input": row}), rows))
        for row, (status, said, _) in zip(rows, answers, strict=True):
            if 9 in row:
                assert status == 422
                assert "the model cannot take this" in said["error"]
            else:
                assert status == 200
                np.testing.assert_allclose(said["output"], table[row], rtol=1e-6)


def test_a_bug_of_the_model_is_not_told_to_clients(caplog):
    with lab("broken", max_wait=0.05) as started:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda v: started.post({"input": [v]}), [1, 2, 11, 3, 4, 12]))
        assert [status for status, _, _ in answers] == [200, 200, 500, 200, 200, 500]
        assert "secret" not in json.dumps([said for _, said, _ in answers])
        mark = answers[2][1]["error"].split()[-1]
        assert mark in caplog.text
        assert "a secret of the server's" in caplog.text


def asgi(app, method, path, body=b""):
    """Return the status and the body of a request that is made without a server."""
    import asyncio  # noqa: PLC0415  (for this helper alone)

    sent = []

    async def receive():
        return {"type": "http.request", "body": body}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "query_string": b"", "headers": []}
    scope |= {"root_path": "", "scheme": "http", "http_version": "1.1", "server": ("x", 80)}
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:]))


def test_an_application_can_be_mounted_in_another():
    starlette = pytest.importorskip("starlette.applications")
    routing = pytest.importorskip("starlette.routing")
    model, inputs = mlp()
    made = wf.serve.app(model, inputs=inputs, classes=["a", "b", "c"])
    outer = starlette.Starlette(routes=[routing.Mount("/net", app=made)])
    for _ in range(2):  # each with an event loop of its own
        status, said = asgi(outer, "POST", "/net/v1/predict", b'{"input": [1, 2, 3, 4]}')
        assert status == 200
        np.testing.assert_allclose(
            said["output"], expected(model, [[1, 2, 3, 4]])[0], rtol=1e-4, atol=1e-5
        )
    assert asgi(outer, "GET", "/net/v1/model")[1]["classes"] == ["a", "b", "c"]
    assert made.state.service.close(30)
    status, said = asgi(outer, "POST", "/net/v1/predict", b'{"input": [1, 2, 3, 4]}')
    assert (status, said["error"]) == (503, "the server is ending and takes no new requests")
    assert asgi(outer, "GET", "/net/health")[0] == 503


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "httptools"])
def test_packages_that_are_missing_are_named(package, monkeypatch):
    for name in [n for n in sys.modules if n.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf'the package {package}: pip install "weft\[serve\]"'):
        wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), port=0)
