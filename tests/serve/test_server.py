"""The end of a server: in order, at once, and by force while it works."""

import http.client
import json
import signal
import socket
import threading
import time
from contextlib import closing, suppress

import numpy as np
import pytest

import weft as wf
from tests.serve.lab import mlp, process_lab
from weft.serve.server import AddressError


class Clients:
    """Threads that ask without pause, and note what they were told."""

    def __init__(self, started, count=8):
        model, _ = mlp()
        self.x = np.random.default_rng(0).standard_normal((32, 4)).astype(np.float32)
        self.expected = model(wf.tensor(self.x)).numpy()
        self.started = started
        self.right = self.refused = self.cut = 0
        self.wrong = []
        self.threads = [threading.Thread(target=self._ask, args=(n,)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def _ask(self, number):
        with closing(self.started.connection()) as connection:
            while True:  # until the server is gone
                number = (number + 1) % len(self.x)
                try:
                    body = json.dumps({"input": self.x[number].tolist()})
                    connection.request("POST", "/v1/predict", body)
                    response = connection.getresponse()
                    self._note(number, response.status, response.read())
                except (OSError, http.client.HTTPException):
                    self.cut += 1
                    return

    def _note(self, number, status, content):
        if status == 503:
            self.refused += 1
        elif status != 200 or not np.allclose(
            json.loads(content)["output"], self.expected[number], rtol=1e-4, atol=1e-5
        ):
            self.wrong.append((status, content))
        else:
            self.right += 1

    def join(self):
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def test_a_signal_under_load_ends_in_order():
    with process_lab("mlp") as started:
        clients = Clients(started)
        started.wait_until(lambda: clients.right > 200)
        assert started.end(signal.SIGTERM) == 0
        clients.join()
        assert clients.wrong == []
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", started.port))
        assert "Traceback" not in started.process.stderr.read()


def test_killed_under_load_no_answer_was_wrong():
    with process_lab("mlp") as started:
        clients = Clients(started)
        started.wait_until(lambda: clients.right > 100)
        assert started.end(signal.SIGKILL) == -signal.SIGKILL
        clients.join()
        assert clients.wrong == []
        assert clients.cut > 0


def test_what_is_in_flight_is_finished():
    with process_lab("slow", max_wait=0) as started:
        answers = []
        asking = threading.Thread(target=lambda: answers.append(started.post({"input": [1.0]})))
        asking.start()
        started.wait_until(lambda: started.metric("in_flight") == 1)
        assert started.end(signal.SIGINT) == 0
        asking.join()
        assert answers[0][:2] == (200, {"output": [2.0]})


def test_the_end_waits_no_longer_than_its_limit():
    with process_lab("slow", max_wait=0, grace=1) as started:
        answers = []
        asking = threading.Thread(target=_ask_in_vain, args=(started, answers))
        asking.start()
        started.wait_until(lambda: started.metric("in_flight") == 1)
        assert started.end() == 0
        asking.join()
        assert [status for status, _, _ in answers] in ([503], [])


def test_a_second_signal_ends_at_once():
    with process_lab("slow", max_wait=0, grace=60) as started:
        asking = threading.Thread(target=_ask_in_vain, args=(started, []))
        asking.start()
        started.wait_until(lambda: started.metric("in_flight") == 1)
        started.process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert started.process.poll() is None
        assert started.end(signal.SIGTERM) == 128 + signal.SIGTERM
        asking.join()


def _ask_in_vain(started, answers):
    with suppress(OSError, http.client.HTTPException):
        answers.append(started.post({"input": [50.0]}))


def test_an_address_that_is_taken():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AddressError, match=f"cannot listen on 127.0.0.1:{port}: .*in use"):
            wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), port=port)
    with pytest.raises(AddressError, match=r"cannot listen on no.such.host"):
        wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), host="no.such.host")
    with pytest.raises(TypeError, match=r"host must be a name or an address.*Received: 5"):
        wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), host=5)
    with pytest.raises(ValueError, match=r"from 0 to 65535. Received: True"):
        wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), port=True)
    with pytest.raises(ValueError, match=r"from 0 to 65535. Received: 70000"):
        wf.serve.run(wf.nn.Identity(), inputs=((1,), "float32"), port=70_000)
