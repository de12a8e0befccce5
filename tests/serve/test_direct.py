"""Predictions on the short way: pieces of requests, requests in a row, clients that go or stay."""

import json
import random
import socket
import struct
import time

import numpy as np
import pytest

import weft as wf
from tests.serve.lab import lab, mlp

BODY = b'{"input": [1, 2, 3, 4]}'
BAD = b'{"input": [1, 2, 3   ]}'
RAW = "application/octet-stream"


def request(body=BODY, *fields, length=None):
    lines = (b"POST /v1/predict HTTP/1.1", b"Host: x", *fields)
    size = len(body) if length is None else length
    return b"\r\n".join([*lines, b"Content-Length: %d\r\n\r\n" % size]) + body


CLOSING = request(BODY, b"Connection: close")


class Wire:
    """A connection, and the answers that come over it."""

    def __init__(self, port, room=None):
        self.sock = socket.socket()
        self.sock.settimeout(30)
        if room is not None:  # bytes of answers that the system keeps for a client
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        self.sock.connect(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = self.sock.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._read.close()
        self.sock.close()

    def answer(self):
        """Return the status, the headers and the body of the next answer; None at the end."""
        line = self._read.readline()
        if not line:
            return None
        fields = dict(
            field.rstrip(b"\r\n").split(b": ", 1) for field in iter(self._read.readline, b"\r\n")
        )
        body = self._read.read(int(fields[b"content-length"]))
        return int(line.split()[1]), fields, body

    def statuses(self):
        found = []
        while (answer := self.answer()) is not None:
            found.append(answer[0])
        return found


@pytest.fixture
def wire(mlp_lab):
    with Wire(mlp_lab.port) as opened:
        yield opened


def expected():
    model, _ = mlp()
    return model(wf.tensor([[1.0, 2.0, 3.0, 4.0]])).numpy()[0]


def right(answer):
    status, fields, body = answer
    assert (status, fields[b"content-type"]) == (200, b"application/json")
    assert b"date" in fields
    np.testing.assert_allclose(json.loads(body)["output"], expected(), rtol=1e-4, atol=1e-5)
    return True


def test_a_body_that_comes_in_pieces(wire):
    whole = request()
    for cuts in ((len(whole) - len(BODY),), (len(whole) - 20, len(whole) - 3), (10,), (40, 60)):
        for start, end in zip((0, *cuts), (*cuts, None), strict=True):
            wire.sock.sendall(whole[start:end])
            time.sleep(0.02)
        assert right(wire.answer())


def test_short_and_long_ways_on_one_connection(wire):
    chunked = (
        b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    )
    page = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    for ways in ((request(), chunked, page, request()), (page, request(), chunked) * 2):
        for way in ways:
            wire.sock.sendall(way)
            assert wire.answer()[0] == 200
        wire.sock.sendall(b"".join(ways))
        assert [wire.answer()[0] for _ in ways] == [200] * len(ways)
    wire.sock.sendall(b"".join(ways) + CLOSING + page)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.statuses() == [200] * (len(ways) + 1)


def test_thousands_of_requests_in_a_row_good_and_bad(wire):
    wire.sock.sendall((request() + request(BAD) * 9) * 200)
    answers = [wire.answer() for _ in range(2000)]
    assert [status for status, _, _ in answers] == ([200] + [400] * 9) * 200
    assert right(answers[-10])
    assert b"shape (1, 3)" in answers[-1][2]


def test_the_bytes_of_an_array(wire):
    fields = (b"Content-Type: " + RAW.encode(), b"Accept: " + RAW.encode())
    x = np.array([[1, 2, 3, 4]], np.float32)
    shaped = (*fields, b"X-Weft-Shape: 1,4")
    for _ in range(2):
        wire.sock.sendall(request(x.tobytes(), *shaped))
        _, said, body = wire.answer()
        assert (said[b"x-weft-shape"], said[b"x-weft-dtype"]) == (b"1,3", b"float32")
        np.testing.assert_allclose(np.frombuffer(body, np.float32), expected(), rtol=1e-4)
    double = (*shaped, b"X-Weft-Dtype: float64")
    wire.sock.sendall(request(x.astype(np.float64).tobytes(), *double))
    np.testing.assert_allclose(np.frombuffer(wire.answer()[2], np.float32), expected(), rtol=1e-4)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (b"1,5", b"takes 20 bytes. Received: 16"),
        (b"2,2", b"Received: shape (2, 2)"),
        (b"0,4", b"takes 0 bytes. Received: 16"),
        (b"a", b"must be sizes"),
        (b"9" * 40, b"bytes. Received: 16"),
    ],
)
def test_headers_that_do_not_fit_are_told_each_time(wire, shape, said):
    fields = (b"Content-Type: " + RAW.encode(), b"X-Weft-Shape: " + shape)
    for _ in range(2):
        wire.sock.sendall(request(bytes(16), *fields))
        status, _, body = wire.answer()
        assert (status, said in body) == (400, True), body


def test_a_client_that_stops_in_the_middle_of_a_body_is_told(wire):
    wire.sock.sendall(request(b'{"input"', length=100))
    wire.sock.shutdown(socket.SHUT_WR)
    status, fields, body = wire.answer()
    assert (status, fields[b"connection"]) == (400, b"close")
    assert json.loads(body)["error"] == "the body ended after 8 of 100 bytes"
    assert wire.answer() is None


def test_a_client_that_says_no_more_gets_its_answers(wire):
    wire.sock.sendall(request() * 3)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.statuses() == [200] * 3


def test_the_last_request_is_answered_with_close(wire):
    wire.sock.sendall(CLOSING + request())
    status, fields, _ = wire.answer()
    assert (status, fields[b"connection"]) == (200, b"close")
    assert wire.answer() is None


def test_clients_that_go_leave_nothing_behind():
    with lab("slow", max_batch=1, max_wait=0) as started:
        for _ in range(5):
            with Wire(started.port) as wire:
                wire.sock.sendall(request(b'{"input": [0.1]}') * 3)
                time.sleep(0.05)
                gone_at_once = struct.pack("ii", 1, 0)  # no word that more could be read
                wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, gone_at_once)
        started.wait_until(lambda: started.metric("in_flight") == 0)
        assert started.metric('requests_total{status="499"}') >= 1
        assert started.post({"input": [0.0]})[0] == 200


def test_a_client_that_reads_nothing_is_read_no_further():
    asked = request(b'{"input": [1]}', f"Accept: {RAW}".encode()) * 100
    with lab("verbose", timeout=5) as started, Wire(started.port, room=4096) as wire:
        wire.sock.setblocking(False)
        sent = blocked = 0
        until = time.monotonic() + 15
        while blocked < 8 and time.monotonic() < until:  # no byte was taken for 0.4 s
            try:
                sent += wire.sock.send(asked)
                blocked = 0
            except BlockingIOError:
                blocked += 1
                time.sleep(0.05)
        assert blocked == 8
        assert sent < 32 * 2**20  # what the system keeps for both sides
        assert started.post({"input": [1]})[0] == 200


def test_damaged_heads_are_answered_and_break_nothing(mlp_lab):
    draw = random.Random(0)
    whole = request(BODY, b"Accept: */*", b"Connection: keep-alive")
    scraps = (b"\r\n", b"\n", b":", b" ", b"\x00", b"\xff", b"Content-Length: 3\r\n", b"Expect: x")
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(damaged))
            damaged[place : place + draw.randint(0, 3)] = draw.choice(scraps)
        with Wire(mlp_lab.port) as wire:
            wire.sock.sendall(bytes(damaged) + request())
            wire.sock.shutdown(socket.SHUT_WR)
            statuses = wire.statuses()
        assert set(statuses) <= {200, 400, 404, 405, 406, 408, 411, 413, 415, 417}, (
            damaged,
            statuses,
        )
    with Wire(mlp_lab.port) as wire:
        wire.sock.sendall(CLOSING)
        assert right(wire.answer())
    mlp_lab.wait_until(lambda: mlp_lab.metric("in_flight") == 0)
