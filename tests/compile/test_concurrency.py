"""Compiled programs under threads, forks and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

import weft as wf
from tests.threads import num_threads

ROOT = Path(__file__).resolve().parent.parent.parent
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def in_threads(count, work):
    """Run a function in several threads at once, on their numbers; raise what one raises."""
    errors = []
    together = threading.Barrier(count)

    def guarded(number):
        try:
            together.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    if errors:
        raise errors[0]


@pytest.fixture
def two_threads():
    with num_threads(2):
        yield


def row_program():
    """Return a session of kernels that are divided among threads, and one in Python between."""
    with wf.Graph() as graph:
        x = wf.placeholder((None, 300), wf.float32)
        y = wf.nn.functional.softmax(wf.sort(wf.tanh(x @ x.mT), axis=-1), axis=-1)
    return wf.Session(graph), x, y


def test_several_threads_run_one_session(two_threads):
    session, x, y = row_program()
    feeds = [np.random.default_rng(i).normal(size=(200, 300)).astype("f") for i in range(4)]
    expected = [wf.Session(session.graph).run(y, {x: feed}) for feed in feeds]

    def work(number):
        for _ in range(10):
            np.testing.assert_array_equal(session.run(y, {x: feeds[number]}), expected[number])

    in_threads(4, work)


def test_several_threads_compile_one_session():
    """All of them find no code at first; shapes differ, so that each also meets the others'."""
    session, x, y = row_program()
    sizes = (1, 2, 3, 5, 8)

    def work(number):
        for i in range(len(sizes)):
            size = sizes[(i + number) % len(sizes)]
            assert session.run(y, {x: np.ones((size, 300), np.float32)}).shape == (size, size)

    in_threads(5, work)


def counting_session(total):
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float64)
        update = total.assign(total + x)
    return wf.Session(graph), x, update


@pytest.mark.parametrize("sessions", [1, 3])
def test_no_update_is_lost(sessions):
    """Threads add to one state, by one program or by several."""
    total = wf.tensor(np.zeros(1000))
    made = [counting_session(total) for _ in range(sessions)]

    def work(number):
        session, x, update = made[number % sessions]
        for _ in range(200):
            session.run(update, {x: 1.0})

    in_threads(3, work)
    np.testing.assert_array_equal(total.numpy(), np.full(1000, 600.0))


def test_programs_that_read_a_state_see_all_of_an_update():
    total = wf.tensor(np.zeros(200_000))
    session, x, update = counting_session(total)
    with wf.Graph() as graph:
        lowest, highest = total.min(), total.max()
    reader = wf.Session(graph)
    done = threading.Event()

    def work(number):
        if number == 0:
            for _ in range(100):
                session.run(update, {x: 1.0})
            done.set()
        while not done.is_set():
            low, high = reader.run([lowest, highest])
            assert low == high

    in_threads(2, work)


def test_number_of_threads_changes_between_and_during_runs(two_threads):
    session, x, y = row_program()
    feed = np.random.default_rng(0).normal(size=(200, 300)).astype("f")
    expected = session.run(y, {x: feed})
    for threads in (1, 3, 2, 1, 4):
        wf.set_num_threads(threads)
        np.testing.assert_array_equal(session.run(y, {x: feed}), expected)

    def work(number):
        for i in range(20):
            if number == 0:
                wf.set_num_threads(1 + i % 3)
            np.testing.assert_array_equal(session.run(y, {x: feed}), expected)

    in_threads(2, work)


def test_other_threads_run_during_a_long_call():
    with wf.Graph() as graph:
        x = wf.placeholder((1500, 1500), wf.float32)
        y = x
        for _ in range(4):
            y = y @ x
    session = wf.Session(graph)
    feed = np.full((1500, 1500), 1e-3, np.float32)
    session.run(y, {x: feed})
    turns, done = [0], threading.Event()

    def count():
        while not done.is_set():
            turns[0] += 1
            time.sleep(0.001)

    counter = threading.Thread(target=count)
    counter.start()
    before = turns[0]
    session.run(y, {x: feed})
    assert turns[0] - before > 10
    done.set()
    counter.join()


# -- forks -----------------------------------------------------------------------------------------


def assert_child_succeeds(work):
    """Fork; the child does the work and must end well, within a minute."""
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for ever is killed by it
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_run_what_their_parent_compiled(two_threads):
    session, x, y = row_program()
    feed = np.random.default_rng(0).normal(size=(200, 300)).astype("f")
    expected = session.run(y, {x: feed})

    def work():
        for _ in range(3):
            np.testing.assert_array_equal(session.run(y, {x: feed}), expected)
        session.run(y, {x: feed[:7]})  # compiles

    assert_child_succeeds(work)
    np.testing.assert_array_equal(session.run(y, {x: feed}), expected)


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("stateful", [False, True])
def test_forks_while_another_thread_runs(two_threads, stateful):
    """The child is not left with the locks of a thread that it does not have."""
    feed = np.random.default_rng(0).normal(size=(200, 300)).astype("f")
    total = wf.tensor(np.zeros(1_000_000))
    session, x, y = row_program()
    if stateful:
        session, x, y = counting_session(total)
        feed = np.float64(1.0)
    session.run(y, {x: feed})
    done = threading.Event()

    def run():
        while not done.is_set():
            session.run(y, {x: feed})

    runner = threading.Thread(target=run)
    runner.start()
    try:
        for _ in range(10):
            assert_child_succeeds(lambda: check_child(session, x, y, feed, total))
    finally:
        done.set()
        runner.join()


@forks
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_ends_the_run_of_a_thread_that_it_does_not_have():
    double = wf.compile(lambda x: x * 2, np.ones((3, 4), "f"))
    program = double.executable
    inside, done = threading.Event(), threading.Event()

    def run():
        with program._run_lock.lock:  # as in the middle of a run
            program._trusts_feeds, program._run_lock.running = False, True
            inside.set()
            done.wait(60)

    runner = threading.Thread(target=run)
    runner.start()
    inside.wait(60)

    def work():
        with_gaps = np.ones((3, 8), "f")[:, ::2]
        assert (program.run([with_gaps])[0] == 2).all()

    try:
        assert_child_succeeds(work)
    finally:
        done.set()
        runner.join()


def check_child(session, x, y, feed, total):
    for _ in range(2):
        session.run(y, {x: feed})
    assert len(np.unique(total.numpy())) == 1  # no half of an update


# -- Ctrl-C ----------------------------------------------------------------------------------------

TRAINING = """
    import signal
    import numpy as np, weft as wf

    # A shell starts what runs in the background with this signal ignored, which is inherited.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    weights = [wf.nn.Parameter(wf.ones(50_000)) for _ in range(4)]
    optimizer = wf.optim.Adam(weights, lr=1e-3)
    moved = wf.tensor(np.zeros((2, 2), np.float32))
    with wf.Graph() as graph:
        loss = sum((w * w).sum() for w in weights)
        fetches = [loss, optimizer.minimize(loss), moved.assign(moved.mT + 1.0)]
    session = wf.Session(graph)
    session.run(fetches)
    print("ready", flush=True)
    interrupts = 0
    while interrupts < 8:
        try:
            while True:
                session.run(fetches)
        except KeyboardInterrupt:
            interrupts += 1
            steps = optimizer.t
            assert (moved.numpy() == steps).all(), (steps, moved.numpy())
            for w in weights:
                assert len(np.unique(w.numpy())) == 1, "half an update"
            assert len({float(w.numpy()[0]) for w in weights}) == 1, "some weights only"
            print("interrupted", flush=True)
    print("steps", optimizer.t > 1, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals as on POSIX")
def test_interrupts_leave_whole_steps():
    """Ctrl-C ends a loop of training at once, with all states of the same step."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", dedent(TRAINING)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        chance = np.random.default_rng(0)
        for _ in range(8):
            time.sleep(chance.uniform(0.001, 0.05))
            process.send_signal(signal.SIGINT)
            line = process.stdout.readline()
            assert line == "interrupted\n", line + process.stderr.read()
        # What communicate() returns would lack what was read ahead with the last line.
        out, errors = process.stdout.read(), process.stderr.read()
        assert (process.wait(60), out) == (0, "steps True\n"), errors
