"""Averages of weights, and statistics of batch normalisation for them."""

import numpy as np
import pytest

import weft as wf
from tests.optim.parameters import leaf
from weft import optim


def walk(average, w, values):
    for value in values:
        with wf.no_grad():
            w.fill_(value)
        average.update()


def test_ema():
    w = leaf(0.0, dtype=np.float64)
    ema = optim.EMA([("w", w)], decay=0.9)
    values = np.random.default_rng(0).normal(size=20)
    walk(ema, w, values)
    expected = values[0]
    for value in values[1:]:
        expected = 0.9 * expected + 0.1 * value
    np.testing.assert_allclose(ema.values["w"], [expected], rtol=1e-12)


def test_ema_warmup():
    w = leaf(0.0)
    ema = optim.EMA([w], decay=0.999, warmup=True)
    walk(ema, w, [0.0, 1.0])
    np.testing.assert_allclose(ema.values["0"], [1 - 2 / 11], rtol=1e-6)


def test_swa_is_the_mean():
    w = leaf(0.0, dtype=np.float64)
    swa = optim.SWA([w])
    values = np.random.default_rng(0).normal(size=20)
    walk(swa, w, values)
    np.testing.assert_allclose(swa.values["0"], [values.mean()], rtol=1e-10)


def test_applied_puts_the_weights_back():
    w = leaf(1.0)
    ema = optim.EMA([w], decay=0.5)
    walk(ema, w, [1.0, 3.0])
    with pytest.raises(RuntimeError, match="stop"), ema.applied():  # noqa: PT012  (both matter)
        assert w.item() == 2.0
        kept = w.detach()
        raise RuntimeError("stop")
    assert w.item() == 3.0
    ema.update()
    assert kept.item() == 2.0


def test_swap_twice_is_nothing():
    w = leaf(1.0)
    ema = optim.EMA([w], decay=0.5)
    walk(ema, w, [1.0, 3.0])
    ema.swap()
    assert (w.item(), ema.values["0"].item()) == (2.0, 3.0)
    ema.swap()
    assert (w.item(), ema.values["0"].item()) == (3.0, 2.0)
    ema.copy_to_source()
    assert w.item() == 2.0


def test_half_precision_is_averaged_in_single():
    w = wf.tensor([0.0]).to("float16").requires_grad_()
    ema = optim.EMA([w], decay=0.999)
    walk(ema, w, [0.0] + [1.0] * 1000)
    assert ema.values["0"].dtype == np.float32
    with ema.applied():
        assert w.dtype == np.float16
        assert w.item() == pytest.approx(1 - 0.999**1000, rel=1e-2)


class Counter(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = wf.nn.Parameter(wf.tensor([1.0]))
        self.register_buffer("mean", wf.tensor([0.0]))
        self.register_buffer("calls", wf.tensor(0))


@pytest.mark.parametrize("use_buffers", [False, True])
def test_buffers_of_a_module(use_buffers):
    net = Counter()
    ema = optim.EMA(net, decay=0.5, use_buffers=use_buffers)
    assert ("mean" in ema.values) == use_buffers
    ema.update()
    net.mean = wf.tensor([4.0])
    assert "weight" in ema.values
    if not use_buffers:
        return
    ema = optim.EMA(net, decay=0.5, use_buffers=True)
    ema.update()
    with wf.no_grad():
        net.mean.fill_(8.0)
        net.calls.fill_(7)
    ema.update()
    assert (ema.values["mean"].item(), ema.values["calls"].item()) == (6.0, 7)


@pytest.mark.parametrize("kind", [optim.EMA, optim.SWA])
def test_averages_resume(kind):
    w, v = leaf(1.0), leaf(1.0)
    average, other = kind([w]), kind([v])
    walk(average, w, [1.0, 2.0])
    saved = average.state_dict()
    walk(average, w, [5.0])
    other.load_state_dict(saved)
    walk(other, v, [5.0])
    np.testing.assert_array_equal(average.values["0"], other.values["0"])
    assert average.count == other.count == 3


def test_bad_states_and_sources():
    average = optim.SWA([leaf(1.0)])
    with pytest.raises(ValueError, match=r"\['0', 'x'\]"):
        average.load_state_dict({"count": 1, "values": {"x": np.zeros(1)}})
    with pytest.raises(ValueError, match=r"shape \(1,\); the saved average \(2,\)"):
        average.load_state_dict({"count": 1, "values": {"0": np.zeros(2)}})
    with pytest.raises(TypeError, match="no tensor"):
        optim.SWA([1.0])
    with pytest.raises(ValueError, match="decay"):
        optim.EMA([leaf(1.0)], decay=1.0)


class Norm(wf.nn.Module):
    """A normalisation layer as far as `update_bn` is concerned."""

    def __init__(self):
        super().__init__()
        self.momentum = 0.1
        self.register_buffer("running_mean", wf.tensor(100.0))
        self.seen = []

    def reset_running_stats(self):
        self.running_mean = wf.tensor(0.0)
        self.seen.clear()

    def forward(self, x):
        assert self.training
        assert self.momentum is None
        self.seen.append(x.mean().item())
        self.running_mean = wf.tensor(np.float32(np.mean(self.seen)))
        return x


def test_update_bn():
    layer = Norm().eval()
    batches = [wf.tensor([1.0]), (wf.tensor([2.0]), "label"), [wf.tensor([6.0])]]
    optim.update_bn(batches, layer)
    assert layer.running_mean.item() == 3.0
    assert (layer.momentum, layer.training) == (0.1, False)
    optim.update_bn(batches, Counter())  # has nothing to update


def test_update_bn_of_a_batch_norm():
    layer = wf.nn.BatchNorm1d(3)
    batches = np.random.default_rng(0).normal(size=(4, 8, 3)).astype(np.float32)
    optim.update_bn([wf.tensor(batch) for batch in batches], layer)
    mean, var = batches.mean((0, 1)), batches.var(1, ddof=1).mean(0)
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, atol=1e-5)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-4)
