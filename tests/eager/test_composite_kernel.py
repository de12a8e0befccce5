"""Composites and layers on large tensors: one node, whose gradient is a program too."""

import gc
import weakref

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.threads import num_threads
from weft.core.errors import GradientError
from weft.core.large import LARGE
from weft.eager.composite_kernel import CompositeKernel
from weft.ops.nn.normalize import normalized

N, C, SIZE = 16, 8, 24
IMAGES = (N, C, SIZE, SIZE)
assert N * C * SIZE * SIZE >= LARGE


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", True)


def normal(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def classes(*shape):
    return wf.tensor(np.random.default_rng(3).integers(0, 33, shape))


def attention(q, **options):
    q = q.reshape(4, 8, 64, 36)
    k, v = q.swapaxes(0, 1).swapaxes(0, 1) * 0.5, wf.flip(q, 2)
    return F.scaled_dot_product_attention(q, k, v, **options)


def strided_attention(q):
    q = q.reshape(4, 64, 8, 36).swapaxes(1, 2)
    return F.scaled_dot_product_attention(q, q * 0.5, q, is_causal=True)


VECTORS = [wf.tensor(normal(i, C)) for i in (4, 5)]
FILTERS = wf.tensor(normal(6, 16, C, 3, 3), requires_grad=True)
MASK = np.random.default_rng(9).random((64, 64)) > 0.3
FUNCTIONS = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, *VECTORS, training=True),
    "batch_norm alone": lambda x: F.batch_norm(x, training=True),
    "instance_norm": F.instance_norm,
    "conv1d": lambda x: F.conv1d(x.reshape(N, C, -1), FILTERS[:, :, 0], padding=1),
    "conv2d": lambda x: F.conv2d(x, FILTERS, wf.ones(16), stride=2, padding=1),
    "conv2d in groups": lambda x: F.conv2d(x, FILTERS[:, :4], padding=1, groups=2),
    "max_pool2d": lambda x: F.max_pool2d(x, 2),
    "max_pool2d that overlaps": lambda x: F.max_pool2d(x, 3, 2, 1),
    "max_pool1d": lambda x: F.max_pool1d(x.reshape(N, C, -1), 4),
    "attention": lambda x: attention(x, is_causal=True),
    "attention with a mask": lambda x: attention(x, attn_mask=wf.tensor(MASK)),
    "attention of views": strided_attention,
    "cross_entropy": lambda x: F.cross_entropy(x.reshape(-1, 36), classes(N * C * 16)),
    "cross_entropy of images": lambda x: F.cross_entropy(
        x.reshape(N, 36, -1), classes(N, 128), reduction="none", ignore_index=5
    ),
    "layer_norm": lambda x: F.layer_norm(x, (SIZE, SIZE)),
}


def run(function, x, dtype=np.float32):
    """Return the results of a function and the gradient of their weighted sum."""
    made = function(x)
    outs = made if isinstance(made, tuple) else (made,)
    seeds = [wf.tensor(normal(7, *y.shape, dtype=dtype)) for y in outs]
    return [y.detach().numpy() for y in outs] + [wf.gradients(list(outs), x, seeds).numpy()]


def assert_close(found, expected, dtype=np.float32):
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        scale = max(np.abs(b).max(), 1) * (2e-5 if dtype == np.float32 else 1e-12)
        np.testing.assert_allclose(a, b, rtol=0, atol=scale)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_and_gradients(name, monkeypatch):
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    found = run(FUNCTIONS[name], x)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close(found, run(FUNCTIONS[name], x))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_threads_do_not_change_a_bit(name):
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    found = []
    for threads in (1, 2):
        with num_threads(threads):
            found.append(run(FUNCTIONS[name], x))
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["batch_norm", "conv2d", "cross_entropy"])
def test_float64(name, monkeypatch):
    vectors = [v.to(wf.float64) for v in VECTORS]
    functions = {
        "batch_norm": lambda x: F.batch_norm(x, None, None, *vectors, training=True),
        "conv2d": lambda x: F.conv2d(x, FILTERS.detach().to(wf.float64)),
        "cross_entropy": FUNCTIONS["cross_entropy"],
    }
    x = wf.tensor(normal(0, *IMAGES, dtype=np.float64), requires_grad=True)
    found = run(functions[name], x, np.float64)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close(found, run(functions[name], x, np.float64), np.float64)


@pytest.mark.parametrize("name", ["batch_norm", "conv2d", "max_pool2d", "cross_entropy"])
def test_gradients_of_gradients(name, monkeypatch):
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)

    def second():
        y = FUNCTIONS[name](x)
        (g,) = wf.gradients([y], [x], [wf.ones_like(y)], create_graph=True)
        total = wf.sum(g * g * x)
        return wf.gradients(total, x).numpy()

    found = second()
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close([found], [second()])


# -- recurrent layers ------------------------------------------------------------------------------

LAYERS = {
    "rnn": (wf.nn.RNN, {"nonlinearity": "relu"}),
    "gru": (wf.nn.GRU, {"batch_first": True}),
    "lstm": (wf.nn.LSTM, {}),
    "lstm both ways": (wf.nn.LSTM, {"bidirectional": True, "num_layers": 2}),
    "lstm with projection": (wf.nn.LSTM, {"proj_size": 12, "batch_first": True}),
}
TIME, BATCH, HIDDEN = 64, 32, 40
assert TIME * BATCH * HIDDEN >= LARGE


def recurrent(name, state=None):
    """Return outputs, states and all gradients of a layer."""
    wf.manual_seed(3)
    make, options = LAYERS[name]
    layer = make(HIDDEN, HIDDEN, **options)
    x = wf.tensor(normal(0, TIME, BATCH, HIDDEN), requires_grad=True)
    if options.get("batch_first"):
        x = wf.tensor(normal(0, BATCH, TIME, HIDDEN), requires_grad=True)
    y, final = layer(x) if state is None else layer(x, state)
    states = final if isinstance(final, tuple) else (final,)
    total = wf.sum(wf.square(y)) + sum(wf.sum(wf.tanh(s)) for s in states)
    total.backward()
    grads = [x.grad, *(p.grad for p in layer.parameters())]
    return [t.detach().numpy() for t in (y, *states, *grads)]


@pytest.mark.parametrize("name", LAYERS)
def test_recurrent_layers(name, monkeypatch):
    found = recurrent(name)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close(found, recurrent(name))


def test_recurrent_layers_from_a_state(monkeypatch):
    state = tuple(wf.tensor(normal(i, 1, BATCH, HIDDEN), requires_grad=True) for i in (1, 2))
    found = [*recurrent("lstm", state), *(s.grad.numpy() for s in state)]
    for s in state:
        s.grad = None
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close(found, [*recurrent("lstm", state), *(s.grad.numpy() for s in state)])


def test_a_result_alone_has_a_gradient(monkeypatch):
    wf.manual_seed(0)
    layer = wf.nn.LSTM(HIDDEN, HIDDEN)
    x = wf.tensor(normal(0, TIME, BATCH, HIDDEN), requires_grad=True)

    def gradient():
        return wf.gradients(wf.sum(layer(x)[1][1]), x).numpy()

    found = gradient()
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close([found], [gradient()])


# -- as one node -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["batch_norm", "instance_norm"])
def test_norms_survive_a_large_mean(name, monkeypatch):
    """The formula for programs takes deviations before it multiplies, like the operators."""
    x = normal(0, *IMAGES) + np.float32(1000)
    found = run(FUNCTIONS[name], wf.tensor(x, requires_grad=True))
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    expected = run(FUNCTIONS[name], wf.tensor(x.astype(np.float64), requires_grad=True), np.float64)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=2e-4 * np.abs(b).max())


def test_statistics_of_a_norm_have_gradients(monkeypatch):
    def statistics(x):
        return normalized(x, *VECTORS, (0, 2, 3), 1e-5)

    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    found = run(statistics, x)
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    assert_close(found, run(statistics, x))


def test_running_statistics_are_those_of_numpy(monkeypatch):
    found = []
    for on in (True, False):
        monkeypatch.setattr(wf.config, "eager_kernels", on)
        norm = wf.nn.BatchNorm2d(C)
        for seed in range(3):
            norm(wf.tensor(normal(seed, *IMAGES)))
        found.append([norm.running_mean.numpy(), norm.running_var.numpy()])
    assert_close(*found)


def test_only_what_requires_a_gradient_gets_one():
    x, weight = wf.tensor(normal(0, *IMAGES)), FILTERS.detach().requires_grad_()
    y = F.conv2d(x, weight)
    assert isinstance(y.grad_fn.op, CompositeKernel)
    y.backward(wf.ones_like(y))
    assert weight.grad.shape == weight.shape
    assert x.grad is None
    with wf.no_grad():
        assert not F.conv2d(x, weight).requires_grad


def test_hooks_retained_gradients_and_freed_graphs():
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    y = F.max_pool2d(x, 2)
    seen = []
    y.register_hook(seen.append)
    y.retain_grad()
    y.backward(wf.ones_like(y), retain_graph=True)
    y.backward(wf.ones_like(y))
    assert len(seen) == 2
    assert y.grad.shape == y.shape
    with pytest.raises(GradientError, match=r"max_pool2d .*retain_graph"):
        y.backward(wf.ones_like(y))


def test_bad_classes_are_refused_as_ever():
    x = wf.tensor(normal(0, 2048, 40))
    target = wf.tensor(np.full(2048, 40))
    with pytest.raises(IndexError, match="40"):
        F.cross_entropy(x, target)


def test_dropped_attention_draws_from_the_generator(monkeypatch):
    found = []
    for on in (True, False):
        monkeypatch.setattr(wf.config, "eager_kernels", on)
        wf.manual_seed(5)
        x = wf.tensor(normal(0, *IMAGES))
        found.append([attention(x, dropout_p=0.5).numpy(), wf.rand(3).numpy()])
    assert_close(*found)


def test_indices_of_maxima_come_along(monkeypatch):
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    values, indices = F.max_pool2d(x, 2, return_indices=True)
    assert not indices.requires_grad
    monkeypatch.setattr(wf.config, "eager_kernels", False)
    expected = F.max_pool2d(x, 2, return_indices=True)
    np.testing.assert_array_equal(values.detach().numpy(), expected[0].detach().numpy())
    np.testing.assert_array_equal(indices.numpy(), expected[1].numpy())


def test_a_result_is_not_kept_alive_without_need():
    x = wf.tensor(normal(0, *IMAGES), requires_grad=True)
    y = F.conv2d(x, FILTERS.detach())
    z = y.sum()
    held = weakref.ref(y._value)
    del y
    gc.collect()
    assert held() is None
    z.backward()
    assert x.grad is not None
