"""What the launcher knows of its ranks, from what they say."""

from __future__ import annotations

import os
import selectors
import socket
import time
from contextlib import suppress

import pytest

from weft.distributed.launcher import messages, watcher
from weft.distributed.launcher.watcher import Watcher


@pytest.fixture
def watching():
    selector = selectors.DefaultSelector()
    made = Watcher(selector)
    yield made
    made.close()
    selector.close()


def turn(watching, until=lambda notices: True):
    """Let the watcher hear what was said; return what it tells."""
    notices = []
    end = time.monotonic() + 20
    while time.monotonic() < end:
        for key, _ in watching._selector.select(0.02):
            key.data()
        notices += watching.take()
        if until(notices):
            break
    return notices


def connect(watching, rank, token=None, pid=None):
    made = socket.create_connection(("127.0.0.1", watching.port))
    said = {"token": token or watching.token, "rank": rank, "host": socket.gethostname()}
    made.sendall(messages.encode(messages.HELLO, pid=os.getpid() if pid is None else pid, **said))
    turn(watching, lambda _: rank in watching.states or token is not None)
    return made


def beat(made, step, busy=0.0, kind=messages.BEAT, **said):
    made.sendall(messages.encode(kind, count=step, busy=busy, phase="", **said))


def test_a_rank_that_says_goodbye_is_not_lost(watching):
    made = connect(watching, 1)
    beat(made, 7, kind=messages.BYE, status=0)
    made.close()
    turn(watching, lambda _: watching.states[1].ended)
    assert not turn(watching)
    assert (watching.states[1].count, watching.states[1].lost) == (7, False)
    assert watching.states[1].gone


def test_a_rank_whose_connection_ends_is_lost(watching):
    made = connect(watching, 2)
    beat(made, 3)
    turn(watching, lambda _: watching.states[2].count == 3)
    made.close()
    (notice,) = turn(watching, bool)
    assert (notice.kind, notice.rank) == ("lost", 2)
    assert "after 3 exchanges" in notice.text


def test_silence_is_told_once_and_its_end_too(watching, monkeypatch):
    made = connect(watching, 0)
    watching.states[0].heard -= 100
    monkeypatch.setattr(watcher, "process_letter", lambda state: "T")
    (notice,) = turn(watching, bool)
    assert notice.kind == "silent"
    assert "rank 0" in notice.text
    assert "stopped" in notice.text
    assert not turn(watching)
    assert [state.rank for state in watching.silent_for(50)] == [0]
    beat(made, 1)
    (notice,) = turn(watching, bool)
    assert notice.kind == "back"
    made.close()


@pytest.mark.parametrize("ending", [(messages.BYE,), (messages.BYE, messages.THROUGH)])
def test_who_is_stopped_while_others_wait_for_its_end_is_told(watching, monkeypatch, ending):
    made = connect(watching, 0)
    for kind in ending:
        beat(made, 3, kind=kind)
    turn(watching, lambda _: watching.states[0].through == (messages.THROUGH in ending))
    turn(watching, lambda _: watching.states[0].ended)
    watching.states[0].heard -= 100
    monkeypatch.setattr(watcher, "process_letter", lambda state: "T")
    (notice,) = turn(watching, bool)
    assert "rank 0" in notice.text
    assert "stopped" in notice.text
    assert [state.rank for state in watching.silent_for(50)] == [0]
    made.close()


def test_who_is_through_says_nothing_more(watching):
    made = connect(watching, 0)
    for kind in (messages.BYE, messages.THROUGH):
        beat(made, 3, kind=kind)
    turn(watching, lambda _: watching.states[0].through)
    watching.states[0].heard -= 100
    assert not turn(watching)
    made.close()


def test_a_silent_process_that_runs_is_not_given_up(watching, monkeypatch):
    made = connect(watching, 0)
    watching.states[0].heard -= 100
    assert turn(watching, bool)[0].text.endswith("may hold Python's lock")
    assert watching.silent_for(50) == []
    made.close()


def test_a_launcher_that_slept_blames_nobody(watching):
    made = connect(watching, 0)
    watching.states[0].heard -= 100
    watching._checked -= 100
    assert not turn(watching)
    made.close()


def test_stragglers_are_those_who_compute_longest(watching):
    ranks = [connect(watching, rank) for rank in range(3)]
    for made in ranks:
        beat(made, 1)
    for rank, made in enumerate(ranks):
        beat(made, 11, busy=20.0 if rank == 1 else 10.0)
    notices = turn(watching, bool)
    assert [(n.kind, n.rank) for n in notices] == [("slow", 1)]
    assert "2 s between exchanges, others 1 s" in notices[0].text
    for made in ranks:
        made.close()


def test_who_does_not_know_the_token_is_not_heard(watching):
    made = connect(watching, 5, token="guess")
    made.setblocking(False)
    ended = []

    def has_ended(_):
        with suppress(BlockingIOError):
            ended.append(made.recv(1))
        return ended

    turn(watching, has_ended)
    assert ended == [b""]
    assert watching.states == {}
    made.close()


@pytest.mark.parametrize("text", [b"nonsense\n", b"[1]\n", b'{"kind": 3}\n', b"x" * 1_100_000])
def test_nonsense_ends_a_connection(watching, text):
    made = connect(watching, 4)
    made.sendall(text)
    (notice,) = turn(watching, bool)
    assert notice.kind == "lost"
    made.close()


def test_who_is_lost_is_not_called_slow(watching):
    ranks = [connect(watching, rank) for rank in range(3)]
    for rank, made in enumerate(ranks):
        beat(made, 1)
        beat(made, 3, busy=60.0 if rank == 1 else 2.0)
    turn(watching, lambda _: all(watching.states[r].count == 3 for r in range(3)))
    ranks[1].close()
    turn(watching, bool)
    for made in (ranks[0], ranks[2]):
        beat(made, 20, busy=20.0)
    assert [n.kind for n in turn(watching, lambda _: watching.states[2].count == 20)] == []
    for made in (ranks[0], ranks[2]):
        made.close()
