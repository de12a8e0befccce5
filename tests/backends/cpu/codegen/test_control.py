"""How often loops ask about signals, by the estimated time of their turns."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from weft.backends.cpu.codegen.control import MOST_TURNS, POLL_EVERY, turns_between_polls
from weft.lower.schedule import BranchCalls, LoopCalls, Region


def work(nanoseconds):
    return Region([SimpleNamespace(cost=float(nanoseconds))], parallel=False)


def loop(*body, length=None):
    return LoopCalls(SimpleNamespace(length=length), [], list(body))


@pytest.mark.parametrize("nanoseconds", [0, 1, 20, 300, 5000, 10**4, 10**5, 10**9])
def test_polls_are_a_few_microseconds_apart(nanoseconds):
    turns = turns_between_polls(loop(work(nanoseconds)))
    assert turns.bit_count() == 1
    assert turns == 1 or turns * nanoseconds <= POLL_EVERY
    assert turns <= MOST_TURNS
    assert nanoseconds > 20 or turns >= 256


def test_loops_inside_are_counted_up_to_their_own_polls():
    inner = loop(work(10))
    assert turns_between_polls(inner) > 256
    assert turns_between_polls(loop(inner)) == 1
    assert turns_between_polls(loop(loop(work(10), length=3))) == 256
    assert turns_between_polls(loop(loop(work(10), length=10**9))) == 1


def test_the_longer_branch_counts():
    chosen = BranchCalls(SimpleNamespace(), [work(10)], [work(10**6)])
    assert turns_between_polls(loop(chosen)) == 1
