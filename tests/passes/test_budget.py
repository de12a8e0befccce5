"""`graph.optimize` with outputs as nests, and within a budget of memory."""

import numpy as np
import pytest

import weft as wf


def training_step(batch):
    wf.manual_seed(0)
    layers = [layer for _ in range(12) for layer in (wf.nn.Linear(8, 8), wf.nn.Tanh())]
    net = wf.nn.Sequential(*layers)
    optimizer = wf.optim.Adam(net.parameters())
    with wf.Graph() as graph:
        x = wf.placeholder((batch, 8), wf.float32, name="x")
        loss = (net(x) ** 2).mean()
        train = optimizer.minimize(loss)
    return net, graph, x, loss, train


def weights_after(make, optimize, steps=3):
    net, graph, x, loss, train = make()
    session = wf.Session(optimize(graph, loss, train))
    data = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    losses = [session.run([loss, {"update": train}], {x: data})[0] for _ in range(steps)]
    return losses, [p.numpy() for p in net.parameters()]


def plain(graph, loss, train):
    return graph


def within_budget(graph, loss, train):
    plan = graph.memory_plan([loss, train])
    return graph.optimize([loss, train], memory_budget=int(plan.unshared_bytes * 0.6))


def test_a_budget_changes_no_bit():
    expected = weights_after(lambda: training_step(64), plain)
    found = weights_after(lambda: training_step(64), within_budget)
    for a, b in zip(expected[1], found[1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_unknown_sizes_are_given_by_name():
    _, graph, x, loss, train = training_step(None)
    optimised = graph.optimize([loss, train], memory_budget=10**6, sizes={"x_0": 64})
    data = np.ones((5, 8), np.float32)
    assert np.isfinite(wf.Session(optimised).run(loss, {x: data}))


def test_a_budget_with_unknown_sizes_asks_for_them():
    _, graph, _, loss, train = training_step(None)
    with pytest.raises(wf.WeftError, match="x_0"):
        graph.optimize([loss, train], memory_budget=10**6)


def test_outputs_may_be_a_nest():
    _, graph, x, loss, train = training_step(4)
    optimised = graph.optimize({"loss": loss, "update": [train]})
    value, _ = wf.Session(optimised).run((loss, train), {x: np.ones((4, 8), np.float32)})
    assert np.isfinite(value)
