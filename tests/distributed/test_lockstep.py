"""Runs in step: they work one after another, and wait where they meet."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist
from weft.distributed.exchanges import ExchangeSignature
from weft.distributed.lockstep import LockstepRuns, current_shard


def in_step(works, count=None):
    return LockstepRuns(count or len(works), lambda: None, lambda state: None).run(works)


def summed(x, how="sum"):
    array = np.array([float(x)])
    return current_shard().exchange(array, ExchangeSignature.of(array, how), dist.world())[0]


def test_where_they_meet_all_have_what_all_brought():
    order = []

    def work(i):
        order.append(("before", i))
        total = summed(i)
        order.append(("after", i))
        return total, summed(i, "mean")

    found = in_step([lambda i=i: work(i) for i in range(4)])
    assert found == [(6.0, 1.5)] * 4
    assert order == [(when, i) for when in ("before", "after") for i in range(4)]
    assert current_shard() is None


def test_each_has_a_state_of_its_own():
    held = {"x": 0}

    def work(i):
        assert held["x"] == 0
        held["x"] = i
        summed(i)
        assert held["x"] == i

    def restore(state):
        held["x"] = state

    LockstepRuns(3, lambda: held["x"], restore).run([lambda i=i: work(i) for i in range(3)])


def test_the_first_error_ends_all():
    before = threading.active_count()

    def work(i):
        summed(i)
        if i == 1:
            raise ValueError("one fails")
        summed(i)

    with pytest.raises(ValueError, match="one fails"):
        in_step([lambda i=i: work(i) for i in range(4)])
    assert threading.active_count() == before


def test_those_that_do_not_do_the_same_are_told_so():
    with pytest.raises(dist.MismatchError, match=r"of 2 shards .* 1 wait for the others"):
        in_step([lambda: summed(1), lambda: None])
    with pytest.raises(dist.MismatchError, match=r"shards do not do the same: sum of .*; mean of"):
        in_step([lambda: summed(1), lambda: summed(1, "mean")])
    with pytest.raises(dist.MismatchError, match=r"a layer asks for max of float64\[1\]"):
        in_step([lambda: summed(1, "max")])


@pytest.mark.filterwarnings("ignore:.*virtual shards meet in an exchange")
@pytest.mark.parametrize("make", [lambda f: f, wf.jit])
def test_batch_normalisation_uses_the_rows_of_all_shards(make):
    losses = []
    for shards in (1, 4):
        wf.manual_seed(0)
        model = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.BatchNorm1d(4), wf.nn.Linear(4, 1))
        handle = dist.parallel(model, shards=shards, sync_batch_norm=True)
        x, y = wf.randn(8, 3), wf.randn(8, 1)

        @make
        def loss_of(x, y, model=model):
            return wf.nn.functional.mse_loss(model(x), y)

        if shards == 1:
            loss_of(x, y)  # as a program which is not that of a shard
            model[1].reset_running_stats()
        loss = handle.backward(loss_of, x, y)
        handle.close()
        grads = [p.grad.numpy() for p in model.parameters()]
        losses.append((float(loss), grads, model[1].running_var.numpy()))
    assert losses[0][0] == pytest.approx(losses[1][0], rel=1e-6)
    np.testing.assert_allclose(losses[0][2], losses[1][2], rtol=1e-5)
    for a, b in zip(losses[0][1], losses[1][1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_programs_with_exchanges_do_not_run_in_shards():
    with wf.Graph() as graph:
        x = wf.placeholder((1,))
        total = dist.all_reduce(x)
    session = wf.Session(graph)
    assert session.run(total, {x: wf.ones(1)}) == 1.0
    with pytest.raises(dist.MismatchError, match=r"asks for sum of all processes inside of a virt"):
        in_step([lambda: session.run(total, {x: wf.ones(1)}) for _ in range(2)])
