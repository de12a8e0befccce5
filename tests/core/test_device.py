"""Devices: objects that are their names, accepted wherever a device is."""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys
import threading

import numpy as np
import pytest

import weft as wf
from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft.core.device import current_device
from weft.core.modes import modes

CPU = wf.device("cpu")
REFERENCE = wf.device("reference")
F = wf.nn.functional


def test_a_device_is_its_name():
    assert CPU == "cpu"
    assert CPU == wf.device("cpu") == wf.device(CPU) == wf.device("cpu:0")
    assert {CPU: 1}["cpu"] == 1
    assert (repr(CPU), str(CPU), f"{CPU}", CPU.type) == ("device('cpu')", "cpu", "cpu", "cpu")
    assert CPU != "cuda"


def test_copies_are_the_same_device():
    for again in (copy.copy(CPU), copy.deepcopy(CPU), pickle.loads(pickle.dumps(CPU))):
        assert again == CPU
        assert isinstance(again, wf.device)


def test_the_devices_that_there_are():
    """Two are always there; others are where their drivers are."""
    found = wf.devices()
    assert [d for d in found if d.type not in ("cuda", "opencl")] == [CPU, REFERENCE]
    assert [CPU, REFERENCE] == ["cpu", "reference"]
    assert len(found) == len(set(found))


def test_tensors_and_symbols_say_where_they_are():
    assert wf.ones(2).device == CPU
    assert isinstance(wf.nn.Linear(2, 2).weight.device, wf.device)
    with wf.Graph():
        x = wf.placeholder((2,))
        assert repr((x * 2).device) == "device('cpu')"


@pytest.mark.parametrize("name", ["cpu", CPU, wf.device("cpu:0"), "cpu:0"])
def test_every_argument_takes_one(name):
    x = wf.tensor([1.0], device=name)
    assert x.to(name) is x
    assert x.to(device=name) is x
    assert x.to(name, wf.float64).dtype == wf.float64
    assert wf.zeros(2, device=name).device == wf.arange(3, device=name).device == "cpu"
    assert wf.randn(2, device=name).device == wf.zeros_like(x, device=name).device
    net = wf.nn.Linear(2, 2, device=name)
    assert net.to(name) is net
    assert net.to(device=name) is net


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "gpu", "abacus", "cpu:1", "", 3, None])
def test_others_are_refused(name):
    names = ", ".join(map(repr, map(str, wf.devices())))
    message = re.escape(f"must be one of {names} (see wf.devices())")
    with pytest.raises(ValueError, match=message) as caught:
        wf.device(name)
    assert repr(name) in str(caught.value)


def test_a_context_places_what_is_built():
    with wf.Graph() as graph, CPU as inside:
        assert inside is CPU
        x = wf.placeholder((2,), name="x")
        with CPU, wf.device("cpu"):  # one object may be entered again
            y = x * 2
    assert {node.device for node in graph.nodes} == {"cpu"}
    assert {type(node.device) for node in graph.nodes} == {str}  # plain data, to be hashed
    assert wf.Session(graph).run(y, {x: np.ones(2)}).tolist() == [2, 2]


def test_an_error_leaves_the_context():
    other = str.__new__(wf.device, "other")
    seen = []

    def fail():
        with other:
            assert current_device() == "other"
            thread = threading.Thread(target=lambda: seen.append(current_device()))
            thread.start()
            thread.join()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert current_device() == "cpu"
    assert seen == ["cpu"]


# -- tensors on another device ---------------------------------------------------------------------


@pytest.fixture
def x():
    return wf.tensor([1.0, 2.0, 3.0], device="reference")


MAKERS = (
    lambda: wf.tensor([1, 2]),
    lambda: wf.asarray(np.ones(2)),
    lambda: wf.asarray(np.ones(2), copy=False),
    lambda: wf.zeros(2),
    lambda: wf.full((2,), wf.tensor(3.0)),
    lambda: wf.eye(2),
    lambda: wf.arange(3),
    lambda: wf.linspace(0, 1, 3),
    lambda: wf.randn(2),
    lambda: wf.randperm(3),
    lambda: wf.empty_like(wf.ones(2)),
    lambda: wf.zeros_like(wf.ones(2)),
    lambda: wf.nn.Linear(2, 2).weight,
    lambda: wf.ones(2) + 1,
    lambda: wf.nn.LSTM(2, 3)(wf.ones(4, 1, 2))[0],
)


@pytest.mark.parametrize("make", MAKERS)
def test_a_context_makes_tensors_on_its_device(make):
    assert make().device == CPU
    with REFERENCE:
        assert make().device == REFERENCE
    assert make().device == CPU


KEEPING = (
    lambda x: x * 2 + 1,
    lambda x: 3 - x,
    lambda x: x + np.ones(3, np.float32),
    lambda x: wf.exp(x)[1:],
    lambda x: wf.concat([x, x]),
    lambda x: wf.split(x, 1)[2],
    lambda x: x.detach(),
    lambda x: x.clone(),
    lambda x: x.to(wf.float64),
    wf.tensor,
    wf.zeros_like,
    copy.deepcopy,
    lambda x: pickle.loads(pickle.dumps(x)),
    wf.nn.Parameter,
    lambda x: F.dropout(x, 0.5),
    lambda x: F.one_hot(x.to(wf.int64), 4),
    lambda x: F.cross_entropy(x, wf.tensor(1, device="reference")),
    lambda x: wf.grad(lambda y: (y * x).sum())(x),
    lambda x: wf.jvp(lambda y: y * x, (x,), (x,))[1],
    wf.vmap(lambda y: y * 2),
    lambda x: wf.checkpoint(lambda y: y * x)(x),
    lambda x: next(iter(x)),
)


@pytest.mark.parametrize("function", KEEPING)
def test_results_are_where_the_operands_are(function, x):
    assert function(x).device == REFERENCE


def test_values_are_the_same_there(x):
    here = wf.tensor([1.0, 2.0, 3.0])
    assert (x * 2).numpy().tolist() == (here * 2).numpy().tolist()
    assert repr(x) == repr(here)


def test_gradients_are_where_their_tensors_are():
    w = wf.tensor([1.0, 2.0], requires_grad=True, device="reference")
    (w * w).sum().backward()
    assert w.grad.tolist() == [2, 4]
    assert w.grad.device == REFERENCE


def test_a_tensor_that_is_moved_is_a_step_of_the_tape():
    w = wf.tensor([1.0, 2.0], requires_grad=True)
    there = w.to("reference")
    assert (there.device, w.device) == (REFERENCE, CPU)
    (there * there).sum().to("cpu").backward()
    assert w.grad.tolist() == [2, 4]
    assert w.grad.device == CPU


def test_two_devices_do_not_mix(x):
    message = r"add: operands are on device\('reference'\) and device\('cpu'\).*x.to\('cpu'\)"
    with pytest.raises(ValueError, match=message):
        x + wf.ones(3)
    with pytest.raises(ValueError, match="add: operands are on"):
        x += wf.ones(3)
    assert (x.to("cpu") + wf.ones(3)).tolist() == [2, 3, 4]
    assert (x + wf.ones(3).to("reference")).device == REFERENCE


def test_modules_that_were_not_moved_are_told(opaque):  # noqa: F811  (the fixture)
    x = wf.ones(4, 3, device="opaque:0")
    message = r"linear: operands are on .*'opaque:0'.*'cpu'.*model.to\('opaque:0'\)"
    with pytest.raises(ValueError, match=message):
        wf.nn.Linear(3, 2)(x)
    with pytest.raises(ValueError, match=message), wf.no_grad():
        wf.nn.Sequential(wf.nn.Linear(3, 2))(x)
    with pytest.raises(ValueError, match=message):
        wf.nn.Linear(3, 2).to("opaque:0")(wf.ones(3, requires_grad=True))
    net = wf.nn.Sequential(wf.nn.BatchNorm1d(3), wf.nn.Dropout(0.5)).to("opaque:0")
    assert net(x).device == "opaque:0"  # masks and counts go with it


@pytest.mark.parametrize(
    "transformed",
    [
        wf.vmap,
        wf.grad,
        lambda f: lambda x: wf.jvp(f, (x,), (x,))[1],
        lambda f: wf.hessian(lambda x: f(x) * f(x)),
        lambda f: lambda x: wf.linearize(f, x)[1](x),
    ],
)
def test_transforms_that_begin_before_a_tensor_is_on_a_device(transformed, opaque):  # noqa: F811
    x = wf.tensor([1.0, -2.0, 3.0])
    assert modes.base is None
    found = transformed(lambda x: (x.to("opaque:0") * 2).sum().to("cpu"))(x)
    assert found.tolist() == transformed(lambda x: (x * 2).sum())(x).tolist()


def test_operations_are_counted_where_tensors_come_to_be_on_a_device(opaque):  # noqa: F811
    assert modes.base is None
    with wf.nn.CountFlops() as count:
        wf.nn.Linear(3, 4).to("opaque:0")(wf.ones(2, 3, device="opaque:0"))
    assert count.total >= 48


def test_gradients_by_rows_beside_a_device(opaque):  # noqa: F811  (the fixture)
    def trained(place):
        wf.manual_seed(0)
        table = wf.nn.Embedding(6, 2, sparse=True).to(place)
        optimizer = wf.optim.SGD(table.parameters(), 0.5)
        for _ in range(2):
            optimizer.zero_grad()
            (table(wf.tensor([1, 4, 1], device=place)) ** 2).sum().backward()
            optimizer.step()
        return table.weight

    alone = trained("cpu")
    there = trained("opaque:0")
    here = trained("cpu")
    assert modes.base is not None
    assert alone.grad.is_sparse
    assert here.grad.is_sparse
    assert not there.grad.is_sparse
    for other in (here, there):
        np.testing.assert_allclose(other.numpy(), alone.numpy(), rtol=1e-6)


def test_parameters_of_a_graph_are_where_it_says():
    with wf.Graph() as graph, wf.device("reference"):
        w = wf.nn.Parameter(wf.zeros(3) + 1)
        step = w.assign(w * 2)
    assert w.device == REFERENCE
    wf.Session(graph).run(step)
    assert (w.device, w.tolist()) == (REFERENCE, [2, 2, 2])


def test_layers_of_a_graph_that_are_the_first_on_a_device(opaque):  # noqa: F811  (the fixture)
    assert modes.base is None
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), name="x")
        with wf.device("opaque:0"):
            h = wf.nn.Linear(3, 2)(x)
        y = (h.to("cpu") ** 2).mean()
    found = wf.Session(graph).run(y, {x: np.zeros((4, 3), np.float32)})
    assert np.isfinite(found)


def test_gradients_that_are_given_are_where_their_tensors_are(opaque):  # noqa: F811
    here = wf.ones(3, requires_grad=True)
    there = wf.ones(3, device="opaque:0", requires_grad=True)
    with pytest.raises(ValueError, match=r".grad must be where its tensor is, on 'cpu'"):
        here.grad = wf.ones(3, device="opaque:0")
    with pytest.raises(ValueError, match=r"backward: gradient must be where its tensor is"):
        (here * 2).backward(wf.ones(3, device="opaque:0"))
    with pytest.raises(ValueError, match=r"gradients: gradient must be where its tensor is"):
        wf.gradients(here * 2, here, wf.ones(3, device="opaque:0"))
    assert here.grad is None
    with pytest.raises(ValueError, match=r".grad must be .* 'opaque:0'.*x.to\('opaque:0'\)"):
        there.grad = wf.ones(3)
    with pytest.raises(ValueError, match=r"x.to\('opaque:0'\)"):
        (there * 2).backward(wf.ones(3))
    there.grad = wf.ones(3, device="opaque:0")
    (there * 2).backward([1.0, 1.0, 1.0])
    assert there.grad.tolist() == [3, 3, 3]


def test_modules_move():
    net = wf.nn.Sequential(wf.nn.Linear(3, 2), wf.nn.BatchNorm1d(2))
    assert net.to("reference") is net
    assert {t.device for t in (*net.parameters(), *net.buffers())} == {REFERENCE}
    y = net(wf.ones(4, 3, device="reference")).sum()
    y.backward()
    assert y.device == net[0].weight.grad.device == REFERENCE
    wf.optim.SGD(net.parameters(), 0.1).step()
    assert net[0].weight.device == REFERENCE
    net.to(device="cpu", dtype=wf.float64)
    assert net(wf.ones(4, 3, dtype=wf.float64)).device == CPU
    assert net.to("reference").cpu() is net
    assert {t.device for t in (*net.parameters(), *net.buffers())} == {CPU}


def test_the_cpu_is_alone_again_when_other_tensors_are_gone(x):
    y = x * 2
    assert modes.base is not None
    del x, y
    # What a fixture holds keeps the mark too; a tensor of its own does not.
    code = (
        "import weft as wf; from weft.core.modes import modes; x = wf.ones(2, device='reference')"
    )
    code += "; assert modes.base; del x; wf.ones(2) + 1; assert modes.base is None"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_writes_are_in_place_again_when_no_tensor_is_elsewhere():
    wf.ones(2, device="reference")
    x = wf.zeros(3)
    buffer = id(x._value)
    x[0] = 1.0
    assert id(x._value) == buffer
