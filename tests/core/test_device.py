"""Devices: objects that are their names, accepted wherever a device is."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

import weft as wf
from weft.core.device import current_device

CPU = wf.device("cpu")


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
    assert wf.devices() == [CPU] == ["cpu"]


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
    with pytest.raises(ValueError, match=r"must be 'cpu', the only one.*wf.devices\(\)") as caught:
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
