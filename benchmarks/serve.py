"""Requests a second of `weft.serve`, with batching and without, under load from one process.

    python benchmarks/serve.py [--requests 10000] [--clients 64] [--models mlp,cnn] [--json]

Two servers of each model run in processes of their own on loopback: one with batches of up to 32
items, one with a batch for each item (max_batch=1). This process is the load: a number of
connections, each with one request under way, alternating between the servers in slices so that
both meet the same machine. Every answer is compared with what the model gives in this process,
when its slice is over. `--apart` gives the load a processor of its own and the servers the others:
then nothing but the servers' own work is compared. `model ms` is the time that the model took
for an item, `cpu ms` what all of the server took of processors. Beside the ratio is what batching
could give: how far the two of `model ms` are apart, if requests cost nothing, and those of `cpu
ms`, if the load cost nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

import weft as wf
from weft import nn

SLICES = 5
ITEMS = 256  # different items that requests are made of
KIND = {"raw": "application/octet-stream", "json": "application/json"}


def mlp() -> tuple[Any, tuple[int, ...]]:
    """Return 784-256-128-10: its weights stay in the cache, so HTTP costs much more than it."""
    return _perceptron((784, 256, 128, 10)), (784,)


def wide() -> tuple[Any, tuple[int, ...]]:
    """Return 784-4096-4096-10: 80 MB of weights, read once by each run, for one item or many."""
    return _perceptron((784, 4096, 4096, 10)), (784,)


def cnn() -> tuple[Any, tuple[int, ...]]:
    """Return two convolutions and two linear layers on 28 x 28 images."""
    layers = (
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(32 * 49, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    return nn.Sequential(*layers), (1, 28, 28)


def lstm() -> tuple[Any, tuple[int, ...]]:
    """Return an LSTM of 256 units over 32 steps of 64 features, and a linear layer behind it."""
    return _Last(), (32, 64)


class _Last(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(64, 256, batch_first=True)
        self.head = nn.Linear(256, 10)

    def forward(self, x: Any) -> Any:
        states, _ = self.lstm(x)
        return self.head(states[:, -1])


def _perceptron(sizes: tuple[int, ...]) -> Any:
    layers: list[Any] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


MODELS = {"mlp": mlp, "wide": wide, "cnn": cnn, "lstm": lstm}


def made(name: str) -> tuple[Any, tuple[int, ...]]:
    """Return a model with the same weights in every process."""
    wf.manual_seed(0)
    model, shape = MODELS[name]()
    return model.eval(), shape


# -- the server ------------------------------------------------------------------------------------


def serve(name: str, max_batch: int, max_wait_ms: float) -> int:
    model, shape = made(name)
    limits = wf.serve.ServeLimits(max_batch=max_batch, max_wait=max_wait_ms / 1000)
    return wf.serve.run(
        model,
        inputs=(shape, "float32"),
        port=0,
        limits=limits,
        announce=lambda address: print(address, flush=True),
    )


class Server:
    """A server in a process of its own."""

    def __init__(self, name: str, max_batch: int, max_wait_ms: float, processors: set[int]) -> None:
        command = [sys.executable, __file__, "--server", name, "--max-batch", str(max_batch)]
        command += ["--max-wait-ms", str(max_wait_ms)]
        command += ["--processors", ",".join(map(str, sorted(processors)))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])
        while json.loads(self.get("/health"))["status"] != "ready":
            time.sleep(0.05)

    def get(self, path: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port)) as sock:
            head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            sock.sendall(head.encode())
            return b"".join(iter(lambda: sock.recv(65536), b"")).partition(b"\r\n\r\n")[2]

    def metrics(self) -> dict[str, float]:
        lines = self.get("/metrics").decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


# -- the load --------------------------------------------------------------------------------------


class Load:
    """Requests that are written once, and what their answers must be."""

    def __init__(self, name: str, kind: str) -> None:
        model, shape = made(name)
        x = np.random.default_rng(0).standard_normal((ITEMS, *shape)).astype(np.float32)
        with wf.no_grad():
            self.expected = model(wf.tensor(x)).numpy()
        self.kind = kind
        self.requests = [self._request(item) for item in x]
        self.tolerance = 1e-4 * float(np.abs(self.expected).max())

    def _request(self, item: Any) -> bytes:
        if self.kind == "raw":
            body = item.tobytes()
            shape = ",".join(map(str, (1, *item.shape)))
            extra = f"X-Weft-Shape: {shape}\r\nAccept: {KIND['raw']}\r\n"
        else:
            body, extra = json.dumps({"inputs": [item.tolist()]}).encode(), ""
        head = (
            f"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Type: {KIND[self.kind]}\r\n"
            f"{extra}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def check(self, number: int, head: bytes, body: bytes) -> None:
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"a request failed: {head[:80]!r} {body[:200]!r}")
        found = (
            np.frombuffer(body, np.float32)
            if self.kind == "raw"
            else np.array(json.loads(body)["outputs"][0])
        )
        error = float(np.abs(found - self.expected[number]).max())
        if not error <= self.tolerance:
            raise SystemExit(f"a wrong answer to request {number}: off by {error}")


class Client:
    """A connection with at most one request under way."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.number = 0
        self.started = 0.0

    def send(self, load: Load, number: int) -> None:
        self.number = number % ITEMS
        self.received = b""
        self.started = time.perf_counter()
        self.sock.sendall(load.requests[self.number])

    def receive(self) -> tuple[bytes, bytes] | None:
        part = self.sock.recv(65536)
        if not part:
            raise SystemExit("the server closed a connection")
        self.received += part
        head, end, body = self.received.partition(b"\r\n\r\n")
        return (head, body) if end and len(body) >= body_length(head) else None


@lru_cache
def body_length(head: bytes) -> int:
    """Return what a head says of its body; nearly all heads of a second are the same."""
    return int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])


def run_load(port: int, load: Load, count: int, clients: int) -> tuple[float, list[float]]:
    """Return the seconds that so many requests took, and each one's."""
    selector = selectors.DefaultSelector()
    connections = [Client(port) for _ in range(clients)]
    latencies: list[float] = []
    answers: list[tuple[int, bytes, bytes]] = []
    started = time.perf_counter()
    sent = 0
    for client in connections:
        selector.register(client.sock, selectors.EVENT_READ, client)
        client.send(load, sent)
        sent += 1
    while len(answers) < count:
        for key, _ in selector.select():
            client = key.data
            answer = client.receive()
            if answer is None:
                continue
            latencies.append(time.perf_counter() - client.started)
            answers.append((client.number, *answer))
            if sent < count:
                client.send(load, sent)
                sent += 1
    took = time.perf_counter() - started
    for client in connections:
        client.sock.close()
    for found in answers:
        load.check(*found)
    return took, latencies


# -- the comparison --------------------------------------------------------------------------------


def compare(name: str, options: argparse.Namespace) -> dict[str, Any]:
    load = Load(name, options.body)
    sizes = (1, options.max_batch)
    servers = {size: Server(name, size, options.max_wait_ms, options.for_servers) for size in sizes}
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    latencies: dict[int, list[float]] = {size: [] for size in sizes}
    part = options.requests // SLICES
    for size in sizes:
        run_load(servers[size].port, load, min(500, part), options.clients)  # warm
    before = {size: servers[size].metrics() for size in sizes}
    for _ in range(SLICES):
        for size in sizes:
            took, found = run_load(servers[size].port, load, part, options.clients)
            seconds[size].append(took)
            latencies[size] += found
    result: dict[str, Any] = {"model": name, "requests": part * SLICES}
    for size in sizes:
        p50, p99 = np.quantile(latencies[size], (0.5, 0.99))
        grown = {k: v - before[size].get(k, 0) for k, v in servers[size].metrics().items()}
        result[f"max_batch={size}"] = {
            "requests/s": part * SLICES / sum(seconds[size]),
            "best slice/s": part / min(seconds[size]),
            "p50 ms": 1000 * p50,
            "p99 ms": 1000 * p99,
            "mean batch": grown["weft_items_total"] / grown["weft_batches_total"],
            "model ms": 1000 * grown["weft_batch_seconds_sum"] / grown["weft_items_total"],
            "cpu ms": 1000 * grown["process_cpu_seconds_total"] / (part * SLICES),
        }
    result["ratio"] = sum(seconds[1]) / sum(seconds[sizes[1]])
    alone, together = (result[f"max_batch={size}"] for size in sizes)
    result["of the model"] = alone["model ms"] / together["model ms"]
    result["of processors"] = alone["cpu ms"] / together["cpu ms"]
    result["ended with"] = [server.end() for server in servers.values()]
    return result


def show(result: dict[str, Any]) -> None:
    print(f"{result['model']}: {result['requests']} requests each, all answers right")
    for name, figures in result.items():
        if isinstance(figures, dict):
            shown = "  ".join(f"{key} {value:.4g}" for key, value in figures.items())
            print(f"  {name:<14} {shown}")
    limits = (
        f"of the model {result['of the model']:.2f}, of processors {result['of processors']:.2f}"
    )
    print(f"  ratio {result['ratio']:.2f} ({limits})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--body", choices=tuple(KIND), default="raw")
    parser.add_argument("--max-batch", type=int, default=32)
    parser.add_argument("--max-wait-ms", type=float, default=2.0)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--server", choices=tuple(MODELS), help=argparse.SUPPRESS)
    parser.add_argument("--apart", action="store_true", help="a processor for the load alone")
    parser.add_argument("--processors", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.server:
        os.sched_setaffinity(0, map(int, options.processors.split(",")))
        return serve(options.server, options.max_batch, options.max_wait_ms)
    options.for_servers = os.sched_getaffinity(0)
    if options.apart:
        mine = max(options.for_servers)
        options.for_servers -= {mine}
        if not options.for_servers:
            raise SystemExit("--apart needs two processors")
        os.sched_setaffinity(0, {mine})
    for name in options.models.split(","):
        result = compare(name, options)
        print(json.dumps(result)) if options.json else show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
