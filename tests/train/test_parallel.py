"""Training by several processes: alone here; on several of them see tests/distributed."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.autodiff.exchangers import exchangers
from weft.train import Updater


@pytest.fixture(autouse=True)
def _no_exchangers():
    yield
    exchangers.clear()


def trained(parallel, compile="auto"):
    wf.manual_seed(2)
    model = wf.nn.Sequential(wf.nn.Linear(4, 6), wf.nn.BatchNorm1d(6), wf.nn.Linear(6, 1))
    data = wf.data.TensorDataset(wf.randn(24, 4), wf.randn(24, 1))
    loader = wf.data.DataLoader(data, 4, seed=1, shard=bool(parallel))
    optimizer = wf.optim.SGD(model.parameters(), lr=0.1)
    updater = Updater(
        model,
        optimizer,
        wf.nn.functional.mse_loss,
        loader,
        accumulate=2,
        clip_norm=1.0,
        compile=compile,
        parallel=parallel,
    )
    return [updater.update()["train/loss"] for _ in range(4)]


@pytest.mark.parametrize("compile", [True, False])
def test_alone_it_is_what_it_was(compile):
    np.testing.assert_allclose(trained(True, compile), trained(False, compile), rtol=1e-5)
    options = {"bucket_mib": 2, "sync_batch_norm": False}
    np.testing.assert_allclose(trained(options, compile), trained(False, compile), rtol=1e-6)


def test_what_it_may_be():
    layer = wf.nn.Linear(2, 1)
    handle = wf.distributed.parallel(layer)
    optimizer = wf.optim.SGD(layer.parameters())
    updater = Updater(layer, optimizer, None, [], parallel=handle)
    assert updater.parallel is handle
    assert Updater(layer, optimizer, None, []).parallel is None
    with pytest.raises(TypeError, match=r"parallel must be True, False.*Received: 'yes'"):
        Updater(layer, optimizer, None, [], parallel="yes")
