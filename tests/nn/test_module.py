"""The Module base: registering, walking, state, modes, copies, printing."""

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.norm = nn.BatchNorm1d(4)
        self.second = nn.Linear(4, 2, bias=False)
        self.register_buffer("scale", wf.tensor([2.0, 3.0]))
        self.register_buffer("cache", wf.zeros(1), persistent=False)

    def forward(self, x):
        return self.second(self.norm(self.first(x)).relu()) * self.scale


NAMES = [
    "first.weight",
    "first.bias",
    "norm.weight",
    "norm.bias",
    "norm.running_mean",
    "norm.running_var",
    "norm.num_batches_tracked",
    "second.weight",
    "scale",
]


# -- registering ---------------------------------------------------------------------------------


def test_assignment_registers_by_kind():
    net = Net()
    assert [n for n, _ in net.named_children()] == ["first", "norm", "second"]
    assert [n for n, _ in net.named_parameters()] == [*NAMES[:4], "second.weight"]
    assert {n for n, _ in net.named_buffers()} == {*NAMES[4:7], "scale", "cache"}
    assert [n for n, _ in net.named_modules()] == ["", "first", "norm", "second"]


def test_assigning_before_init_explains():
    class Early(nn.Module):
        def __init__(self):
            self.layer = 1

    with pytest.raises(TypeError, match=r"call super\(\).__init__\(\) before assigning 'layer'"):
        Early()


def test_forward_must_be_defined():
    with pytest.raises(TypeError, match="Module defines no forward"):
        nn.Module()(1)


def test_a_registered_place_keeps_its_kind():
    net = Net()
    with pytest.raises(TypeError, match=r"Net.first is a module; assign another module or None"):
        net.first = 3
    with pytest.raises(TypeError, match=r"Linear.weight is a parameter"):
        net.first.weight = wf.zeros(4, 3)
    net.first.weight = nn.Parameter(wf.zeros(4, 3))
    net.scale = wf.tensor([1.0, 1.0])
    assert "scale" in dict(net.named_buffers())
    net.second = None
    assert "second" not in dict(net.named_children())
    del net.norm
    assert not hasattr(net, "norm")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda m: m.register_parameter("w", wf.zeros(2)), TypeError, "'w' must be a Parameter"),
        (lambda m: m.register_buffer("b", [1.0]), TypeError, "'b' must be a Tensor or None"),
        (lambda m: m.add_module("m", nn.Linear), TypeError, "'m' must be a Module or None"),
        (lambda m: m.register_buffer("a.b", None), ValueError, "without dots"),
        (lambda m: m.register_buffer("", None), ValueError, "non-empty"),
        (lambda m: m.register_buffer("forward", None), ValueError, "has an attribute 'forward'"),
        (lambda m: m.add_module(3, None), ValueError, "Received: 3"),
    ],
)
def test_bad_registrations(call, error, match):
    with pytest.raises(error, match=match):
        call(nn.Linear(2, 2))


def test_paths():
    net = nn.Sequential(Net(), nn.ReLU())
    assert net.get_submodule("0.first") is net[0].first
    assert net.get_submodule("") is net
    assert net.get_parameter("0.first.bias") is net[0].first.bias
    assert net.get_buffer("0.norm.running_mean") is net[0].norm.running_mean
    with pytest.raises(ValueError, match=r"Net has no submodule 'third' .*it has: first, norm"):
        net.get_submodule("0.third")
    with pytest.raises(ValueError, match="has no parameter 'gain'"):
        net.get_parameter("0.norm.gain")


def test_shared_modules_and_parameters_count_once():
    shared = nn.Linear(3, 3)
    net = nn.Sequential(shared, nn.ReLU(), shared)
    assert len(list(net.parameters())) == 2
    assert len(list(net.modules())) == 3
    assert list(net.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_tied_weights_train_together():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.out = nn.Linear(3, 5, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, index):
            return self.out(self.embed(index))

    net = Tied()
    assert [n for n, _ in net.named_parameters()] == ["embed.weight"]
    net(wf.tensor([1, 2])).sum().backward()
    assert net.embed.weight.grad is net.out.weight.grad
    copied = copy.deepcopy(net)
    assert copied.out.weight is copied.embed.weight
    assert copied.out.weight is not net.out.weight
    state = net.state_dict()
    state["out.weight"] = wf.ones(5, 3)
    net.load_state_dict(state)
    np.testing.assert_array_equal(net.embed.weight.numpy(), 1)


# -- state ---------------------------------------------------------------------------------------


def test_state_dict_round_trips_and_keeps_its_values():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == NAMES
    assert not any(t.requires_grad for t in state.values())
    before = state["first.weight"].numpy().copy()
    with wf.no_grad():
        net.first.weight.zero_()
    np.testing.assert_array_equal(state["first.weight"].numpy(), before)
    report = other.load_state_dict(state)
    assert not report
    for name, value in other.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), state[name].numpy())


def test_loading_takes_arrays_and_converts_dtypes():
    layer = nn.Linear(2, 1)
    layer.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": np.array([3])})
    assert layer.weight.dtype == wf.float32
    assert layer.weight.tolist() == [[1.0, 2.0]]
    assert layer.weight.requires_grad
    layer.load_state_dict(
        {"weight": wf.ones(1, 2, dtype=wf.float64), "bias": wf.ones(1)}, assign=True
    )
    assert layer.weight.dtype == wf.float64


def test_misfits_are_reported_and_change_nothing():
    net = Net()
    state = net.state_dict()
    wrong = {**state, "extra": wf.zeros(1), "first.weight": wf.zeros(9, 9)}
    del wrong["scale"]
    before = {n: t.numpy().copy() for n, t in state.items()}
    with pytest.raises(ValueError, match=r"Missing: scale. Unexpected: extra. Mismatched: first"):
        net.load_state_dict(wrong)
    wrong["first.bias"] = wf.ones(4)
    report = net.load_state_dict(wrong, strict=False)
    assert report.missing == ["scale"]
    assert report.unexpected == ["extra"]
    assert report.mismatched == ["first.weight: expected (4, 3), received (9, 9)"]
    np.testing.assert_array_equal(net.first.weight.numpy(), before["first.weight"])
    np.testing.assert_array_equal(net.first.bias.numpy(), 1)
    with pytest.raises(TypeError, match="expected a mapping"):
        net.load_state_dict([1])


def test_long_reports_are_cut():
    net = nn.Sequential(*(nn.Linear(1, 1) for _ in range(20)))
    with pytest.raises(ValueError, match="and 30 more"):
        net.load_state_dict({})


# -- modes and conversion ------------------------------------------------------------------------


def test_train_and_eval_reach_the_whole_tree():
    net = Net()
    assert net.eval() is net
    assert not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())
    with pytest.raises(TypeError, match="mode must be True or False"):
        net.train("yes")


def test_conversion_keeps_integers_and_gradients():
    net = Net()
    net(wf.randn(5, 3)).sum().backward()
    assert net.to(wf.float64) is net
    assert {p.dtype for p in net.parameters()} == {np.dtype("float64")}
    assert net.first.weight.grad.dtype == np.float64
    assert net.norm.num_batches_tracked.dtype == np.int64
    assert net.half().first.weight.dtype == np.float16
    assert net.float().to("cpu").cpu().first.weight.dtype == np.float32
    assert net.to(wf.zeros(1, dtype=wf.float64)).first.weight.dtype == np.float64
    with pytest.raises(TypeError, match=r"float dtype\. Received: int64"):
        net.to(wf.int64)
    with pytest.raises(ValueError, match="device must be one of 'cpu', "):
        net.to("cuda")


def test_freezing_and_zero_grad():
    net = Net()
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())
    net.requires_grad_()
    net(wf.randn(5, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    np.testing.assert_array_equal(net.first.weight.grad.numpy(), 0)
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_apply_visits_children_first():
    seen = []
    net = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    assert net.apply(lambda m: seen.append(type(m).__name__)) is net
    assert seen == ["ReLU", "Sequential", "Tanh", "Sequential"]


# -- copies --------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent(clone):
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.LazyLinear(2)).eval()
    other = clone(net)
    x = wf.randn(5, 3)
    assert other(x).shape == (5, 2)
    assert not other.training
    assert repr(net[2]).startswith("LazyLinear")
    assert repr(other[2]).startswith("Linear")
    with wf.no_grad():
        other[0].weight.zero_()
    assert net[0].weight.numpy().any()
    assert other[0].weight.requires_grad


# -- functional_call -----------------------------------------------------------------------------


def test_functional_call_exchanges_tensors_for_one_call():
    layer = nn.Linear(2, 1)
    own = layer.weight
    w = wf.tensor([[1.0, 2.0]], requires_grad=True)
    y = nn.functional_call(layer, {"weight": w, "bias": wf.zeros(1)}, wf.tensor([3.0, 4.0]))
    assert y.tolist() == [11.0]
    y.backward()
    assert w.grad.tolist() == [[3.0, 4.0]]
    assert layer.weight is own
    with pytest.raises(ValueError, match="Linear has no tensor 'gain'"):
        nn.functional_call(layer, {"gain": w}, wf.zeros(2))


def test_functional_call_exchanges_shared_tensors_everywhere():
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    net[1].weight = net[0].weight
    y = nn.functional_call(net, {"0.weight": wf.eye(2) * 3.0}, wf.ones(2))
    assert y.tolist() == [9.0, 9.0]


def test_functional_call_restores_after_an_error():
    layer = nn.Linear(2, 1)
    own = layer.weight
    with pytest.raises(ValueError, match="linear"):
        nn.functional_call(layer, {"weight": wf.zeros(1, 7)}, wf.zeros(2))
    assert layer.weight is own


# -- printing ------------------------------------------------------------------------------------


def test_repr_nests():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(1, 2), nn.ReLU())

        def extra_repr(self):
            return "depth=1"

    assert repr(Block()) == (
        "Block(\n  depth=1\n  (body): Sequential(\n"
        "    (0): Linear(in_features=1, out_features=2, bias=True)\n    (1): ReLU()\n  )\n)"
    )


def test_parameters_from_data():
    assert nn.Parameter([1.0, 2.0]).dtype == wf.float32
    assert not nn.Parameter(wf.tensor([1, 2]), requires_grad=False).requires_grad
    with pytest.raises(TypeError, match="floating-point"):
        nn.Parameter(wf.tensor([1, 2]))
    with pytest.raises(TypeError, match="numbers"):
        nn.Parameter("weights")
