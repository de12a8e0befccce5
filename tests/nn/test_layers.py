"""Layers against NumPy formulas; PyTorch's own modules are the reference in test_peers_layers."""

import math

import numpy as np
import pytest
from scipy import special

import weft as wf
from weft import nn

rng = np.random.default_rng(0)


def array(*shape):
    return rng.standard_normal(shape)


def run(layer, *inputs):
    """Return the output of a layer in float64 for arrays, as an array."""
    return layer.double()(*(wf.tensor(x) for x in inputs)).numpy()


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def parameters(layer):
    return [p.numpy() for p in layer.double().parameters()]


# -- products ------------------------------------------------------------------------------------


def test_linear():
    layer, x = nn.Linear(3, 5), array(2, 4, 3)
    w, b = parameters(layer)
    check(run(layer, x), x @ w.T + b)
    check(run(nn.Linear(3, 5, bias=False), x * 0), np.zeros((2, 4, 5)))
    assert run(nn.Linear(3, 5), array(0, 3)).shape == (0, 5)
    check(run(nn.Linear(0, 2, bias=False), array(4, 0)), np.zeros((4, 2)))


def test_bilinear():
    layer, x1, x2 = nn.Bilinear(3, 4, 5), array(2, 3), array(2, 4)
    w, b = parameters(layer)
    check(run(layer, x1, x2), np.einsum("ni,oij,nj->no", x1, w, x2) + b)
    with pytest.raises(ValueError, match=r"shapes \(..., 3\) and \(..., 4\). Received: \(2, 3\)"):
        layer(wf.tensor(x1), wf.tensor(x1))


def test_arrays_enter_and_tensors_leave():
    for layer in (nn.Linear(3, 3), nn.ReLU(), nn.Softmax(1), nn.MaxPool1d(1), nn.Flatten()):
        assert isinstance(layer(np.ones((2, 3), np.float32)), wf.Tensor)


def naive_convolution(x, w, stride, padding, dilation, groups):
    """Return the 2-d convolution by its definition."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    n, (outs, each, kh, kw) = x.shape[0], w.shape
    spans = [dilation * (k - 1) + 1 for k in (kh, kw)]
    sizes = [(s - span) // stride + 1 for s, span in zip(x.shape[2:], spans, strict=True)]
    y = np.zeros((n, outs, *sizes))
    for o in range(outs):
        first = o // (outs // groups) * each
        for i in range(sizes[0]):
            for j in range(sizes[1]):
                rows = slice(i * stride, i * stride + spans[0], dilation)
                columns = slice(j * stride, j * stride + spans[1], dilation)
                window = x[:, first : first + each, rows, columns]
                y[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize("settings", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_convolution_and_its_transpose(settings):
    stride, padding, dilation, groups = settings
    options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    layer, x = nn.Conv2d(4, 6, 3, **options), array(2, 4, 7, 8)
    w, b = parameters(layer)
    y = naive_convolution(x, w, *settings)
    check(run(layer, x), y + b[:, None, None])
    # <conv(x), g> = <x, transposed(g)>
    back = nn.ConvTranspose2d(6, 4, 3, bias=False, **options).double()
    back.load_state_dict({"weight": w})
    g = array(*y.shape)
    spread = back(wf.tensor(g), output_size=x.shape[2:]).numpy()
    check((y * g).sum(), (x * spread).sum())


def test_padding_modes_equal_padding_first():
    x = array(2, 3, 5, 6)
    for mode, pad in (
        ("reflect", nn.ReflectionPad2d((2, 2, 1, 1))),
        ("replicate", nn.ReplicationPad2d((2, 2, 1, 1))),
        ("circular", nn.CircularPad2d((2, 2, 1, 1))),
    ):
        layer = nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode=mode)
        plain = nn.Conv2d(3, 4, 3).double()
        plain.load_state_dict(layer.double().state_dict())
        check(run(layer, x), plain(pad(wf.tensor(x))).numpy())


# -- pooling -------------------------------------------------------------------------------------


def test_pooling():
    x = array(2, 3, 8)
    windows = x.reshape(2, 3, 4, 2)
    check(run(nn.MaxPool1d(2), x), windows.max(-1))
    check(run(nn.AvgPool1d(2), x), windows.mean(-1))
    check(run(nn.AdaptiveAvgPool1d(4), x), windows.mean(-1))
    check(run(nn.AdaptiveMaxPool1d(4), x), windows.max(-1))
    check(run(nn.LPPool1d(2.0, 2), x), np.sqrt((windows**2).sum(-1)))
    image = array(2, 3, 4, 6)
    check(run(nn.GlobalAvgPool(), image), image.mean((2, 3), keepdims=True))
    check(run(nn.GlobalMaxPool(), image), image.max((2, 3), keepdims=True))
    cubes = np.abs(array(1, 2, 2, 4, 2))
    expected = (cubes.reshape(1, 2, 1, 2, 2, 2, 1, 2) ** 3).sum((3, 5, 7)) ** (1 / 3)
    check(run(nn.LPPool3d(3.0, 2), cubes), expected)
    zeros = wf.zeros(1, 1, 2, 2, 2, requires_grad=True)
    nn.LPPool3d(2, 2)(zeros).sum().backward()
    np.testing.assert_array_equal(zeros.grad.numpy(), 0)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_unpooling_puts_maxima_back(n):
    x = np.abs(array(2, 3, *(4,) * n)) + 0.1
    pool = getattr(nn, f"MaxPool{n}d")(2, return_indices=True)
    values, index = pool(wf.tensor(x))
    back = getattr(nn, f"MaxUnpool{n}d")(2)(values, index).numpy()
    np.testing.assert_array_equal(back[back != 0], x[back != 0])
    assert (back != 0).sum() == values.size


# -- normalisation -------------------------------------------------------------------------------


def standardized(x, axes, eps=1e-5):
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def test_batch_norm_statistics():
    norm, x = nn.BatchNorm2d(3).double(), array(5, 3, 2, 4) * 3 + 1
    check(run(norm, x), standardized(x, (0, 2, 3)))
    check(norm.running_mean.numpy(), 0.1 * x.mean((0, 2, 3)))
    check(norm.running_var.numpy(), 0.9 + 0.1 * x.var((0, 2, 3), ddof=1))
    assert norm.num_batches_tracked.item() == 1
    norm.eval()
    y = run(norm, x)
    mean, var = (t.numpy()[:, None, None] for t in (norm.running_mean, norm.running_var))
    check(y, (x - mean) / np.sqrt(var + 1e-5))
    assert norm.num_batches_tracked.item() == 1
    norm.reset_running_stats()
    assert norm.running_var.tolist() == [1.0] * 3


def test_batch_norm_without_momentum_averages():
    norm = nn.BatchNorm1d(2, momentum=None).double()
    batches = [array(6, 2) for _ in range(3)]
    for x in batches:
        norm(wf.tensor(x))
    check(norm.running_mean.numpy(), np.mean([x.mean(0) for x in batches], axis=0))


def test_frozen_parameters_do_not_freeze_statistics():
    norm = nn.BatchNorm1d(2).requires_grad_(False)
    norm(wf.randn(4, 2))
    assert norm.running_mean.numpy().any()


def test_earlier_statistics_are_not_overwritten():
    norm = nn.BatchNorm1d(2)
    kept = norm.running_mean.detach()
    norm(wf.randn(4, 2))
    assert kept.tolist() == [0.0, 0.0]


def test_other_norms():
    x = array(2, 4, 3, 5)
    check(run(nn.LayerNorm((3, 5)), x), standardized(x, (2, 3)))
    check(run(nn.InstanceNorm2d(4), x), standardized(x, (2, 3)))
    check(run(nn.InstanceNorm2d(4), x[0]), standardized(x[0], (1, 2)))
    groups = standardized(x.reshape(2, 2, 2, 3, 5), (2, 3, 4)).reshape(x.shape)
    check(run(nn.GroupNorm(2, 4), x), groups)
    scale = np.sqrt((x**2).mean(-1, keepdims=True) + np.finfo(np.float64).eps)
    check(run(nn.RMSNorm(5), x), x / scale)


# -- dropout -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (nn.Dropout, (40, 50)),
        (nn.Dropout1d, (40, 50, 2)),
        (nn.Dropout2d, (40, 50, 2, 2)),
        (nn.Dropout3d, (40, 50, 2, 2, 2)),
    ],
)
def test_dropout_drops_in_training_only(layer, shape):
    wf.manual_seed(0)
    x = wf.ones(shape)
    y = layer(0.25)(x).numpy()
    kept = y.reshape(40, 50, -1)
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.75)}
    assert (kept == kept[..., :1]).all(), "a channel falls as a whole"
    assert (kept == 0).mean() == pytest.approx(0.25, abs=0.04)
    assert layer(0.25).eval()(x) is x
    assert layer(0.0)(x) is x
    assert not layer(1.0)(x).numpy().any()


@pytest.mark.parametrize("layer", [nn.AlphaDropout, nn.FeatureAlphaDropout])
def test_alpha_dropout_keeps_the_moments(layer):
    wf.manual_seed(0)
    y = layer(0.2)(wf.randn(300, 300)).numpy()
    assert y.mean() == pytest.approx(0, abs=0.02)
    assert y.std() == pytest.approx(1, abs=0.02)
    x = wf.ones(3, 3)
    assert layer().eval()(x) is x


# -- activations ---------------------------------------------------------------------------------


def sigmoid(x):
    return special.expit(x)


ACTIVATIONS = {
    nn.ReLU(): lambda x: np.maximum(x, 0),
    nn.ReLU6(): lambda x: np.clip(x, 0, 6),
    nn.LeakyReLU(0.2): lambda x: np.where(x > 0, x, 0.2 * x),
    nn.ELU(0.5): lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)),
    nn.CELU(0.5): lambda x: np.maximum(x, 0) + np.minimum(0, 0.5 * np.expm1(x / 0.5)),
    nn.SELU(): lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    nn.GELU(): lambda x: x * special.ndtr(x),
    nn.GELU("tanh"): lambda x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    nn.SiLU(): lambda x: x * sigmoid(x),
    nn.Mish(): lambda x: x * np.tanh(np.logaddexp(0, x)),
    nn.Softplus(2.0): lambda x: np.logaddexp(0, 2 * x) / 2,
    nn.Softsign(): lambda x: x / (1 + np.abs(x)),
    nn.Sigmoid(): sigmoid,
    nn.LogSigmoid(): lambda x: -np.logaddexp(0, -x),
    nn.Tanh(): np.tanh,
    nn.Tanhshrink(): lambda x: x - np.tanh(x),
    nn.Hardtanh(-2, 0.5): lambda x: np.clip(x, -2, 0.5),
    nn.Hardsigmoid(): lambda x: np.clip(x / 6 + 0.5, 0, 1),
    nn.Hardswish(): lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    nn.Hardshrink(0.3): lambda x: np.where(np.abs(x) > 0.3, x, 0),
    nn.Softshrink(0.3): lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.3, 0),
    nn.Threshold(0.1, 7.0): lambda x: np.where(x > 0.1, x, 7.0),
    nn.PReLU(): lambda x: np.where(x > 0, x, 0.25 * x),
    nn.Softmax(1): lambda x: special.softmax(x, 1),
    nn.LogSoftmax(1): lambda x: special.log_softmax(x, 1),
    nn.Softmin(1): lambda x: special.softmax(-x, 1),
    nn.GLU(1): lambda x: x[:, :2] * sigmoid(x[:, 2:]),
}


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=repr)
def test_activations(layer):
    x = array(3, 4) * 3
    expected = ACTIVATIONS[layer](x)
    np.testing.assert_allclose(run(layer, x), expected, rtol=1e-6, atol=1e-9)
    if not isinstance(layer, nn.GLU):
        assert run(layer, np.zeros((0, 4))).shape == (0, 4)


def test_inplace_does_not_change_the_input():
    x = wf.tensor([-1.0, 1.0])
    for layer in (nn.ReLU(inplace=True), nn.ELU(inplace=True), nn.Dropout(0.5, inplace=True)):
        layer(x)
        assert x.tolist() == [-1.0, 1.0]


def test_rrelu_draws_slopes_in_training():
    wf.manual_seed(0)
    layer, x = nn.RReLU(0.1, 0.3), wf.full((1000,), -1.0, requires_grad=True)
    y = layer(x)
    slopes = -y.numpy()
    assert slopes.min() >= 0.1
    assert slopes.max() < 0.3
    assert slopes.std() > 0.04
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), slopes)
    np.testing.assert_allclose(layer.eval()(x).numpy(), -0.2, rtol=1e-6)


# -- embeddings ----------------------------------------------------------------------------------


def test_embedding_options():
    layer = nn.Embedding(5, 3, padding_idx=-1)
    assert layer.weight[4].tolist() == [0.0] * 3
    layer(wf.tensor([4, 1, 1])).sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy()[[4, 1, 0]], [[0] * 3, [2] * 3, [0] * 3])


@pytest.mark.parametrize(
    "make", [nn.Embedding, lambda *a, **k: nn.EmbeddingBag(*a, mode="sum", **k)]
)
def test_gradients_by_frequency(make):
    layer = make(5, 3, scale_grad_by_freq=True)
    before = layer.weight.numpy().copy()
    out = layer(wf.tensor([[1, 3, 3], [0, 2, 1]]))
    out.sum().backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy(), [[1] * 3] * 4 + [[0] * 3])
    np.testing.assert_array_equal(layer.weight.numpy(), before)


def test_max_norm_shortens_used_rows_only():
    layer = nn.Embedding(4, 3, max_norm=0.5).double()
    before = layer.weight.numpy().copy()
    layer(wf.tensor([1, 1, 2]))
    after = layer.weight.numpy()
    np.testing.assert_array_equal(after[[0, 3]], before[[0, 3]])
    assert (np.linalg.norm(after[[1, 2]], axis=1) <= 0.5 + 1e-7).all()
    assert layer.weight.is_leaf


def test_pretrained_tables():
    table = array(4, 3)
    layer = nn.Embedding.from_pretrained(table, padding_idx=0)
    assert not layer.weight.requires_grad
    check(layer(wf.tensor([2])).numpy(), table[[2]])
    assert nn.EmbeddingBag.from_pretrained(table, freeze=False, mode="sum").weight.requires_grad


def test_embedding_bag():
    layer = nn.EmbeddingBag(5, 3, mode="mean").double()
    w = layer.weight.numpy()
    found = layer(wf.tensor([1, 2, 4, 0]), wf.tensor([0, 3])).numpy()
    check(found, [w[[1, 2, 4]].mean(0), w[0]])
    check(layer(wf.tensor([[1, 2], [0, 0]])).numpy(), [w[[1, 2]].mean(0), w[0]])


# -- shapes --------------------------------------------------------------------------------------


def test_shape_layers():
    x = array(2, 6, 4)
    check(run(nn.Flatten(), x), x.reshape(2, -1))
    check(run(nn.Unflatten(1, (2, 3)), x), x.reshape(2, 2, 3, 4))
    image = array(1, 4, 2, 3)
    shuffled = run(nn.PixelShuffle(2), image)
    assert shuffled.shape == (1, 1, 4, 6)
    check(run(nn.PixelUnshuffle(2), shuffled), image)
    check(run(nn.Upsample(scale_factor=2), image), image.repeat(2, 2).repeat(2, 3))
    check(run(nn.UpsamplingNearest2d(size=(4, 6)), image), image.repeat(2, 2).repeat(2, 3))
    check(run(nn.Fold((2, 3), 1), run(nn.Unfold(1), image)), image)
    same = run(nn.ChannelShuffle(2), image)
    check(same, image[:, [0, 2, 1, 3]])
    assert nn.Identity("anything", at=0)(x) is x


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        ("Zero", "constant"),
        ("Reflection", "reflect"),
        ("Replication", "edge"),
        ("Circular", "wrap"),
    ],
)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_padding_layers(kind, mode, n):
    widths = [(1, 2), (2, 0), (0, 1)][:n]
    flat = tuple(w for pair in widths for w in pair)
    x = array(2, 3, *(4,) * n)
    expected = np.pad(x, [(0, 0), (0, 0), *widths[::-1]], mode=mode)
    check(run(getattr(nn, f"{kind}Pad{n}d")(flat), x), expected)
    check(run(getattr(nn, f"{kind}Pad{n}d")(flat), x[0]), expected[0])


def test_constant_padding_crops_too():
    x = array(1, 2, 4)
    check(run(nn.ConstantPad1d((-1, 2), 9.0), x), np.pad(x[..., 1:], [(0, 0), (0, 0), (0, 2)],
          constant_values=9.0))  # fmt: skip


def test_distances():
    a, b = array(4, 3), array(4, 3)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    check(run(nn.CosineSimilarity(), a, b), (a * b).sum(1) / lengths)
    found = run(nn.PairwiseDistance(1.0, 0.0, keepdim=True), a, b)
    check(found, np.abs(a - b).sum(1, keepdims=True))


# -- all layers ----------------------------------------------------------------------------------


def test_zero_sized_batches_pass():
    for layer, shape in (
        (nn.Conv2d(3, 4, 3), (0, 3, 5, 5)),
        (nn.BatchNorm1d(3).eval(), (0, 3)),
        (nn.LayerNorm(3), (0, 3)),
        (nn.Embedding(3, 2), None),
    ):
        x = wf.zeros(shape) if shape else wf.zeros(0, dtype=wf.int64)
        assert layer(x).shape[0] == 0


def test_same_seed_gives_same_weights():
    def make():
        wf.manual_seed(5)
        return nn.Sequential(nn.Conv2d(1, 2, 3), nn.Linear(3, 4), nn.Embedding(3, 2))

    for a, b in zip(make().parameters(), make().parameters(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_every_layer_takes_a_dtype():
    for layer in (
        nn.Linear(2, 3, dtype="float64"),
        nn.Bilinear(2, 3, 4, dtype="float64"),
        nn.Conv2d(2, 3, 1, dtype="float64", device="cpu"),
        nn.ConvTranspose1d(2, 3, 1, dtype="float64"),
        nn.BatchNorm1d(2, dtype="float64"),
        nn.InstanceNorm1d(2, affine=True, track_running_stats=True, dtype="float64"),
        nn.LayerNorm(2, dtype="float64"),
        nn.GroupNorm(1, 2, dtype="float64"),
        nn.RMSNorm(2, dtype="float64"),
        nn.Embedding(2, 3, dtype="float64"),
        nn.EmbeddingBag(2, 3, dtype="float64"),
        nn.PReLU(dtype="float64"),
        nn.LazyLinear(2, dtype="float64"),
        nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3], dtype="float64"),
    ):
        tensors = [*layer.parameters(), *layer.buffers()]
        assert {t.dtype.name for t in tensors} <= {"float64", "int64"}, layer


def test_adaptive_log_softmax_is_normalised():
    layer = nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10]).double()
    x, target = wf.tensor(array(5, 8)), np.array([0, 5, 19, 3, 10])
    log_prob = layer.log_prob(x).numpy()
    np.testing.assert_allclose(np.exp(log_prob).sum(1), 1)
    output, loss = layer(x, wf.tensor(target))
    check(output.numpy(), log_prob[np.arange(5), target])
    check(loss.numpy(), -output.numpy().mean())
    single = layer(x[2], wf.tensor(19))
    check(single.output.numpy(), output.numpy()[2])
    np.testing.assert_array_equal(layer.predict(x).numpy(), log_prob.argmax(1))
    layer.reset_parameters()
    assert not np.allclose(layer.log_prob(x).numpy(), log_prob)
