"""Layers whose input size is open until the first input or a loaded state."""

import copy

import numpy as np
import pytest

import weft as wf
from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft import nn

LAYERS = [
    (lambda: nn.LazyLinear(4), (5, 3), nn.Linear, {"in_features": 3}),
    (lambda: nn.Linear(None, 4, bias=False), (5, 3), nn.Linear, {"in_features": 3}),
    (lambda: nn.LazyConv1d(4, 3), (2, 3, 7), nn.Conv1d, {"in_channels": 3}),
    (lambda: nn.LazyConv2d(4, 3), (2, 3, 7, 7), nn.Conv2d, {"in_channels": 3}),
    (lambda: nn.LazyConv2d(4, 3, groups=2), (6, 7, 7), nn.Conv2d, {"in_channels": 6}),
    (lambda: nn.LazyConv3d(4, 2), (2, 3, 4, 4, 4), nn.Conv3d, {"in_channels": 3}),
    (lambda: nn.LazyConvTranspose1d(4, 3), (2, 3, 7), nn.ConvTranspose1d, {"in_channels": 3}),
    (lambda: nn.LazyConvTranspose2d(4, 3), (2, 3, 7, 7), nn.ConvTranspose2d, {"in_channels": 3}),
    (lambda: nn.LazyConvTranspose3d(4, 2), (2, 3, 2, 2, 2), nn.ConvTranspose3d, {}),
    (nn.LazyBatchNorm1d, (5, 3), nn.BatchNorm1d, {"num_features": 3}),
    (lambda: nn.LazyBatchNorm2d(affine=False), (5, 3, 2, 2), nn.BatchNorm2d, {"num_features": 3}),
    (nn.LazyBatchNorm3d, (5, 3, 2, 2, 2), nn.BatchNorm3d, {"num_features": 3}),
    (lambda: nn.BatchNorm2d(None), (5, 3, 2, 2), nn.BatchNorm2d, {"num_features": 3}),
    (nn.LazyInstanceNorm1d, (5, 3, 4), nn.InstanceNorm1d, {"num_features": 3}),
    (lambda: nn.LazyInstanceNorm2d(affine=True), (3, 4, 4), nn.InstanceNorm2d, {}),
    (nn.LazyInstanceNorm3d, (5, 3, 2, 2, 2), nn.InstanceNorm3d, {"num_features": 3}),
]


@pytest.mark.parametrize(("make", "shape", "becomes", "sizes"), LAYERS)
def test_the_first_input_settles_the_layer(make, shape, becomes, sizes):
    layer = make()
    before = list(layer.parameters())
    y = layer(wf.randn(shape))
    assert type(layer) is becomes
    for name, size in sizes.items():
        assert getattr(layer, name) == size
    assert all(a is b for a, b in zip(before, layer.parameters(), strict=True))
    assert all(type(p) is nn.Parameter and p.requires_grad for p in layer.parameters())
    assert np.isfinite(y.numpy()).all()
    assert not layer._hooks
    if before:
        y.sum().backward()
        assert all(p.grad is not None for p in before)


@pytest.mark.parametrize(("make", "shape", "becomes", "sizes"), LAYERS)
def test_a_state_settles_the_layer(make, shape, becomes, sizes):
    source = make()
    x = wf.randn(shape)
    source(x)
    state = source.state_dict()
    layer = make()
    before = wf.get_rng_state()
    assert not layer.load_state_dict(state)
    assert wf.get_rng_state() == before, "loading draws no random numbers"
    if state:
        assert type(layer) is becomes
    np.testing.assert_array_equal(layer.eval()(x).numpy(), source.eval()(x).numpy())


def test_initialisation_is_that_of_the_settled_layer():
    wf.manual_seed(3)
    plain = nn.Linear(3, 4)
    wf.manual_seed(3)
    lazy = nn.LazyLinear(4)
    lazy(wf.zeros(1, 3))
    np.testing.assert_array_equal(lazy.bias.shape, plain.bias.shape)
    np.testing.assert_array_equal(lazy.weight.numpy(), plain.weight.numpy())


def test_an_open_layer_has_no_state():
    net = nn.Sequential(nn.ReLU(), nn.LazyLinear(4))
    with pytest.raises(ValueError, match=r"LazyLinear.weight has no shape yet: run the model once"):
        net.state_dict()
    with pytest.raises(ValueError, match="no shape yet"):
        nn.init.ones_(net[1].weight)
    assert repr(net[1].weight) == "UninitializedParameter()"


def test_a_misfitting_state_is_refused():
    layer = nn.LazyLinear(4)
    with pytest.raises(ValueError, match=r"weight: expected \(4, 3\), received \(5, 3\)"):
        layer.load_state_dict({"weight": wf.zeros(5, 3), "bias": wf.zeros(4)})
    with pytest.raises(ValueError, match="Mismatched: weight"):
        layer.load_state_dict({"weight": wf.zeros(5), "bias": wf.zeros(4)})
    assert layer._pending
    report = layer.load_state_dict({"bias": wf.ones(4)}, strict=False)
    assert report.missing == ["weight"]
    assert layer._pending


def test_a_partial_state_leaves_no_garbage():
    norm = nn.LazyBatchNorm1d()
    norm.load_state_dict({"running_mean": wf.ones(3)}, strict=False)
    assert norm.num_features == 3
    assert norm.weight.tolist() == [1.0] * 3
    assert norm.running_var.tolist() == [1.0] * 3
    assert norm.running_mean.tolist() == [1.0] * 3


def on_a_device(make):
    with wf.device("opaque:0"):
        return make()


@pytest.mark.parametrize(
    "place",
    [
        lambda make: make().to("opaque:0"),
        on_a_device,
        lambda make: make().to(device="opaque:0", dtype=wf.float64).float(),
    ],
)
@pytest.mark.parametrize("make", [nn.LazyBatchNorm1d, lambda: nn.LazyLinear(2)])
def test_the_device_is_that_of_the_layer(make, place, opaque):  # noqa: F811  (the fixture)
    called, loaded = place(make), place(make)
    called(wf.ones(4, 3, device="opaque:0"))
    state = make().cpu()
    state(wf.ones(4, 3))
    loaded.load_state_dict(state.state_dict())
    for net in (called, loaded):
        assert {t.device for t in (*net.parameters(), *net.buffers())} == {"opaque:0"}


def test_dtype_freezing_and_copies_survive():
    layer = nn.LazyLinear(2).to(wf.float64)
    layer.weight.requires_grad_(False)
    other = copy.deepcopy(layer)
    layer(wf.zeros(3, dtype=wf.float64))
    assert layer.weight.dtype == wf.float64
    assert not layer.weight.requires_grad
    assert other._pending
    assert other(wf.zeros(5, dtype=wf.float64)).shape == (2,)


@pytest.mark.parametrize(
    ("layer", "given", "error", "match"),
    [
        (lambda: nn.LazyLinear(2), "text", TypeError, "learns its in_features from its first"),
        (lambda: nn.LazyLinear(2), wf.tensor(1.0), ValueError, "features"),
        (lambda: nn.LazyConv2d(2, 3), wf.zeros(2, 3), ValueError, "must have 4 dimensions, or 3"),
        (
            lambda: nn.LazyConv2d(2, 3, groups=2),
            wf.zeros(3, 5, 5),
            ValueError,
            "groups must divide",
        ),
        (nn.LazyBatchNorm2d, wf.zeros(2, 3), ValueError, r"shape \(N, C, H, W\)"),
    ],
)
def test_bad_first_inputs(layer, given, error, match):
    layer = layer()
    with pytest.raises(error, match=match):
        layer(given)
    assert layer._pending
