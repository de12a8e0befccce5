"""Servers for tests: `python lab.py MODEL [limits]` serves one on loopback; `Lab` starts that."""

import argparse
import http.client
import json
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE = 60  # seconds that nothing takes unless it hangs


def mlp():
    """Return a small network of 4 features."""
    wf.manual_seed(0)
    model = wf.nn.Sequential(wf.nn.Linear(4, 16), wf.nn.ReLU(), wf.nn.Linear(16, 3))
    return model, ((4,), "float32")


def cnn():
    """Return a convolution, whose programs are each for one size of a batch."""
    wf.manual_seed(0)
    layers = (wf.nn.Conv2d(1, 2, 3), wf.nn.ReLU(), wf.nn.Flatten(), wf.nn.Linear(32, 3))
    return wf.nn.Sequential(*layers), ((1, 6, 6), "float32")


def lookup():
    """Return a table of 5 rows: other numbers than 0 to 4 are errors of a request."""
    wf.manual_seed(0)
    return wf.nn.Embedding(5, 2), ((3,), "int64")


def slow():
    """Return a function that sleeps for as many seconds as its largest number says."""

    def sleepy(x):
        time.sleep(float(x.numpy().max()))
        return x * 2

    return sleepy, ((1,), "float32")


def broken():
    """Return a function with a bug, which some numbers show."""

    def buggy(x):
        if float(x.numpy().max()) > 10:
            raise RuntimeError("a secret of the server's")
        return x

    return buggy, ((1,), "float32")


MODELS = {f.__name__: f for f in (mlp, cnn, lookup, slow, broken)}


class Lab:
    """A server in a process of its own."""

    def __init__(self, name, **limits):
        options = [f"--{key}={value}" for key, value in limits.items()]
        self.process = subprocess.Popen(
            [sys.executable, __file__, name, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        line = self.process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), line + self.process.stderr.read()
        self.port = int(line.rpartition(":")[2])
        self.wait_until(lambda: self.get("/health")[0] == 200)

    def wait_until(self, holds):
        end = time.monotonic() + DEADLINE
        while not holds():
            assert time.monotonic() < end
            time.sleep(0.02)

    def connection(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)

    def get(self, path):
        return self.request("GET", path)

    def post(self, body, kind="application/json", path="/v1/predict", **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.request("POST", path, body, {"Content-Type": kind, **named})

    def request(self, method, path, body=None, headers=None):
        connection = self.connection()
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
            if response.headers["content-type"] == "application/json":
                content = json.loads(content)
            return response.status, content, response.headers
        finally:
            connection.close()

    def metric(self, name):
        for line in self.get("/metrics")[1].decode().splitlines():
            if line.startswith(f"weft_{name} "):
                return float(line.split()[1])
        return 0.0

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(DEADLINE)


@contextmanager
def lab(name, **limits):
    started = Lab(name, **limits)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.process.kill()
            started.process.wait()
        started.process.stdout.close()
        started.process.stderr.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    for name in ("max_batch", "max_body", "max_queue", "max_connections"):
        parser.add_argument(f"--{name}", type=int)
    for name in ("max_wait", "timeout", "grace"):
        parser.add_argument(f"--{name}", type=float)
    options = {key: v for key, v in vars(parser.parse_args()).items() if v is not None}
    model, inputs = MODELS[options.pop("model")]()
    compile = getattr(model, "__name__", "") not in ("sleepy", "buggy")
    return wf.serve.run(
        model,
        inputs=inputs,
        port=0,
        compile=compile,
        limits=wf.serve.ServeLimits(**options),
        announce=lambda address: print(address, flush=True),
    )


sys.path.insert(0, str(ROOT))
import weft as wf  # noqa: E402  (from this tree, also as a script)

if __name__ == "__main__":
    sys.exit(main())
