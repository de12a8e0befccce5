"""Sharded state: alone here, and on several processes by tests/distributed/programs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.distributed.processes import run_checks
from weft import distributed as dist
from weft.distributed.sharded import ShardedUnit


def test_on_two_processes():
    run_checks("dividing.py", 2)


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 4])
def test_fifty_steps_of_all_workloads(ranks):
    run_checks("dividing.py", ranks, env={"WEFT_TEST_LONG": "1"})


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_alone_gradients_are_the_same(stage):
    wf.manual_seed(1)
    plain = wf.nn.Sequential(wf.nn.Linear(4, 3), wf.nn.Tanh(), wf.nn.Linear(3, 2))
    wf.manual_seed(1)
    model = wf.nn.Sequential(wf.nn.Linear(4, 3), wf.nn.Tanh(), wf.nn.Linear(3, 2))
    dist.shard_parameters(model, stage=stage)
    x = wf.randn(5, 4)
    plain(x).sum().backward()
    model(x).sum().backward()
    expected = np.concatenate([plain[0].weight.grad.numpy().ravel(), plain[0].bias.grad.numpy()])
    np.testing.assert_allclose(model[0].shard.grad.numpy(), expected, rtol=1e-6)


def test_what_is_one_unit():
    model = wf.nn.Sequential(
        wf.nn.Linear(2, 2), wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.BatchNorm1d(2))
    )
    dist.shard_parameters(model)
    kinds = [type(m).__name__ for m in model.modules()]
    assert kinds.count("ShardedUnit") == 2
    assert "BatchNorm1d" in kinds
    whole = wf.nn.Sequential(wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Linear(2, 2)))
    dist.shard_parameters(whole, units=lambda m: isinstance(m, wf.nn.Sequential))
    assert isinstance(whole[0], ShardedUnit)
    assert isinstance(whole[0].module, wf.nn.Sequential)


def test_what_cannot_be_sharded():
    with pytest.raises(ValueError, match=r"stage must be 1, 2 or 3. Received: 4"):
        dist.shard_parameters(wf.nn.Linear(2, 2), stage=4)
    with pytest.raises(TypeError, match=r"expected a module. Received: int"):
        dist.shard_parameters(3)
    shared = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Linear(2, 2))
    shared[1].weight = shared[0].weight
    with pytest.raises(ValueError, match="0 and 1 share a parameter; make what holds"):
        dist.shard_parameters(shared, units=lambda m: isinstance(m, wf.nn.Linear))
    tied = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Linear(2, 2), wf.nn.Linear(2, 2))
    tied[2].weight = tied[0].weight
    dist.shard_parameters(tied)  # what is tied stays whole
    assert [type(m).__name__ for m in tied.children()] == ["Linear", "ShardedUnit", "Linear"]
    optimizer = wf.optim.SGD(wf.nn.Linear(2, 2).parameters())
    with pytest.raises(TypeError, match="zero is for a module"):
        dist.parallel(optimizer, zero=1)
    with pytest.raises(ValueError, match="max_norm must be positive"):
        dist.clip_grad_norm_([], 0.0)
