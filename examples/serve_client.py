"""Ask a model over HTTP, with nothing but Python's own urllib.

    python examples/serve_client.py                          # serves a small network and asks it
    python examples/serve_client.py http://127.0.0.1:8000    # asks what `weft serve` serves there

`predict` sends JSON, `predict_array` the bytes of an array. Both raise RuntimeError with what the
server said if it refused, and come again when it was busy.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

TRIES = 5


def predict(url: str, items: list[Any]) -> Any:
    """Return what a server says of items: predictions, or plain outputs."""
    body = json.dumps({"inputs": items}).encode()
    answer, _ = _post(url, body, {"Content-Type": "application/json"})
    said = json.loads(answer)
    return said.get("predictions", said.get("outputs"))


def predict_array(url: str, x: np.ndarray) -> np.ndarray:
    """Return the outputs for an array whose first axis is the items, without a detour by text."""
    kind = "application/octet-stream"
    headers = {"Content-Type": kind, "Accept": kind, "X-Weft-Dtype": x.dtype.name}
    headers["X-Weft-Shape"] = ",".join(map(str, x.shape))
    answer, told = _post(url, np.ascontiguousarray(x).tobytes(), headers)
    shape = [int(size) for size in told["X-Weft-Shape"].split(",")]
    return np.frombuffer(answer, told["X-Weft-Dtype"]).reshape(shape)


def model_of(url: str) -> dict[str, Any]:
    """Return what a server tells of its model."""
    with urlopen(f"{url}/v1/model") as response:
        return json.load(response)


def _post(url: str, body: bytes, headers: dict[str, str]) -> tuple[bytes, Any]:
    for left in reversed(range(TRIES)):
        try:
            with urlopen(Request(f"{url}/v1/predict", body, headers)) as response:
                return response.read(), response.headers
        except HTTPError as error:
            said = json.loads(error.read())["error"]
            if error.code != 503 or not left:
                raise RuntimeError(f"{error.code}: {said}") from None
            time.sleep(float(error.headers.get("Retry-After", 1)))
    raise AssertionError


def ask(url: str) -> None:
    """Print what a server tells of its model, and what it says of random items."""
    told = model_of(url)
    print(f"{told['name']} takes {told['inputs']} and gives {told['outputs']}")
    (one,) = told["inputs"]
    shape = [4 if size is None else size for size in one["shape"]]
    x = np.random.default_rng(0).standard_normal((2, *shape)).astype(one["dtype"])
    print(predict(url, x.tolist()))


def demonstrate() -> None:
    """Serve a network in this process for a moment, and compare answers with the network's own."""
    import weft as wf  # noqa: PLC0415  (a client does without)

    wf.manual_seed(0)
    net = wf.nn.Sequential(wf.nn.Linear(8, 32), wf.nn.ReLU(), wf.nn.Linear(32, 3))
    x = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    with wf.serve.background(net, inputs=((8,), "float32")) as url:
        ask(url)
        answers = predict_array(url, x)
        try:
            predict(url, [[1.0, 2.0]])
        except RuntimeError as error:
            print(f"a mistake: {error}")
    print(f"largest difference: {np.abs(answers - net(wf.tensor(x)).numpy()).max():.2e}")


def main() -> None:
    """Read the options and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", nargs="?", help="of a server; without it, one is started")
    parser.add_argument("--quick", action="store_true", help="makes no difference here")
    url = parser.parse_args().url
    if url is None:
        demonstrate()
    else:
        ask(url.rstrip("/"))


if __name__ == "__main__":
    main()
