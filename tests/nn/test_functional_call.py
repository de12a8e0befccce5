"""functional_call: modules as functions of their parameters."""

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError


class Tied(wf.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = wf.nn.Linear(2, 2, bias=False)
        self.second = wf.nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.second(self.first(x))


def network():
    return wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))


def test_gradients_by_parameters_equal_backward():
    net, x = network(), wf.randn(5, 3)
    params = dict(net.named_parameters())

    def loss(params, x):
        return (wf.nn.functional_call(net, params, x) ** 2).mean()

    grads = wf.grad(loss)(params, x)
    assert all(p.grad is None for p in net.parameters())
    (net(x) ** 2).mean().backward()
    for name, p in net.named_parameters():
        np.testing.assert_allclose(grads[name].numpy(), p.grad.numpy(), rtol=1e-5)


def test_higher_derivatives_by_parameters():
    net, x = network().double(), wf.tensor(np.ones((2, 3)))
    params = dict(net.named_parameters())

    def loss(params):
        return (wf.nn.functional_call(net, params, x) ** 2).mean()

    full = wf.hessian(loss)(params)
    assert full["0.weight"]["2.bias"].shape == (4, 3, 1)
    ones = {name: wf.ones_like(p) for name, p in params.items()}
    along = wf.hvp(loss, (params,), (ones,))
    expected = sum(full["2.bias"][name].numpy().sum() for name in params)
    np.testing.assert_allclose(along["2.bias"].item(), expected)


def test_names_may_be_nested_and_in_parts():
    net, x = network(), wf.randn(2, 3)
    plain = dict(net.named_parameters())
    nested = {"0": {"weight": plain["0.weight"] * 2}, "2": {"bias": plain["2.bias"] + 1}}
    parts = ({"0.weight": nested["0"]["weight"]}, {"2.bias": nested["2"]["bias"]})
    first = wf.nn.functional_call(net, nested, x)
    assert first.tolist() == wf.nn.functional_call(net, parts, x).tolist()
    assert first.tolist() != net(x).tolist()


def test_a_shared_tensor_is_named_once():
    net, x = Tied(), wf.tensor([1.0, 2.0])
    doubled = wf.tensor(2 * np.eye(2, dtype=np.float32))
    for name in ("first.weight", "second.weight"):
        assert wf.nn.functional_call(net, {name: doubled}, x).tolist() == [4.0, 8.0]
    both = {"first.weight": doubled, "second.weight": doubled}
    assert wf.nn.functional_call(net, both, x).tolist() == [4.0, 8.0]
    with pytest.raises(ArgumentError, match="one tensor"):
        wf.nn.functional_call(net, {**both, "second.weight": doubled + 0}, x)


def test_buffers_that_are_given_take_the_updates():
    norm, x = wf.nn.BatchNorm1d(2), wf.randn(8, 2)
    given = {name: b.clone() for name, b in norm.named_buffers()}
    wf.nn.functional_call(norm, given, x)
    assert norm.running_mean.tolist() == [0.0, 0.0]
    assert given["running_mean"].tolist() != [0.0, 0.0]
    wf.nn.functional_call(norm, {}, x)
    assert norm.running_mean.tolist() == given["running_mean"].tolist()


def test_updates_inside_transforms_hold_no_derivative():
    norm, x = wf.nn.BatchNorm1d(2), wf.randn(8, 2)

    def loss(params):
        return (wf.nn.functional_call(norm, params, x) ** 3).sum()

    params = dict(norm.named_parameters())
    wf.hvp(loss, (params,), (params,))
    assert type(norm.running_mean) is wf.Tensor
    assert not norm.running_mean.requires_grad


def test_the_module_is_restored_after_an_error():
    net = network()
    weight = net[0].weight
    with pytest.raises(wf.WeftError):
        wf.nn.functional_call(net, {"0.weight": wf.zeros((7, 7))}, wf.randn(2, 3))
    assert net[0].weight is weight


def test_mistakes_are_explained():
    net = network()
    with pytest.raises(ArgumentError, match=r"no tensor '5\.weight'"):
        wf.nn.functional_call(net, {"5.weight": wf.zeros(1)}, wf.randn(1, 3))
    with pytest.raises(ArgumentTypeError, match="must be a tensor"):
        wf.nn.functional_call(net, {"0.weight": 3}, wf.randn(1, 3))
    with pytest.raises(ArgumentTypeError, match="a mapping"):
        wf.nn.functional_call(net, wf.zeros(3), wf.randn(1, 3))
