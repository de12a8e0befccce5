"""Links and chains: names, parameters, copies and files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from weft import chainer
from weft.chainer import functions as F
from weft.chainer import links as L
from weft.chainer import serializers


class Net(chainer.Chain):
    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.first = L.Linear(None, 3)
            self.bn = L.BatchNormalization(3)
            self.last = L.Linear(3, 2)
        self.outside = L.Linear(2, 2)  # not of the chain: assigned outside the scope

    def forward(self, x):
        return self.last(F.relu(self.bn(self.first(x))))


def test_names_and_parameters() -> None:
    net = Net()
    net(np.ones((2, 4), "f"))
    names = [name for name, _ in net.namedparams()]
    assert names == ["/bn/beta", "/bn/gamma", "/first/W", "/first/b", "/last/W", "/last/b"]
    assert [name for name, _ in net.namedlinks()] == ["/", "/bn", "/first", "/last"]
    assert net.count_params() == 3 + 3 + 12 + 3 + 6 + 2
    assert net["first"] is net.first
    assert net.first.name == "first"


def test_shared_links_count_once() -> None:
    net = chainer.Chain()
    with net.init_scope():
        net.a = L.Linear(2, 2)
    net.add_link("b", net.a)
    assert len(list(net.params())) == 2


def test_lists_of_links() -> None:
    made = chainer.ChainList(L.Linear(2, 3), L.Linear(3, 1))
    made.append(L.Linear(1, 1))
    assert len(made) == 3
    assert made[1].name == "1"
    assert [name for name, _ in made.namedparams()][:2] == ["/0/W", "/0/b"]
    with pytest.raises(TypeError, match="non-link object"):
        made.append(F.relu)


def test_sequential() -> None:
    model = chainer.Sequential(L.Linear(2, 3), F.relu, L.Linear(3, 1))
    x = np.ones((4, 2), "f")
    wanted = model[2](F.relu(model[0](x)))
    np.testing.assert_array_equal(model(x).array, wanted.array)
    twice = chainer.Sequential(L.Linear(2, 2), F.relu).repeat(2)
    assert len(twice) == 4
    assert twice[0].W is not twice[2].W
    model.insert(1, F.tanh)
    assert model.pop(1) is F.tanh
    assert len(model) == 3
    assert len(chainer.Sequential(model, F.relu).flatten()) == 4


@pytest.mark.parametrize(
    ("mode", "is_shared", "is_equal"),
    [("share", True, True), ("copy", False, True), ("init", False, False)],
)
def test_copies(mode: str, is_shared: bool, is_equal: bool) -> None:
    net = chainer.Sequential(L.Linear(2, 3))
    other = net.copy(mode)
    before = other[0].W.array.copy()
    assert np.array_equal(before, net[0].W.array) == is_equal
    net[0].W.array = np.full((3, 2), 9, "f")
    assert np.array_equal(other[0].W.array, before) != is_shared


def test_values_and_gradients_of_another_link() -> None:
    one, other = L.Linear(2, 3), L.Linear(2, 3)
    one.copyparams(other)
    np.testing.assert_array_equal(one.W.array, other.W.array)
    for link in (one, other):
        F.sum(link(np.ones((1, 2), "f"))).backward()
    one.addgrads(other)
    np.testing.assert_array_equal(one.b.grad, [2, 2, 2])
    one.cleargrads()
    assert one.W.grad is None


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_files(tmp_path: Path, kind: str) -> None:
    if kind == "hdf5":
        pytest.importorskip("h5py")
    save, load = getattr(serializers, f"save_{kind}"), getattr(serializers, f"load_{kind}")
    net, other = Net(), Net()
    x = np.linspace(-1, 1, 12, dtype="f").reshape(3, 4)
    net(x)
    save(str(tmp_path / "net"), net)
    load(str(tmp_path / "net"), other)
    with chainer.using_config("train", False):
        np.testing.assert_array_equal(net(x).array, other(x).array)


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    serializers.save_npz(str(tmp_path / "one"), L.Linear(2, 3))
    with pytest.raises(KeyError, match="0/W is not a file in the archive"):
        serializers.load_npz(str(tmp_path / "one"), chainer.Sequential(L.Linear(2, 3)))
    with pytest.raises(ValueError, match=r"has the shape \(3, 2\); the parameter has \(3, 5\)"):
        serializers.load_npz(str(tmp_path / "one"), L.Linear(5, 3))
    np.savez(tmp_path / "evil.npz", W=np.array([object()]), b=np.zeros(3))
    with pytest.raises(ValueError, match="allow_pickle"):
        serializers.load_npz(str(tmp_path / "evil.npz"), L.Linear(2, 3))


def test_registration_errors() -> None:
    class Forgot(chainer.Chain):
        def __init__(self) -> None:
            with self.init_scope():
                pass

    with pytest.raises(RuntimeError, match=r"call super\(\).__init__\(\)"):
        Forgot()
    net = Net()
    with pytest.raises(AttributeError, match="attribute exists"):
        net.add_link("first", L.Linear(1, 1))
    with pytest.raises(KeyError, match="there is no link 'second'"):
        _ = net["second"]


def test_shapes_that_do_not_fit_are_told_in_chainers_words() -> None:
    with pytest.raises(
        chainer.utils.type_check.InvalidType, match=r"(?s)linear.*Expect: x\.shape\[1\]"
    ):
        L.Linear(3, 2)(np.ones((1, 4), "f"))
