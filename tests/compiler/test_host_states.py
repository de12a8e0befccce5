"""States of the host, of a program on a device: the host computes what becomes of them."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque  # noqa: F401  (opaque is a fixture)
from weft.compiler.host_states import host_commits
from weft.compiler.stages import specialized
from weft.graph.run import Program

pytestmark = pytest.mark.usefixtures("opaque")

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def build(place):
    wf.manual_seed(0)
    layers = [wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Dropout(0.5), wf.nn.Linear(4, 2)]
    net = wf.nn.Sequential(*layers).to(place)
    return net, wf.optim.Adam(net.parameters(), 0.1)


def steps(place, count=4):
    """Return losses of a compiled training step, the net and its optimizer."""
    net, optimizer = build(place)

    def step(x):
        loss = (net(x) ** 2).mean()
        optimizer.minimize(loss)
        return loss

    x = wf.tensor(X, device=place)
    compiled = wf.compile(step, x)
    compiled(x)  # the slots go to the device with the first step
    with no_copies():
        losses = [compiled(x) for _ in range(count)]
    assert losses[0].device == place
    return [loss.item() for loss in losses], net, optimizer


def test_a_training_step_copies_nothing_out():
    here, there = steps("cpu"), steps("opaque:0")
    np.testing.assert_allclose(there[0], here[0], rtol=1e-4)
    assert there[2].t == here[2].t == 5
    weights = [net[0].weight for _, net, _ in (here, there)]
    np.testing.assert_allclose(weights[1].numpy(), weights[0].numpy(), rtol=1e-3, atol=1e-5)
    slots = [opt.state[w] for (_, _, opt), w in zip((here, there), weights, strict=True)]
    assert slots[0]["step"] == slots[1]["step"] == 5
    assert slots[1]["exp_avg"].device == "opaque:0"


def test_a_session_advances_generators_as_eager_code_does():
    with wf.Graph() as graph:
        noise = wf.rand(5)
    wf.manual_seed(3)
    expected = [wf.rand(5).tolist() for _ in range(2)]
    wf.manual_seed(3)
    session = wf.Session(graph, device="opaque:0")
    assert [session.run(noise).tolist() for _ in range(2)] == expected


def test_what_depends_on_the_device_is_the_devices():
    net, optimizer = build("opaque:0")
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), name="x")
        step = optimizer.minimize((net(x) ** 2).mean())
    program = Program(graph, [], [x.value], [symbol.value for symbol in step.symbols])
    static = specialized(program, {x.value: (4, 3)})
    states = [state for state, _ in program.commits]
    found = host_commits(static, list(zip(states, static.outputs, strict=True)))
    names = {state.name.rpartition("/")[2] for state, _ in found.commits}
    assert names == {"t", "step", "rng"}
    assert all(not state.held for state, _ in found.commits)
