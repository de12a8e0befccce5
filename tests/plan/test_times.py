"""How long schedules take, by the costs of their kernels."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from weft.lower.schedule import BranchCalls, LoopCalls, Piece, Region, RunSchedule, TogetherCalls
from weft.plan.times import PER_CALL, SHARED, TURNS, call_time, schedule_time, shared_time


def region(*costs, chunks=1, parallel=False):
    pieces = [Piece(None, (), frozenset(), 8, chunks, float(cost)) for cost in costs]
    return Region(tuple(pieces), parallel)


def test_a_region_takes_the_time_of_its_kernels_or_of_the_thread_that_has_most():
    assert call_time(region(100, 200), 2) == 300 + 2 * PER_CALL
    assert call_time(region(8000, chunks=4, parallel=True), 2) == 4000 + PER_CALL + SHARED
    assert call_time(region(8000, chunks=4, parallel=True), 1) == 8000 + PER_CALL


def test_control_flow_takes_the_time_of_what_is_inside():
    once = call_time(region(100), 2)
    for length, turns in ((5, 5), (None, TURNS)):
        loop = LoopCalls(SimpleNamespace(length=length), (), (region(100),))
        assert call_time(loop, 2) == turns * once
    branch = BranchCalls(None, (region(100),), (region(300),))
    assert call_time(branch, 2) == 300 + PER_CALL


def test_chains_take_the_time_of_the_longest():
    chains = ((region(5000),), (region(3000), region(1000)))
    together = TogetherCalls(None, chains, parallel=True)
    assert call_time(together, 2) == 5000 + PER_CALL + SHARED
    assert call_time(TogetherCalls(None, chains, parallel=False), 2) == 9000 + 3 * PER_CALL
    schedule = RunSchedule(("run_0",), ((together,),))
    assert schedule_time(schedule, 2) == call_time(together, 2)


@pytest.mark.parametrize(("threads", "end"), [(1, 9.0), (2, 5.0), (3, 4.0), (8, 4.0)])
def test_threads_take_parts_in_their_order(threads, end):
    assert shared_time([4.0, 3.0, 2.0], threads) == SHARED + end
