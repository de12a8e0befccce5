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
def test_on_four_processes():
    run_checks("dividing.py", 4)


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


@pytest.mark.parametrize("stage", [1, 3])
def test_a_captured_step_has_everything_once(stage):
    count = 12  # equal layers, which are not rolled into a loop over a copy of all of them
    model = wf.nn.Sequential(*[wf.nn.Linear(32, 32) for _ in range(count)])
    dist.shard_parameters(model, stage=stage)
    optimizer = wf.optim.Adam(model.parameters())

    @wf.jit(strict=True)
    def step(x):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    x = wf.ones(2, 32)
    step(x)
    memory = step.code_of((x,))[0].plan.memory
    assert len(memory.shared) == 3 * count  # parameters and slots are written in place
    assert all(view.buffer.nbytes <= 8 for _, view in memory.copied)
    layer = 33 * 32 * 4
    assert sum(b.nbytes for b in memory.fresh) <= count * layer + 64  # gradients alone leave it
    assert memory.arena_bytes <= (4 if stage == 3 else count + 4) * layer


def test_old_gradients_make_room_for_new_ones():
    layer = wf.nn.Linear(3, 1)
    handle = dist.parallel(layer)
    fails = [False]
    seen = []

    @wf.jit
    def step(x):
        layer.zero_grad()
        loss = layer(x).sum()
        loss.backward()
        return loss.detach()

    @wf.jit
    def adds(x):
        layer(x).sum().backward()

    begin = handle.group.exchanges.start

    def noted(*given):
        seen.append(layer.weight.grad)
        if fails[0]:
            raise dist.DistributedError("rank 1 is lost")
        return begin(*given)

    handle.group.exchanges.start = noted
    try:
        for _ in range(3):
            step(wf.ones(2, 3))
        assert seen[-1] is None
        np.testing.assert_array_equal(layer.weight.grad.numpy(), [[2, 2, 2]])
        for _ in range(2):  # what is added to is kept
            adds(wf.ones(2, 3))
        assert seen[-1] is not None
        np.testing.assert_array_equal(layer.weight.grad.numpy(), [[6, 6, 6]])
        fails[0] = True
        before = layer.weight.numpy().copy()
        with pytest.raises(dist.DistributedError, match="rank 1 is lost"):
            step(wf.ones(2, 3))
        assert layer.weight.grad is None
        np.testing.assert_array_equal(layer.weight.numpy(), before)
    finally:
        handle.group.exchanges.start = begin
        handle.close()


def test_clipping_names_the_group():
    model = wf.nn.Sequential(wf.nn.Linear(2, 1))
    dist.shard_parameters(model)
    model(wf.ones(1, 2)).sum().backward()
    norm = dist.clip_grad_norm_(model.parameters(), 1.0, group=dist.world())
    np.testing.assert_allclose(norm.numpy(), np.sqrt(3), rtol=1e-6)
    other = dist.new_group([0])
    with pytest.raises(ValueError, match=r"spread over <group 0 of ranks \(0,\)>, not over <group"):
        dist.clip_grad_norm_(model.parameters(), 1.0, group=other)
    with pytest.raises(TypeError, match=r"group must be a process group. Received: 3"):
        dist.clip_grad_norm_(model.parameters(), 1.0, group=3)


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
