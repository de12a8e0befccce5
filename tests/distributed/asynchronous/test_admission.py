"""Bounded staleness, for every order in which things can happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.distributed.asynchronous.admission import Admission


@given(st.integers(0, 5), st.integers(1, 6), st.randoms(use_true_random=False))
def test_no_update_is_older_than_allowed_and_nothing_stands_still(staleness, workers, random):
    admission = Admission(staleness)
    computing, delivered = set(), set()
    for _ in range(200):
        idle = [w for w in range(workers) if w not in computing | delivered]
        random.shuffle(idle)
        for w in idle:
            if random.random() < 0.7 and admission.admit(w):
                computing.add(w)
        if random.random() < 0.05 and computing:
            lost = random.choice(sorted(computing))
            computing.discard(lost)
            admission.forget(lost)
        if computing and random.random() < 0.6:
            done = random.choice(sorted(computing))
            computing.discard(done)
            delivered.add(done)
        while (chosen := admission.choose(delivered)) is not None:
            assert admission.apply(chosen) <= staleness
            delivered.discard(chosen)
        assert computing or not delivered, "all have delivered, and nobody may be applied"
        assert len(computing | delivered) <= staleness + 1
    assert sum(admission.applied.values()) == admission.version
    assert not admission.applied or max(admission.applied) <= staleness


def test_without_staleness_workers_take_turns():
    admission = Admission(0)
    assert admission.admit(0)
    assert not admission.admit(1)
    assert admission.apply(0) == 0
    assert admission.admit(1)


def test_a_fast_worker_waits_for_a_slow_one():
    admission = Admission(2)
    assert admission.admit(0)
    for _ in range(2):
        assert admission.admit(1)
        assert admission.choose([1]) == 1
        admission.apply(1)
    assert admission.admit(1)
    assert admission.choose([1]) is None  # worker 0 would be three updates late
    assert admission.choose([0, 1]) == 0
    assert admission.apply(0) == 2


@pytest.mark.parametrize("staleness", [-1, 1.5, True, None])
def test_bad_bounds(staleness):
    with pytest.raises(ValueError, match="0 or more"):
        Admission(staleness)
