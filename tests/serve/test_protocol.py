"""What comes before a request is one: no HTTP, heads that are long or never end, pipelining."""

import json
import socket
from contextlib import ExitStack, closing

import pytest

from tests.serve.lab import lab

HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\n"


def exchange(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65536), b""))


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x00\x01\x02\r\n\r\n", b"400"),
        (b"GET\r\n\r\n", b"400"),
        (b"SPEAK / HTTP/1.1\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: many\r\n\r\n", b"400"),
        (HEAD + b"Content-Length: -1\r\n\r\n", b"400"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * 80_000, b"431"),
        (b"GET /" + b"a" * 80_000, b"431"),
    ],
)
def test_what_is_no_request(mlp_lab, data, status):
    answer = exchange(mlp_lab.port, data)
    assert answer.startswith(b"HTTP/1.1 " + status)
    said = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert said["status"] == int(status)
    assert mlp_lab.get("/health")[0] == 200


def test_requests_one_behind_another_on_a_connection(mlp_lab):
    body = b'{"input": [1, 2, 3, 4]}'
    request = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    last = request.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n")
    answer = exchange(mlp_lab.port, request * 5 + last)
    assert answer.count(b"HTTP/1.1 200 OK") == 6


def test_a_request_that_comes_byte_by_byte(mlp_lab):
    body = b'{"input": [1, 2, 3, 4]}'
    request = HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with socket.create_connection(("127.0.0.1", mlp_lab.port), timeout=30) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(request)):
            sock.sendall(request[i : i + 1])
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200 OK")


def test_one_client_too_many_is_told_so():
    with lab("slow", max_connections=2) as started:
        with ExitStack() as stack:
            for _ in range(2):
                client = stack.enter_context(closing(started.connection()))
                client.request("GET", "/health")
                assert client.getresponse().read()
            status, said, headers = started.get("/health")
            assert (status, headers["retry-after"]) == (503, "1")
            assert said["error"] == "there are 2 clients already"
        started.wait_until(lambda: started.get("/health")[0] == 200)
