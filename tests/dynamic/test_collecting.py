"""The collector of cycles waits longer during a call."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

import weft as wf
from weft.dynamic.collecting import MOST_NEW, RareCollection


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_it_is_as_before_at_the_end():
    rare = RareCollection()
    with rare:
        with rare:
            assert gc.get_threshold() == (MOST_NEW, 10, 10)
        assert gc.get_threshold() == (MOST_NEW, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (MOST_NEW + 1, 5, 5)])
def test_who_wants_fewer_visits_has_them(chosen):
    gc.set_threshold(*chosen)
    with RareCollection():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_what_is_set_in_between_stays():
    with RareCollection():
        gc.set_threshold(500, 5, 5)
    assert gc.get_threshold() == (500, 5, 5)


def test_calls_of_two_threads_that_overlap_leave_it_as_it_was():
    inside, first_ended = Barrier(2), Event()
    met = []

    def first(x):
        inside.wait(10)  # both are in their calls
        raise ValueError("the first one fails")

    def second(x):
        inside.wait(10)
        assert first_ended.wait(10)
        met.append(gc.get_threshold()[0])  # the first call has ended, this one has not
        return wf.tensor(x)

    def call(fn):
        try:
            return wf.batched(fn)([1.0])
        finally:
            first_ended.set()

    with ThreadPoolExecutor(2) as pool:
        failing, going_on = pool.submit(call, first), pool.submit(call, second)
        with pytest.raises(ValueError, match="the first one fails"):
            failing.result(20)
        assert float(going_on.result(20)[0]) == 1.0
    assert met == [MOST_NEW]
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_does_not_wait_for_calls_that_its_parent_makes():
    started, asked = Event(), Event()

    def slow(x):
        started.set()
        assert asked.wait(10)
        return wf.tensor(x)

    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(wf.batched(slow), [1.0])
        assert started.wait(10)
        child = os.fork()
        if child == 0:
            os._exit(gc.get_threshold() != (700, 10, 10))
        asked.set()
        call.result(20)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert gc.get_threshold() == (700, 10, 10)


def test_a_call_that_fails_leaves_it_as_it_was():
    met = []

    def fail(x):
        met.append(gc.get_threshold()[0])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        wf.batched(fail)([1])
    assert met == [MOST_NEW]
    assert gc.get_threshold() == (700, 10, 10)
