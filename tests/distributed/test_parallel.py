"""Data parallel training: alone here, and on several processes by tests/distributed/programs."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.distributed.processes import run_checks
from tests.distributed.workloads import train
from weft import distributed as dist


def test_on_two_processes():
    run_checks("training.py", 2)


@pytest.mark.long
def test_on_four_processes():
    run_checks("training.py", 4)


@pytest.mark.parametrize("mode", ["eager", "jit", "static"])
def test_alone_nothing_changes(mode):
    found = train("mlp", mode, steps=2, sync_batch_norm=False)
    np.testing.assert_allclose(found, train("mlp", mode, steps=2, alone=True), rtol=1e-12)


def test_what_was_recorded_before_is_recorded_again():
    layer = wf.nn.Linear(2, 1)
    exchanges = []

    @wf.jit
    def step(x):
        layer.zero_grad()
        layer(x).sum().backward()

    x = wf.ones(1, 2)
    step(x)
    handle = dist.parallel(layer)
    whole = handle.averager.exchanged
    handle.averager.exchanged = lambda grads: exchanges.append(len(grads)) or whole(grads)
    step(x)
    assert exchanges == [2]
    with handle.no_sync():
        step(x)
    assert exchanges == [2]
    handle.close()


def test_what_cannot_be_made_parallel():
    with pytest.raises(TypeError, match=r"a module or an optimizer. Received: int"):
        dist.parallel(3)
    layer = wf.nn.Linear(2, 1)
    with pytest.raises(ValueError, match=r"shards must be a power of two.* Received: 3"):
        dist.parallel(layer, shards=3)
    with pytest.raises(ValueError, match=r"bucket_mib must be a positive number. Received: 0"):
        dist.parallel(layer, bucket_mib=0)
    with pytest.raises(ValueError, match=r"compression must be.*Received: 'zip'"):
        dist.parallel(layer, compression="zip")
    with pytest.raises(TypeError, match=r"must be a name or have start"):
        dist.parallel(layer, compression=3)
    handle = dist.parallel(layer)
    with pytest.raises(ValueError, match=r"parallel\(\.\.\., shards=S\)"):
        handle.backward(lambda: None)
    handle.close()
