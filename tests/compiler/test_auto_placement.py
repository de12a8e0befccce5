"""`wf.device("auto")`: nodes go where it takes least time, with copies counted in."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import opaque  # noqa: F401  (a fixture)
from weft.compiler.auto_placement import choose_devices
from weft.plan.device import Device

pytestmark = pytest.mark.usefixtures("opaque")

CPU = Device("cpu", 1, "")


def fast(**options):
    return {"cpu": CPU, "fast": Device("fast", 1, "", own_memory=True, **options)}


def places(graph, devices, **options):
    graph.outputs = graph.results()
    found = choose_devices(graph, devices, **options)
    return {node.op.name: where for node, where in found.items() if node.inputs}


def test_constants_of_two_devices_fold_into_one_and_no_copy():
    with wf.Graph() as graph:
        with wf.device("opaque:0"):
            a = wf.ones(8) * 3
        with wf.device("opaque:1"):
            b = wf.ones(8) * 2
        with wf.device("auto"):
            c = b * a + 1
    session = wf.Session(graph)
    assert session.run(c).tolist() == [7] * 8
    assert session.executable(c).copies == []


def test_what_one_kernel_computes_goes_together():
    with wf.Graph() as graph:
        a, b = wf.placeholder((64, 64), name="a"), wf.placeholder((64, 64), name="b")
        with wf.device("auto"):
            c = b * a + 1
    session = wf.Session(graph)
    feeds = {a: np.ones((64, 64)), b: np.ones((64, 64))}
    assert session.run(c, feeds)[0, 0] == 2
    executable = session.executable(c, feeds)
    assert [part.device for part, _ in executable.parts] == ["cpu"]
    assert executable.copies == []


def test_large_products_go_to_the_faster_device_and_small_ones_stay():
    for size, expected in ((8, "cpu"), (1024, "fast")):
        with wf.Graph() as graph, wf.device("auto"):
            x = wf.placeholder((size, size))
            wf.relu(x @ x)
        found = places(graph, fast(speed=50.0, copy_rate=8.0))
        assert set(found.values()) == {expected}


def test_slow_copies_keep_work_where_the_values_are():
    with wf.Graph() as graph, wf.device("auto"):
        x = wf.placeholder((1024, 1024))
        wf.exp(x)
    assert places(graph, fast(speed=50.0, copy_rate=0.1)) == {"exp": "cpu"}
    assert places(graph, fast(speed=50.0, copy_rate=100.0)) == {"exp": "fast"}


def test_values_that_are_there_already_are_not_copied_back():
    x = wf.ones((64, 64), device="opaque:0")
    with wf.Graph() as graph, wf.device("auto"):
        y = (x * 2).sum()
    session = wf.Session(graph)
    assert session.run(y) == 2 * 64 * 64
    assert [part.device for part, _ in session.executable(y).parts] == ["opaque:0"]


def test_a_session_may_ask_for_it():
    x = wf.ones(3, device="opaque:1")
    with wf.Graph() as graph:
        y = x * 2
        with wf.device("cpu"):
            z = y.sum()
    session = wf.Session(graph, device="auto")
    assert session.run([y, z])[1] == 6
    devices = [part.device for part, _ in session.executable([y, z]).parts]
    assert devices == ["opaque:1", "cpu"]


def test_a_tensor_is_on_one_device():
    with pytest.raises(ValueError, match="a tensor is on one device"):
        wf.ones(2, device="auto")
    with pytest.raises(ValueError, match="a tensor is on one device"):
        wf.ones(2).to("auto")
    with wf.device("auto"):
        assert wf.ones(2).device == "cpu"
