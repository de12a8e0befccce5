"""Bodies that are damaged at random: each is answered, none breaks the server or its neighbours."""

import json
import random
from io import BytesIO

import numpy as np
import pytest
import safetensors.numpy

import weft as wf
from tests.serve.lab import mlp

KINDS = ("application/json", "application/x-npy", "application/octet-stream")
KINDS += ("application/x-safetensors", "text/plain", "")
SHAPES = ("", "a", "2,4,1", "0,4", "-1", "1e9", "9" * 99)
SCRAPS = (b"NaN", b"1e999", b"[", b"]", b"{", b'"', b",", b"\\", b"\xff", b"null", b"-", b"9" * 400)


def good_bodies():
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    file = BytesIO()
    np.save(file, x)
    yield KINDS[0], json.dumps({"inputs": x.tolist()}).encode(), {}
    yield KINDS[0], json.dumps({"input": x[0].tolist()}).encode(), {}
    yield KINDS[1], file.getvalue(), {}
    yield KINDS[2], x.tobytes(), {"X-Weft-Shape": "2,4"}
    yield KINDS[3], safetensors.numpy.save({"input": x}), {}


def damaged(body, draw):
    """Return a body with a few things changed."""
    content = bytearray(body)
    for _ in range(draw.randint(1, 4)):
        place = draw.randrange(len(content) + 1)
        kind = draw.randrange(5)
        if kind == 0:
            content[place : place + draw.randint(1, 8)] = b""
        elif kind == 1:
            content[place:place] = draw.choice(SCRAPS)
        elif kind == 2 and place < len(content):
            content[place] = draw.randrange(256)
        elif kind == 3:
            content = content[:place]
        else:
            content += content[: draw.randint(0, 40)]
    return bytes(content)


def fuzz(lab, count, seed):
    draw = random.Random(seed)
    bodies = list(good_bodies())
    model, _ = mlp()
    right = model(wf.tensor([[1.0, 2.0, 3.0, 4.0]])).numpy()[0]
    connection = lab.connection()
    for _ in range(count):
        kind, body, headers = draw.choice(bodies)
        if draw.random() < 0.1:
            kind = draw.choice(KINDS)
        if draw.random() < 0.1:
            headers = {
                "X-Weft-Shape": draw.choice(["", "a", "2,4,1", "0,4", "-1", "1e9", "9" * 99])
            }
        connection.request(
            "POST", "/v1/predict", damaged(body, draw), {"Content-Type": kind, **headers}
        )
        response = connection.getresponse()
        said = json.loads(response.read(), parse_constant=pytest.fail)
        assert response.status in (200, 400, 413, 415), said
        assert ("error" in said) == (response.status != 200)
        if draw.random() < 0.1:
            connection.request("POST", "/v1/predict", b'{"input": [1, 2, 3, 4]}')
            output = json.loads(connection.getresponse().read())["output"]
            np.testing.assert_allclose(output, right, rtol=1e-4, atol=1e-5)
    connection.close()


def test_damaged_bodies(mlp_lab):
    fuzz(mlp_lab, 400, seed=0)


@pytest.mark.long
def test_thousands_of_damaged_bodies(mlp_lab):
    for seed in range(1, 6):
        fuzz(mlp_lab, 1000, seed)
