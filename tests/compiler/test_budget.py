"""Rematerialisation: the same bits in less memory, and no more than a second forward part."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft import nn
from weft.compiler.budget import rematerialize
from weft.compiler.memory import memory_plan
from weft.core.errors import ArgumentError, ArgumentTypeError, ShapeError
from weft.graph import Graph, Session, Update, placeholder
from weft.graph.verify import verify

from ..programs.chains import STEPS, apply_steps


def peak_of(graph: Graph, outputs: Any, sizes: Any = None) -> int:
    """Return the bytes that a run of the program takes."""
    return memory_plan(graph, outputs, sizes=sizes).run_bytes


def deep_chain(layers: int, width: int = 8, batch: int = 64) -> tuple[Graph, Any, Any, Update]:
    rng = np.random.default_rng(0)
    weights = [
        wf.tensor((rng.standard_normal((width, width)) / width**0.5).astype(np.float32))
        for _ in range(layers)
    ]
    with Graph() as graph:
        x = placeholder((batch, width), wf.float32, name="x")
        y = x
        for weight in weights:
            y = wf.tanh(y @ weight)
        loss = (y * y).mean()
        pairs = zip(weights, wf.gradients(loss, weights), strict=True)
        update = Update([w.assign(w - 0.1 * g) for w, g in pairs])
    return graph, x, loss, update


def small_batch(width: int = 8, batch: int = 64) -> Any:
    return np.random.default_rng(1).standard_normal((batch, width)).astype(np.float32)


# -- the same results ------------------------------------------------------------------------------


@given(steps=STEPS, part=st.floats(0.0, 1.0))
def test_random_programs_give_the_same_bits_within_the_budget(steps, part):
    weight = wf.tensor(np.random.default_rng(1).standard_normal((4, 6)))
    with Graph() as graph:
        x = placeholder((4, 6), wf.float64, name="x")
        loss = apply_steps(x * weight, steps)[-1].sum()
        (gradient,) = wf.gradients(loss, [weight])
    outputs = [loss] if gradient is None else [loss, gradient]
    budget = int(peak_of(graph, outputs) * part)
    try:
        made = rematerialize(graph, budget, outputs)
    except ArgumentError as error:
        budget = least_named(error)
        made = rematerialize(graph, budget, outputs)
    verify(made)
    plan = memory_plan(made, outputs)
    plan.check()
    assert plan.run_bytes <= budget
    assert_same_runs(graph, made, outputs, {x: np.random.default_rng(0).standard_normal((4, 6))})


def least_named(error: ArgumentError) -> int:
    return int(str(error).split("can be reached is ")[1].split()[0])


def assert_same_runs(graph: Graph, made: Graph, outputs: Any, feeds: Any) -> None:
    """Assert equal results and equal positions of the random generator afterwards.

    Node by node, since programs may round otherwise where they fuse otherwise.
    """
    found = []
    for which in (graph, made):
        wf.manual_seed(7)
        results = Session(which, compiled=False).run(outputs, feeds)
        found.append([*results, wf.rand(3).numpy()])
    for a, b in zip(*found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("part", [0.9, 0.6, 0.4])
def test_a_network_with_dropout_and_batch_norm_trains_alike(part):
    layers: list[Any] = []
    for i in range(8):
        layers += [nn.Conv2d(4 if i else 3, 4, 3, padding=1), nn.BatchNorm2d(4)]
        layers += [nn.ReLU(), nn.Dropout(0.2)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))
    with Graph() as graph:
        x = placeholder((4, 3, 8, 8), wf.float32, name="x")
        y = placeholder((4,), wf.int64, name="y")
        loss = nn.functional.cross_entropy(model(x), y)
        outputs = [loss, *wf.gradients(loss, list(model.parameters()))]
    plain = peak_of(graph, outputs)
    made = rematerialize(graph, part * plain, outputs)
    verify(made)
    assert peak_of(made, outputs) <= part * plain
    rng = np.random.default_rng(0)
    feeds = {x: rng.standard_normal((4, 3, 8, 8)).astype(np.float32), y: rng.integers(0, 5, 4)}
    assert_same_runs(graph, made, outputs, feeds)


def test_states_are_updated_alike():
    after = []
    for budget in (None, 0.6):
        graph, x, loss, update = deep_chain(20)
        outputs = [loss, update]
        if budget is not None:
            graph = rematerialize(graph, budget * peak_of(graph, outputs), outputs)
        session = Session(graph, compiled=False)
        losses = [session.run([loss, update], {x: small_batch()})[0] for _ in range(5)]
        after.append((losses, [state.read() for state in graph.states()]))
    np.testing.assert_array_equal(after[0][0], after[1][0])
    for a, b in zip(after[0][1], after[1][1], strict=True):
        np.testing.assert_array_equal(a, b)


def test_generators_never_move_on_twice():
    with Graph() as graph:
        x = placeholder((64, 64), wf.float32, name="x")
        y = x
        for _ in range(12):
            y = wf.tanh(nn.functional.dropout(y, 0.5) * 1.5)
        outputs = [y.sum(), *wf.gradients(y.sum(), [x])]
    made = rematerialize(graph, 0.7 * peak_of(graph, outputs), outputs)
    before, after = (Counter(node.op.name for node in g.nodes) for g in (graph, made))
    assert after["advance_state"] == before["advance_state"]
    assert after["random_dropout"] > before["random_dropout"]
    assert_same_runs(graph, made, outputs, {x: small_batch(64, 64)})


# -- memory and time -------------------------------------------------------------------------------


def test_memory_of_a_deep_chain_grows_more_slowly_than_its_depth():
    least = []
    for layers in (64, 256):
        graph, x, loss, _ = deep_chain(layers, width=4, batch=512)
        with graph:
            gradient = wf.gradients(loss, [x])
        with pytest.raises(ArgumentError, match="cannot be met") as caught:
            rematerialize(graph, 0, [loss, *gradient])
        least.append(least_named(caught.value))
    assert least[1] < 2.6 * least[0]  # the square root of 4, and some; plain memory grows by 4


def test_no_node_runs_more_than_twice():
    graph, _, loss, update = deep_chain(100)
    made = rematerialize(graph, 0.3 * peak_of(graph, [loss, update]), [loss, update])
    before, after = (Counter(node.op.name for node in g.nodes) for g in (graph, made))
    assert after["tanh"] <= 2 * before["tanh"]
    forward = [node for node in graph.nodes if node.scope[:1] != ("gradients",)]
    assert len(made) - len(graph) <= len(forward)


def test_a_generous_budget_recomputes_little():
    graph, _, loss, update = deep_chain(100)
    plain = peak_of(graph, [loss, update])
    added = [
        len(rematerialize(graph, part * plain, [loss, update])) - len(graph)
        for part in (1.0, 0.8, 0.5, 0.3)
    ]
    assert added[0] == 0
    assert added == sorted(added)
    assert added[1] <= 0.35 * 200


def test_cheap_operations_are_recomputed_first():
    weights = [wf.tensor(np.eye(32, dtype=np.float32)) for _ in range(16)]
    with Graph() as graph:
        x = placeholder((256, 32), wf.float32, name="x")
        y = x
        for weight in weights:
            y = wf.sigmoid(wf.sin(wf.exp(wf.cos(y @ weight))))
        outputs = wf.gradients(y.sum(), weights)
    made = rematerialize(graph, 0.6 * peak_of(graph, outputs), outputs)
    before, after = (Counter(node.op.name for node in g.nodes) for g in (graph, made))
    assert after["matmul"] == before["matmul"]
    assert after["exp"] > before["exp"]


def test_the_program_that_runs_keeps_to_the_budget():
    graph, x, loss, update = deep_chain(60, width=8, batch=512)
    outputs = [loss, update]
    budget = 0.4 * peak_of(graph, outputs)
    made = rematerialize(graph, budget, outputs)
    feeds = {x: small_batch(8, 512)}
    executable = Session(made).executable(outputs, feeds)
    assert executable.layout.arena_bytes <= budget
    np.testing.assert_allclose(
        Session(made).run(loss, feeds), Session(graph).run(loss, feeds), rtol=1e-5
    )


# -- the new graph ---------------------------------------------------------------------------------


def test_symbols_and_names_of_the_old_graph_are_found_in_the_new():
    graph, _, loss, update = deep_chain(30)
    with graph:
        loss.name = "loss"
    made = rematerialize(graph, 0.5 * peak_of(graph, [loss, update]), [loss, update])
    results = Session(made).run(["loss", loss], {"x": small_batch()})
    assert results[0] == results[1]
    assert made is not graph
    assert [v.name for v in made.inputs] == ["x"]


def test_a_graph_within_the_budget_keeps_its_nodes():
    graph, _, loss, update = deep_chain(5)
    made = rematerialize(graph, 10**9, [loss, update])
    assert all(a is b for a, b in zip(graph.nodes, made.nodes, strict=True))


def test_a_graph_without_gradients_and_an_empty_one():
    with Graph() as graph:
        x = placeholder((16,), wf.float32, name="x")
        y = wf.sin(wf.cos(x))
    assert len(rematerialize(graph, 200, y)) == len(graph)
    assert len(rematerialize(Graph(), 0)) == 0
    with pytest.raises(ArgumentError, match="cannot be met"):
        rematerialize(graph, 10, y)


def test_unknown_sizes_must_be_given():
    with Graph() as graph:
        x = placeholder(("batch", 8), wf.float32, name="x")
        y = x
        for _ in range(40):
            y = wf.tanh(wf.sin(y))
        outputs = wf.gradients(y.sum(), [x])
    with pytest.raises(ShapeError, match="batch is not known"):
        rematerialize(graph, 1000, outputs)
    sizes = {"batch": 32}
    plain = peak_of(graph, outputs, sizes)
    made = rematerialize(graph, 0.7 * plain, outputs, sizes=sizes)
    assert peak_of(made, outputs, sizes) <= 0.7 * plain
    assert_same_runs(graph, made, outputs, {x: small_batch(8, 5)})


def test_the_least_that_is_named_can_be_reached():
    graph, _, loss, update = deep_chain(60)
    outputs = [loss, update]
    with pytest.raises(ArgumentError, match=r"a budget of 1 bytes .* cannot be met") as caught:
        rematerialize(graph, 1, outputs)
    least = least_named(caught.value)
    assert peak_of(rematerialize(graph, least, outputs), outputs) == least
    with pytest.raises(ArgumentError, match="cannot be met"):
        rematerialize(graph, least // 2, outputs)


@pytest.mark.parametrize(
    ("budget", "error"),
    [
        ("1 GB", ArgumentTypeError),
        (None, ArgumentTypeError),
        (True, ArgumentTypeError),
        (-1, ArgumentError),
        (float("nan"), ArgumentError),
    ],
)
def test_bad_budgets_are_refused(budget, error):
    graph, _, loss, _ = deep_chain(2)
    with pytest.raises(error, match="rematerialize: the budget must"):
        rematerialize(graph, budget, loss)


@pytest.mark.long
def test_a_chain_of_a_thousand_layers_trains_in_a_fifth_of_the_memory():
    graph, x, loss, update = deep_chain(1000, width=16, batch=512)
    outputs = [loss, update]
    budget = 0.2 * peak_of(graph, outputs)
    made = rematerialize(graph, budget, outputs)
    assert peak_of(made, outputs) <= budget
    first = Session(graph).run(loss, {x: small_batch(16, 512)})
    np.testing.assert_array_equal(first, Session(made).run(loss, {x: small_batch(16, 512)}))


# -- with control flow, and twice differentiated ---------------------------------------------------


def scanned(x: Any, weight: Any) -> Any:
    """Return a value through a scan that draws in every step."""

    def step(h: Any, row: Any) -> Any:
        return nn.functional.dropout(wf.tanh(h @ weight + row), 0.3), h.sum()

    last, sums = wf.scan(step, x, wf.ones(3, 8))
    return last + sums.sum()


def test_control_flow_is_recomputed_but_not_its_draws():
    weight = wf.tensor(np.eye(8, dtype=np.float32) * 0.5)
    with Graph() as graph:
        x = placeholder((16, 8), wf.float32, name="x")
        y = x
        for _ in range(6):
            y = scanned(wf.sin(wf.exp(wf.cos(y))), weight)
        outputs = [y.sum(), *wf.gradients(y.sum(), [weight])]
    before = peak_of(graph, outputs)
    with pytest.raises(ArgumentError, match="cannot be met") as caught:
        rematerialize(graph, 0, outputs)
    made = rematerialize(graph, least_named(caught.value), outputs)
    verify(made)
    assert len(made) > len(graph)
    assert peak_of(made, outputs) < before
    assert_same_runs(graph, made, outputs, {x: small_batch(8, 16)})


def test_second_derivatives_stay_the_same():
    with Graph() as graph:
        x = placeholder((16, 8), wf.float64, name="x")
        y = x
        for _ in range(12):
            y = wf.tanh(wf.sin(y) * 1.2)
        (first,) = wf.gradients(y.sum(), [x])
        outputs = [first, *wf.gradients((first * first).sum(), [x])]
    plain = peak_of(graph, outputs)
    made = rematerialize(graph, 0.8 * plain, outputs)
    verify(made)
    assert peak_of(made, outputs) <= 0.8 * plain
    assert_same_runs(graph, made, outputs, {x: np.random.default_rng(0).standard_normal((16, 8))})


# -- as an option of graph.optimize ----------------------------------------------------------------


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
    session = wf.Session(optimize(graph, loss, train), compiled=False)
    data = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
    losses = [session.run([loss, {"update": train}], {x: data})[0] for _ in range(steps)]
    return losses, [p.numpy() for p in net.parameters()]


def plain(graph, loss, train):
    return graph


def within_budget(graph, loss, train):
    plan = graph.memory_plan([loss, train])
    return graph.optimize([loss, train], memory_budget=int(plan.run_bytes * 0.8))


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
