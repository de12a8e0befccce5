"""The collector of cycles waits longer during a call."""

from __future__ import annotations

import gc

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


def test_a_call_that_fails_leaves_it_as_it_was():
    met = []

    def fail(x):
        met.append(gc.get_threshold()[0])
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        wf.batched(fail)([1])
    assert met == [MOST_NEW]
    assert gc.get_threshold() == (700, 10, 10)
