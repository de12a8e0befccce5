"""Accumulation, averages of weights, loss scaling."""

import numpy as np
import pytest

import weft as wf
from weft import optim


def leaf(*values, dtype=np.float32):
    return wf.tensor(np.array(values, dtype), requires_grad=True)


# -- accumulation ----------------------------------------------------------------------------------


def squared_error(w, rows):
    return ((wf.tensor(rows) @ w - 1.0) ** 2).mean()


@pytest.mark.parametrize("name", ["SGD", "Adam", "Eve"])
def test_small_batches_make_the_step_of_a_large_one(name):
    rows = np.random.default_rng(0).normal(size=(5, 8, 3))
    w, v = leaf(1, 2, 3, dtype=np.float64), leaf(1, 2, 3, dtype=np.float64)
    whole = getattr(optim, name)([w], lr=0.1)
    accumulator = optim.GradientAccumulator(getattr(optim, name)([v], lr=0.1), steps=4)
    for batch in rows:
        whole.minimize(squared_error(w, batch))
        stepped = [accumulator.minimize(squared_error(v, part)) for part in np.split(batch, 4)]
        assert stepped == [False, False, False, True]
    np.testing.assert_allclose(w.detach().numpy(), v.detach().numpy(), rtol=1e-10)


def test_a_round_cut_short_is_a_mean_too():
    w = leaf(0.0)
    accumulator = optim.GradientAccumulator(optim.SGD([w], lr=1.0), steps=4)
    assert not accumulator.flush()
    accumulator.minimize((w * 2.0).sum())
    accumulator.minimize((w * 4.0).sum())
    assert accumulator.flush()
    assert w.item() == -3.0
    assert not accumulator.flush()


def test_accumulation_resumes_within_a_round():
    w = leaf(0.0)
    accumulator = optim.GradientAccumulator(optim.SGD([w], lr=1.0), steps=2)
    accumulator.minimize((w * 2.0).sum())
    saved = accumulator.state_dict()
    v = leaf(0.0)
    other = optim.GradientAccumulator(optim.SGD([v], lr=1.0), steps=2)
    other.load_state_dict(saved)
    for one, x in ((accumulator, w), (other, v)):
        assert one.minimize((x * 4.0).sum())
    assert w.item() == v.item() == -3.0


def test_accumulation_with_loss_scaling():
    w = leaf(0.0)
    optimizer = optim.SGD([w], lr=1.0)
    optim.LossScaler(optimizer, 8.0)
    accumulator = optim.GradientAccumulator(optimizer, steps=2)
    accumulator.minimize((w * 2.0).sum())
    accumulator.minimize((w * 4.0).sum())
    assert w.item() == -3.0


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_bad_number_of_steps(steps):
    with pytest.raises(ValueError, match="positive integer"):
        optim.GradientAccumulator(optim.SGD([leaf(1.0)]), steps)


# -- averages --------------------------------------------------------------------------------------


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


# -- loss scaling ----------------------------------------------------------------------------------


def test_scaled_training_is_the_same():
    w, v = leaf(1.0, 2.0), leaf(1.0, 2.0)
    plain, scaled = optim.Adam([w]), optim.Adam([v])
    optim.LossScaler(scaled, 1024.0)
    for _ in range(5):
        plain.minimize((w**4).sum())
        scaled.minimize((v**4).sum())
    np.testing.assert_array_equal(w.detach().numpy(), v.detach().numpy())


def test_scale_falls_and_rises():
    w = leaf(1.0)
    optimizer = optim.SGD([w], lr=0.1)
    scaler = optim.LossScaler(optimizer, 8.0, interval=2)
    w.grad = wf.tensor([np.inf])
    optimizer.step()
    assert (w.item(), optimizer.t, scaler.factor, scaler.skipped) == (1.0, 0, 4.0, 1)
    for _ in range(2):
        w.grad = wf.tensor([0.0])
        optimizer.step()
    assert scaler.factor == 8.0
    other = optim.LossScaler(optim.SGD([leaf(1.0)]))
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict()


def test_hooks_see_unscaled_gradients():
    w, seen = leaf(1.0), []
    optimizer = optim.SGD([w], lr=0.1)
    optim.LossScaler(optimizer, 1024.0)
    optimizer.register_step_pre_hook(lambda o: seen.append(w.grad.item()))
    optimizer.minimize((3.0 * w).sum())
    assert seen == [3.0]


@pytest.mark.parametrize("options", [{"scale": 0.0}, {"growth": 0.5}, {"backoff": 2.0}])
def test_bad_scaling_options(options):
    with pytest.raises(ValueError, match="LossScaler needs"):
        optim.LossScaler(optim.SGD([leaf(1.0)]), **options)
