"""Graphs merged into one."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from weft.graph.special import STATE


def part(fn, shape=("n", 3), name="x"):
    with wf.Graph() as graph:
        x = wf.placeholder(shape, wf.float32, name=name)
        y = fn(x)
        y.name = "y"
    return graph, x, y


def test_names_sizes_and_placeholders_stay_apart():
    (one, x, y), (two, u, v) = part(lambda x: x.sum()), part(lambda x: x.prod())
    both = wf.Graph.merge(one, two)
    assert [value.name for value in both.inputs] == ["x", "x_1"]
    feeds = {x: np.full((1, 3), 2.0), u: np.full((2, 3), 2.0)}
    assert wf.Session(both).run([y, v], feeds) == [6.0, 64.0]
    assert wf.Session(both).run(["y", "y_1"], feeds) == [6.0, 64.0]
    assert len(one) == len(two) == 2


def test_placeholders_of_one_name_are_joined():
    (one, x, y), (two, _, v) = part(lambda x: x.sum()), part(lambda x: x.prod(), (2, 3))
    both = wf.Graph.merge(one, two, join=True)
    assert [value.name for value in both.inputs] == ["x"]
    assert both.symbol(x).shape == (2, 3)
    assert wf.Session(both).run([y, v], {"x": np.full((2, 3), 2.0)}) == [12.0, 64.0]
    with both:
        total = y + v  # symbols of both
        (slope,) = wf.gradients(total, [x])
    np.testing.assert_array_equal(
        wf.Session(both).run(slope, {x: np.ones((2, 3))}), np.full((2, 3), 2.0)
    )


def test_states_are_read_once_and_draws_go_on():
    weight = wf.ones(3)
    fn = lambda x: x * weight + wf.rand(3)  # noqa: E731  (two graphs of one program)
    (one, _, y), (two, _, v) = part(fn), part(fn)
    both = wf.Graph.merge(one, two, join=True)
    assert sum(node.op is STATE for node in both.nodes) == 2
    feeds = {"x": np.zeros((1, 3), np.float32)}
    wf.manual_seed(3)
    a, b = wf.Session(both, compiled=False).run([y, v], feeds)
    wf.manual_seed(3)
    first = wf.Session(one, compiled=False).run(y, feeds)
    second = wf.Session(two, compiled=False).run(v, feeds)
    np.testing.assert_array_equal(np.stack([a, b]), np.stack([first, second]))


def test_loaded_graphs_draw_one_after_another(tmp_path):
    graph, _, _ = part(lambda x: x + wf.rand(3))
    graph.save(tmp_path / "graph.weft")
    loaded = [wf.Graph.load(tmp_path / "graph.weft") for _ in range(2)]
    both = wf.Graph.merge(*loaded, join=True)
    a, b = wf.Session(both).run(["y", "y_1"], {"x": np.zeros((1, 3), np.float32)})
    assert not np.array_equal(a, b)


def test_a_graph_merged_with_itself_means_its_first_copy():
    graph, x, y = part(lambda x: x.sum(), (3,))
    both = wf.Graph.merge(graph, graph)
    assert both.symbol(x).name == "x"
    assert wf.Session(both).run([y, "y_1"], {"x": [1, 1, 1], "x_1": [2, 2, 2]}) == [3.0, 6.0]


def test_training_goes_on_in_a_merged_graph():
    layer, norm = wf.nn.Linear(3, 3), wf.nn.BatchNorm1d(3)
    (one, _, y), (two, _, v) = part(layer), part(lambda x: norm(x) ** 2)
    both = wf.Graph.merge(one, two, join=True)
    with both:
        loss = (y * v).mean()
        step = wf.optim.SGD([*layer.parameters(), *norm.parameters()], lr=0.1).minimize(loss)
    before = layer.weight.detach().numpy().copy()
    wf.Session(both).run(step, {"x": np.random.default_rng(0).normal(size=(4, 3))})
    assert norm.num_batches_tracked.item() == 1
    assert not np.array_equal(before, layer.weight.detach().numpy())


def test_bad_merges():
    one, _, _ = part(lambda x: x.sum())
    with pytest.raises(ArgumentTypeError, match="expected graphs"):
        wf.Graph.merge(one, 3)
    with pytest.raises(ArgumentError, match="at least one graph"):
        wf.Graph.merge()
    with pytest.raises(ArgumentTypeError, match="join must be True or False"):
        wf.Graph.merge(one, join="x")
    with pytest.raises(ShapeError, match="cannot stand for x"):
        wf.Graph.merge(one, part(lambda x: x.sum(), (2, 4))[0], join=True)
    with wf.Graph() as whole:
        wf.placeholder((None, 3), wf.int64, name="x")
    with pytest.raises(DTypeError, match="cannot stand for x"):
        wf.Graph.merge(one, whole, join=True)
