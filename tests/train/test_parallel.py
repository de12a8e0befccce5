"""Training by several processes: alone here; on several of them see tests/distributed."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.autodiff.exchangers import exchangers
from weft.train import Trainer, Updater
from weft.train.parallel import mode_of


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
    spread = wf.nn.Sequential(wf.nn.Linear(2, 1))
    early = wf.optim.SGD(spread.parameters())
    with pytest.raises(ValueError, match=r"the optimizer was made before: call"):
        Updater(spread, early, None, [], parallel={"zero": 3})
    with pytest.raises(TypeError, match=r"parallel must be True, False.*Received: 'yes'"):
        Updater(layer, optimizer, None, [], parallel="yes")


def test_shards_add_up_over_batches():
    wf.manual_seed(0)
    found = trained({"shards": 4}, False)
    np.testing.assert_allclose(found, trained(False, False), rtol=1e-5)


def test_what_modes_mean():
    assert mode_of(True) == mode_of({}) == "sync"
    assert mode_of({"mode": "local", "every": 2}) == "local"
    assert mode_of(None) is mode_of(False) is None
    layer = wf.nn.Linear(2, 1)
    optimizer = wf.optim.SGD(layer.parameters())
    data = [(wf.ones(1, 2), wf.ones(1, 1))]
    local = {"mode": "local", "every": 2}
    updater = Updater(layer, optimizer, wf.nn.functional.mse_loss, data, parallel=local)
    trainer = Trainer(updater, stop=(3, "epoch"), out=None)
    trainer.run()
    assert updater.own_pace.steps.averages == 2
    assert (updater.writes, updater.serves, updater.parallel) == (True, False, None)
    scaled = wf.optim.SGD(layer.parameters())
    wf.optim.LossScaler(scaled)
    with pytest.raises(ValueError, match="a scaled loss has others"):
        Updater(layer, scaled, None, [], parallel=local)


def test_fit_trains_in_step():
    model = wf.nn.Linear(2, 1)
    model.compile("sgd", "mse")
    x, y = np.ones((8, 2), "f4"), np.ones((8, 1), "f4")
    history = model.fit(x, y, verbose=0, parallel=True, validation_split=0.5)
    assert set(history.history) == {"loss", "val_loss"}
    assert not exchangers  # those of the call are closed
    with pytest.raises(ValueError, match=r"fit trains in step .* mode='local'"):
        model.fit(x, y, verbose=0, parallel={"mode": "local"})
