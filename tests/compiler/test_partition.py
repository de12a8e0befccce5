"""Programs on several devices: parts of one device each, and the copies between them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import BACKEND, no_copies, opaque  # noqa: F401  (opaque is a fixture)
from weft.compiler.partition import DeviceCopy, split
from weft.graph.placement import placed_nodes

pytestmark = pytest.mark.usefixtures("opaque")
X = np.arange(6.0, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def placed():
    """Return a graph on three devices, its placeholder and two results."""
    with wf.Graph() as graph:
        x = wf.placeholder((2, 3), name="x")
        with wf.device("opaque:0"):
            y = wf.exp(x)
        with wf.device("opaque:1"):
            z = wf.add(y, 1.0)
        with wf.device("cpu"):
            w = z * 2
        v = w.sum() + y.sum()
    return graph, x, z, v


def test_parts_run_where_they_were_placed(placed):
    graph, x, z, v = placed
    session = wf.Session(graph)
    found = session.run([v, z], {x: X})
    expected = np.exp(X) + 1
    np.testing.assert_allclose(found[0], 2 * expected.sum() + np.exp(X).sum(), rtol=1e-6)
    np.testing.assert_allclose(found[1], expected, rtol=1e-6)
    executable = session.executable([v, z], {x: X})
    assert [part.device for part, _ in executable.parts] == [
        "opaque:0",
        "opaque:1",
        "cpu",
        "opaque:0",
    ]
    assert executable.copies == [
        DeviceCopy("exp", "opaque:0", "opaque:1"),
        DeviceCopy("add", "opaque:1", "cpu"),
        DeviceCopy("sum", "cpu", "opaque:0"),
    ]
    assert "3 copies" in repr(executable)
    assert executable.stats()["copies"] == executable.copies


def test_a_session_may_say_otherwise(placed):
    graph, x, z, v = placed
    for name in ("cpu", "reference", "opaque:1"):
        found = wf.Session(graph, device=name).run([v, z], {x: X})
        np.testing.assert_allclose(found[1], np.exp(X) + 1, rtol=1e-6)


def test_gradients_cross_devices(placed):
    graph, x, _, v = placed
    with graph:
        (g,) = wf.gradients(v, [x])
    found = wf.Session(graph).run(g, {x: X})
    np.testing.assert_allclose(found, 3 * np.exp(X), rtol=1e-6)


def test_states_of_several_devices_train_together():
    losses = []
    for places in (("cpu", "cpu"), ("opaque:0", "opaque:1")):
        wf.manual_seed(0)
        first, second = wf.nn.Linear(3, 4).to(places[0]), wf.nn.Linear(4, 1).to(places[1])
        optimizer = wf.optim.Adam([*first.parameters(), *second.parameters()], 0.01)
        with wf.Graph() as graph:
            x = wf.placeholder((2, 3), name="x")
            h = wf.tanh(first(x))
            loss = (second(h.to(places[1])) ** 2).mean()
            step = optimizer.minimize(loss)
        session = wf.Session(graph)
        losses.append([session.run([loss, step], {x: X})[0] for _ in range(4)])
        assert (first.weight.device, second.weight.device) == places
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    assert optimizer.t == 4


def test_a_function_may_go_from_device_to_device():
    def function(t):
        far = t.to("opaque:0") * 2
        return far, far.to("cpu") + 1

    compiled = wf.compile(function, wf.ones(3))
    far, near = compiled(wf.ones(3))
    assert (far.device, near.device) == ("opaque:0", "cpu")
    assert (far.tolist(), near.tolist()) == ([2, 2, 2], [3, 3, 3])


def test_ranks_are_as_few_as_copies_allow(placed):
    graph, *_ = placed
    graph.outputs = graph.results()
    parts = split(graph, placed_nodes(graph.nodes))
    assert [part.device for part in parts] == ["opaque:0", "opaque:1", "cpu", "opaque:0"]
    assert [len(part.inputs) for part in parts] == [1, 1, 1, 2]


def test_an_error_in_one_part_changes_nothing():
    a = wf.ones(2, device="opaque:0")
    b = wf.ones(2, device="opaque:1")
    with wf.Graph() as graph:
        step = [a.assign(a + 1), b.assign(a.to("opaque:1") + b)]
    session = wf.Session(graph)
    session.run(step)
    assert (a.tolist(), b.tolist()) == ([2, 2], [2, 2])
    BACKEND.devices[1].lost = True
    with pytest.raises(RuntimeError, match="opaque:1 does not answer"):
        session.run(step)
    assert a.tolist() == [2, 2]
    BACKEND.devices[1].lost = False
    with no_copies(out=3):  # what goes from one device to the other, and both fetches
        session.run(step)
    assert (a.tolist(), b.tolist()) == ([3, 3], [4, 4])
