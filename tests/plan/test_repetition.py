"""What exchanges gave is kept as long as a program may be repeated."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist
from weft.core.effects import EffectLog, logging_to
from weft.distributed import exchanges
from weft.graph.communication import COMMUNICATION
from weft.lower.kernels import CallKernel


def kept(function, *inputs):
    """Return which exchanges of a jitted function are kept for a repetition, in order."""
    jitted = wf.jit(function, strict=True)
    jitted(*inputs)
    kernels = jitted.code_of(inputs)[0].ordered_kernels()
    calls = [k for k in kernels if isinstance(k, CallKernel)]
    return [k.attrs[-1] for k in calls if k.op in COMMUNICATION.values()]


def test_nothing_is_kept_where_exchanges_alone_can_fail():
    assert kept(lambda x: dist.all_reduce(x) + 1.0, wf.ones(2)) == [False, False]


def test_what_comes_before_an_index_that_is_checked_is_kept():
    def step(x, i):
        return dist.all_reduce(dist.all_reduce(x)[i])

    assert kept(step, wf.ones(3), wf.tensor([1, 2])) == [True, True, False, False]


def test_a_wrong_index_behind_an_exchange_is_named():
    @wf.jit(strict=True)
    def step(x, i):
        return dist.all_reduce(dist.all_reduce(x)[i])

    np.testing.assert_array_equal(step(wf.ones(3), wf.tensor([1, 2])).numpy(), [1, 1])
    with pytest.raises(IndexError, match="5"):
        step(wf.ones(3), wf.tensor([1, 5]))


def test_results_are_freed_when_they_were_taken(monkeypatch):
    results = []
    wait = exchanges.PendingExchange.wait

    def noted(pending):
        found = wait(pending)
        results.append(weakref.ref(found))
        gc.collect()
        alive.append(sum(result() is not None for result in results[:-1]))
        return found

    alive = []

    @wf.jit(strict=True)
    def step(x):
        for _ in range(4):
            x = dist.all_reduce(x) * 2.0
        return x

    step(wf.ones(1000))
    monkeypatch.setattr(exchanges.PendingExchange, "wait", noted)
    step(wf.ones(1000))
    assert alive == [0, 0, 0, 0]


def test_an_exchange_that_fails_behind_is_not_repeated(monkeypatch):
    @wf.jit(strict=True)
    def step(x):
        return dist.all_reduce(x) + 1.0

    step(wf.ones(2))
    tried = []

    def lost(pending):
        tried.append(pending)
        raise dist.DistributedError("rank 1 is lost")

    monkeypatch.setattr(exchanges.PendingExchange, "wait", lost)
    with pytest.raises(dist.DistributedError, match="rank 1 is lost"):
        step(wf.ones(2))
    assert len(tried) == 1


def test_a_log_that_forgets():
    log = EffectLog()
    with logging_to(log):
        assert log.once(lambda: "a") == "a"
        assert log.kept(1, lambda: "b") == "b"
        log.begin()
        assert log.once(lambda: "c") == "a"  # a repetition is given the same
        log.forget()
        assert log.is_last
        assert log.once(lambda: "d") == "d"
        assert log.kept(1, lambda: "e") == "e"
        assert log.has_shown
