"""Limits in time and number: queues that are full, models and clients that are slow."""

import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.serve.lab import lab


def test_a_full_queue_is_refused_with_when_to_come_again():
    with lab("slow", max_batch=1, max_queue=2, max_wait=0) as started:
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: started.post({"input": [0.5]}), range(8)))
        refused = [answer for answer in answers if answer[0] == 503]
        assert {status for status, _, _ in answers} == {200, 503}
        for _, said, headers in refused:
            assert "the server is busy" in said["error"]
            assert int(headers["retry-after"]) >= 1
        assert started.post({"input": [0.0]})[0] == 200


def test_a_slow_model_is_not_waited_for_without_end():
    with lab("slow", max_batch=1, max_wait=0, timeout=0.4) as started:
        with ThreadPoolExecutor(2) as pool:
            running = pool.submit(started.post, {"input": [1.5]})
            time.sleep(0.1)
            status, said, _ = started.post({"input": [0.0]})  # waits behind it
            assert (status, "within 0.4 s" in said["error"]) == (504, True)
            assert running.result()[0] == 504
        assert started.get("/health")[0] == 200  # the event loop was never blocked
        started.wait_until(lambda: started.post({"input": [0.0]})[0] == 200)


@pytest.fixture(scope="module")
def impatient():
    with lab("mlp", timeout=1) as started:
        yield started


def exchange(port, *parts, pause=0.0):
    """Return all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as sock:
        for part in parts:
            sock.sendall(part)
            time.sleep(pause)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def test_slow_clients_are_left_alone_and_hold_nobody_up(impatient):
    head = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    with ThreadPoolExecutor(20) as pool:
        slow = [pool.submit(exchange, impatient.port, head) for _ in range(10)]
        slow += [pool.submit(exchange, impatient.port, head[:20]) for _ in range(10)]
        for _ in range(20):
            assert impatient.post({"input": [1, 2, 3, 4]})[0] == 200
        assert all(b"408 Request Timeout" in one.result() for one in slow)
    assert impatient.post({"input": [1, 2, 3, 4]})[0] == 200


def test_a_client_that_does_not_read_its_answers_holds_nobody_up(impatient):
    body = b'{"input": [1, 2, 3, 4]}'
    request = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
    with socket.create_connection(("127.0.0.1", impatient.port), timeout=5) as sock:
        sock.sendall(request % (len(body), body) * 200)
        for _ in range(20):
            assert impatient.post({"input": [1, 2, 3, 4]})[0] == 200


def test_clients_that_go_away_in_the_middle(impatient):
    body = b'{"input": [1, 2, 3, 4]}'
    request = b"POST /v1/predict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"
    whole = request % (len(body), body)
    for cut in (10, len(whole) - 5, len(whole)):
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", impatient.port)) as sock:
                sock.sendall(whole[:cut])
    assert impatient.post({"input": [1, 2, 3, 4]})[0] == 200
    impatient.wait_until(lambda: impatient.metric("in_flight") == 0)
