"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from collections import OrderedDict

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.core.errors import ArgumentError


def names(module):
    return [n for n, _ in module.named_children()]


def test_sequential_applies_in_order():
    net = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x = wf.randn(5, 3)
    expected = net[2](net[0](x).relu())
    np.testing.assert_array_equal(net(x).numpy(), expected.numpy())
    assert nn.Sequential()(x) is x


def test_sequential_by_name():
    net = nn.Sequential(OrderedDict(fc=nn.Linear(2, 2), act=nn.Tanh()))
    assert names(net) == ["fc", "act"]
    assert net.fc is net[0]
    assert names(net[1:]) == ["act"]
    del net[0]
    assert names(net) == ["act"]


@pytest.mark.parametrize("kind", [nn.Sequential, lambda *m: nn.ModuleList(m)])
def test_containers_are_sequences(kind):
    a, b, c = nn.ReLU(), nn.Tanh(), nn.Sigmoid()
    box = kind(a, b)
    assert len(box) == 2
    assert list(box) == [a, b]
    assert box[-1] is b
    assert b in box
    assert c not in box
    assert box.append(c) is box
    box.insert(0, c)
    assert list(box) == [c, a, b, c]
    assert names(box) == ["0", "1", "2", "3"]
    assert box.pop(1) is a
    del box[-2:]
    assert list(box) == [c]
    assert names(box) == ["0"]
    box.extend([a, b])
    box[1] = b
    assert list(box) == [c, b, b]
    assert list(box[1:]) == [b, b]
    assert list(box + [a]) == [c, b, b, a]  # noqa: RUF005  (the operator is under test)
    box += [a]
    assert len(box) == 4
    tail = box[2:]
    tail.append(c)
    assert list(tail) == [b, a, c]


def test_sequential_repeats():
    net = nn.Sequential(nn.ReLU()) * 3
    assert len(net) == 3
    assert len(2 * nn.Sequential(nn.ReLU(), nn.Tanh())) == 4


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (lambda: nn.Sequential(nn.ReLU), TypeError, "give an instance, not the class"),
        (lambda: nn.Sequential(nn.ReLU(), 3), TypeError, "holds modules. Received: int 3"),
        (lambda: nn.ModuleList([nn.ReLU()])[1], IndexError, "of 1 modules has no index 1"),
        (lambda: nn.ModuleList([nn.ReLU()])["a"], TypeError, "must be an integer"),
        (lambda: nn.ModuleDict({"a": 3}), TypeError, "ModuleDict holds modules"),
        (lambda: nn.ModuleDict([3]), TypeError, "takes a mapping, or pairs"),
        (lambda: nn.ModuleDict({"keys": nn.ReLU()}), ValueError, "has an attribute 'keys'"),
        (lambda: nn.ModuleDict({})["a"], KeyError, "a"),
        (lambda: nn.ParameterList(wf.zeros(2)), TypeError, "put it in a list"),
        (lambda: nn.ParameterList([3]), TypeError, "holds parameters. Received: int"),
        (lambda: nn.ParameterList([])[0], IndexError, "of 0 parameters has no index 0"),
        (lambda: nn.ParameterDict({})["a"], KeyError, "a"),
    ],
)
def test_errors(act, error, match):
    with pytest.raises(error, match=match):
        act()


def test_module_list_prints_repeats_once():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()])
    assert "(0-1): 2 x Linear(in_features=1, out_features=1, bias=True)" in repr(layers)
    assert "(2): ReLU()" in repr(layers)
    assert repr(nn.ModuleList()) == "ModuleList()"


def test_module_dict():
    heads = nn.ModuleDict({"a": nn.ReLU()})
    heads["b"] = nn.Tanh()
    heads.update([("a", nn.Sigmoid())])
    assert list(heads) == list(heads.keys()) == ["a", "b"]
    assert [type(m).__name__ for m in heads.values()] == ["Sigmoid", "Tanh"]
    assert [n for n, _ in heads.items()] == ["a", "b"]
    assert "a" in heads
    assert len(heads) == 2
    assert isinstance(heads.pop("a"), nn.Sigmoid)
    del heads["b"]
    heads.update({"c": nn.ReLU()})
    heads.clear()
    assert len(heads) == 0


def test_parameter_list():
    weights = nn.ParameterList([wf.zeros(2, 3), np.ones(4)])
    shared = nn.Parameter(wf.zeros(1))
    weights.append(shared)
    weights += [wf.zeros(())]
    assert weights[2] is shared
    assert weights[-1].shape == ()
    assert [p.shape for p in weights[:2]] == [(2, 3), (4,)]
    assert list(weights.state_dict()) == ["0", "1", "2", "3"]
    weights[0] = wf.ones(5)
    assert weights.pop(1).shape == (4,)
    assert [p.shape for p in weights] == [(5,), (1,), ()]
    assert "(0): Parameter containing: [float32 of size 5]" in repr(weights)
    assert repr(nn.ParameterList()) == "ParameterList()"


def test_parameter_dict():
    scales = nn.ParameterDict({"a": wf.ones(2)})
    scales["b"] = wf.ones(3)
    assert list(scales) == list(scales.keys()) == ["a", "b"]
    assert all(p.requires_grad for p in scales.values())
    assert [n for n, _ in scales.items()] == ["a", "b"]
    assert "a" in scales
    assert "(b): Parameter containing: [float32 of size 3]" in repr(scales)
    assert scales.pop("a").shape == (2,)
    del scales["b"]
    scales.update({"c": wf.ones(1)})
    scales.clear()
    assert len(scales) == 0


def with_more(container):
    """Register what is no member: a buffer, and a parameter or a module."""
    container.register_buffer("mean", wf.ones(2))
    if isinstance(container, nn.ParameterList | nn.ParameterDict):
        container.helper = nn.Tanh()
    else:
        container.scale = nn.Parameter(wf.ones(2))
    return container


def test_only_modules_are_members_of_sequences():
    a, b = nn.Linear(2, 2), nn.ReLU()
    x = wf.randn(3, 2)
    for kind in (nn.Sequential, lambda *m: nn.ModuleList(m)):
        box = with_more(kind(a))
        box.append(b)
        assert len(box) == 2
        assert list(box) == [a, b]
        assert box[-1] is b
        assert wf.ones(2) not in box
        assert list(box[:1]) == [a]
        assert len(box + nn.ModuleList([b])) == 3
        assert box.pop() is b
        box.insert(0, b)
        assert names(box) == ["0", "1"]
        del box[0]
        assert list(box) == [a]
        assert list(box.state_dict()) == ["mean", "scale", "0.weight", "0.bias"]
    assert list(with_more(nn.Sequential(a, b)) * 2) == [a, b, a, b]
    np.testing.assert_array_equal(with_more(nn.Sequential(a, b))(x).numpy(), b(a(x)).numpy())


def test_only_items_of_its_kind_are_members_of_a_dictionary():
    for kind, item in ((nn.ModuleDict, nn.ReLU()), (nn.ParameterDict, nn.Parameter(wf.ones(3)))):
        box = with_more(kind({"a": item}))
        assert len(box) == 1
        assert list(box) == list(box.keys()) == ["a"]
        assert list(box.values()) == [item]
        assert list(box.items()) == [("a", item)]
        assert "mean" not in box
        with pytest.raises(KeyError):
            box["mean"]
        with pytest.raises(KeyError):
            box.pop("scale")
        box.clear()
        assert len(box) == 0
        assert "mean" in dict(box.named_buffers())


def test_only_parameters_are_members_of_a_parameter_list():
    a, b = nn.Parameter(wf.ones(2)), nn.Parameter(wf.zeros(3))
    box = with_more(nn.ParameterList([a]))
    box.append(b)
    assert list(box) == [a, b]
    assert len(box) == 2
    assert box[1] is b
    assert box[-2] is a
    assert box.pop(0) is a
    assert [name for name, _ in box.named_parameters()] == ["0"]
    assert list(box[:1]) == [b]


def test_subclasses_may_hold_parameters_of_their_own():
    class Scaled(nn.Sequential):
        def __init__(self, *layers):
            super().__init__(*layers)
            self.scale = nn.Parameter(wf.tensor(3.0))

        def forward(self, x):
            return super().forward(x) * self.scale

    x = wf.randn(2, 2)
    np.testing.assert_allclose(Scaled(nn.Identity())(x).numpy(), x.numpy() * 3, rtol=1e-6)


def test_member_that_is_switched_off_is_none():
    net = nn.Sequential(nn.Identity(), nn.Tanh())
    net.register_module("1", None)
    assert len(net) == 1
    assert net(wf.ones(2)).tolist() == [1.0, 1.0]


def test_name_of_another_kind_is_not_taken_over():
    box = nn.ModuleDict()
    box.register_buffer("x", wf.ones(2))
    with pytest.raises(ArgumentError, match="'x' already, a buffer"):
        box["x"] = nn.ReLU()
    with pytest.raises(ArgumentError, match="'x' already, a buffer"):
        box.register_parameter("x", nn.Parameter(wf.ones(2)))
    assert box.x.tolist() == [1.0, 1.0]
