"""The thread for work that can wait: order, endings and failures."""

import threading

from weft.eager.background import Background


def test_background_runs_jobs_in_order_and_ends():
    background, done, here = Background(), [], []
    for i in range(5):
        assert background.submit(lambda i=i: done.append(i) or here.append(background.is_here()))
    ready = threading.Event()
    background.submit(ready.set)
    ready.wait()
    assert done == [0, 1, 2, 3, 4]
    assert all(here)
    assert not background.is_here()
    background.end()
    assert not background.submit(lambda: done.append(5))
    assert 5 not in done


def test_background_that_cannot_start_says_so(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert not Background().submit(lambda: None)


def test_background_survives_a_failing_job(monkeypatch):
    seen, done = [], threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda args: seen.append(str(args.exc_value)))
    background = Background()

    def fail():
        raise RuntimeError("no such thing")

    background.submit(fail)
    background.submit(done.set)
    assert done.wait(60)
    assert seen == ["no such thing"]
    background.end()
