"""Servers for tests: `lab` runs one in a thread, `process_lab` in a process of its own."""

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


def verbose():
    """Return a function that answers a number with 64 KiB."""
    return lambda x: x + wf.zeros(1 << 14), ((1,), "float32")


def broken():
    """Return a function with a bug, which some numbers show."""

    def buggy(x):
        if float(x.numpy().max()) > 10:
            raise RuntimeError("a secret of the server's")
        return x

    return buggy, ((1,), "float32")


def options_of(name):
    """Return a model and its options; functions that do as they like are not compiled."""
    model, inputs = MODELS[name]()
    return model, {
        "inputs": inputs,
        "compile": "auto" if name in ("mlp", "cnn", "lookup") else False,
    }


MODELS = {f.__name__: f for f in (mlp, cnn, lookup, slow, verbose, broken)}


class Lab:
    """A server, as clients see it."""

    def __init__(self, address):
        self.port = int(address.rpartition(":")[2])
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


@contextmanager
def lab(name, **limits):
    """Serve a model in a thread."""
    model, options = options_of(name)
    given = wf.serve.ServeLimits(**{"max_batch": 8} | limits)
    with wf.serve.background(model, limits=given, **options) as address:
        yield Lab(address)


class ProcessLab(Lab):
    """A server in a process of its own, which can be given signals."""

    def __init__(self, process):
        self.process = process
        line = process.stdout.readline()
        assert line.startswith("http://127.0.0.1:"), line + process.stderr.read()
        super().__init__(line)

    def end(self, sig=signal.SIGTERM):
        self.process.send_signal(sig)
        return self.process.wait(DEADLINE)


@contextmanager
def process_lab(name, **limits):
    options = [f"--{key}={value}" for key, value in ({"max_batch": 4} | limits).items()]
    command = [sys.executable, __file__, name, *options]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, cwd=ROOT, **pipes) as process:
        try:
            yield ProcessLab(process)
        finally:
            if process.poll() is None:
                process.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--max_batch", type=int)
    for name in ("max_wait", "timeout", "grace"):
        parser.add_argument(f"--{name}", type=float)
    limits = {key: v for key, v in vars(parser.parse_args()).items() if v is not None}
    model, options = options_of(limits.pop("model"))
    return wf.serve.run(
        model,
        port=0,
        limits=wf.serve.ServeLimits(**limits),
        announce=lambda address: print(address, flush=True),
        **options,
    )


sys.path.insert(0, str(ROOT))
import weft as wf  # noqa: E402  (from this tree, also as a script)

if __name__ == "__main__":
    sys.exit(main())
