"""Edits of graphs: replace, insert, prune, rename and substitute, in bodies too, and their errors.

That an edited graph is the graph built that way is what test_random_edits.py holds.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    GraphError,
    ShapeError,
)
from weft.graph.special import PLACEHOLDER


class Small:
    """A graph of a few nodes."""

    def __init__(self):
        with wf.Graph("small") as self.graph:
            self.x = wf.placeholder(("n", 3), wf.float32, name="x")
            self.w = wf.placeholder((3,), wf.float32, name="w")
            with wf.name_scope("hidden"):
                self.h = wf.relu(self.x * self.w)
            self.h.name = "h"
            self.y = self.h.sum()

    feeds = {"x": np.array([[1.0, -2.0, 3.0]], np.float32), "w": np.ones(3, np.float32)}  # noqa: RUF012  (read only)


@pytest.fixture
def small():
    return Small()


def run(graph, fetches, feeds=None, **options):
    return wf.Session(graph, **options).run(fetches, Small.feeds if feeds is None else feeds)


# -- replace and insert ----------------------------------------------------------------------------


def test_replace_by_a_symbol_of_the_graph(small):
    with small.graph:
        other = small.x * 10.0
    edited = small.graph.replace(small.h, other)
    assert run(edited, small.y) == 20.0
    assert run(small.graph, small.y) == 4.0  # the old graph is as it was
    edited.verify()


def test_the_replaced_value_goes_on_meaning_what_its_node_computes(small):
    edited = small.graph.replace("h", lambda h: h + 1.0, name="after")
    np.testing.assert_array_equal(run(edited, "h"), [[1.0, 0.0, 3.0]])
    np.testing.assert_array_equal(run(edited, "after"), [[2.0, 1.0, 4.0]])
    assert run(edited, small.y) == 7.0


def test_nodes_that_lead_to_the_new_value_keep_the_old_one(small):
    with small.graph:
        new = wf.tanh(small.h) * small.h
    edited = small.graph.replace(small.h, new)
    tanh = edited.find("tanh").node
    assert tanh.inputs[0] is edited.symbol(small.h).value
    assert edited.symbol(small.y).value.node.inputs[0] is edited.symbol(new).value


def test_replace_by_numbers_arrays_and_tensors(small):
    assert run(small.graph.replace("h", 2), small.y) == 6.0
    array = np.arange(3.0).reshape(1, 3)
    edited = small.graph.replace("h", array)
    assert run(edited, small.y) == 3.0
    assert edited.symbol(small.x).shape == (1, 3)  # the size is known now, and checked
    state = wf.ones(3)
    edited = small.graph.replace("w", state)
    assert run(edited, small.y) == 4.0
    state.copy_(wf.full((3,), 2.0))
    assert run(edited, small.y) == 8.0


def test_several_values_at_once(small):
    edited = small.graph.replace({"x": lambda x: x * 2.0, small.h: lambda h: h + 1.0})
    assert run(edited, small.y) == 11.0


def test_values_that_would_need_each_other(small):
    with small.graph:
        a, b = small.x + 1.0, small.x + 2.0
        p, q = wf.tanh(b), wf.tanh(a)
    with pytest.raises(GraphError, match="would each need the other"):
        small.graph.replace({a: p, b: q})
    small.graph.replace(a, p).replace(b, q).verify()


def test_insert_is_fed_before(small):
    edited = small.graph.insert(small.x, lambda x: x * 2.0)
    assert run(edited, small.y) == 8.0
    assert run(edited, small.y, compiled=False) == 8.0


def test_insert_a_module(small):
    layer = wf.nn.Linear(3, 3)
    edited = small.graph.insert("h", layer)
    expected = layer(wf.tensor([[1.0, 0.0, 3.0]])).sum()
    np.testing.assert_allclose(run(edited, small.y), expected.detach().numpy(), rtol=1e-6)


def test_insert_a_graph(small):
    with wf.Graph("twice") as twice:
        wf.placeholder((None, 3), wf.float32, name="v") * 2.0
    assert run(small.graph.insert("h", twice), small.y) == 8.0


def test_edits_keep_lines_scopes_names_and_nodes(small):
    edited = small.graph.insert("h", lambda h: h * 2.0)
    assert edited.symbol("h").value.node is small.h.value.node  # nothing before it changed
    y = edited.symbol(small.y).value.node
    assert (y.name, y.where) == (small.y.value.node.name, small.y.value.node.where)
    made = y.inputs[0].node
    assert made.scope == ("hidden",)
    assert made.where.startswith("test_edit.py:")


def test_an_edited_graph_is_built_into_differentiated_updated_and_saved(small, tmp_path):
    weight = wf.ones(3).requires_grad_()
    edited = small.graph.substitute({"w": weight}).insert("h", lambda h: h * h)
    with edited:
        loss = small.y * 0.5
        (slope,) = wf.gradients(loss, [small.x])
        step = wf.optim.SGD([weight], lr=0.1).minimize(loss)
    feeds = {small.x: Small.feeds["x"]}
    np.testing.assert_array_equal(run(edited, slope, feeds), [[1.0, 0.0, 3.0]])
    run(edited, step, feeds)
    np.testing.assert_allclose(weight.detach().numpy(), [0.9, 1.0, 0.1], rtol=1e-6)
    edited.save(tmp_path / "edited.weft")
    loaded = wf.Graph.load(tmp_path / "edited.weft")
    assert run(loaded, loss.name, {"x": Small.feeds["x"]}) == run(edited, loss, feeds)
    assert "relu" in str(edited)
    assert edited.draw().startswith("digraph")


def test_running_statistics_and_draws_go_on_in_an_edited_graph():
    norm, drop = wf.nn.BatchNorm1d(3), wf.nn.Dropout(0.5)
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        h = drop(norm(x))
    edited = graph.insert("x", lambda x: x * 2.0)
    with edited:
        loss = drop(h).sum()
        step = wf.optim.SGD([norm.weight], lr=0.1).minimize(loss)
    wf.manual_seed(0)
    feeds = {x: np.arange(12.0).reshape(4, 3)}
    run(edited, step, feeds)
    np.testing.assert_allclose(norm.running_mean.numpy(), [0.9, 1.1, 1.3], rtol=1e-5)
    draws = [n for n in edited.nodes if n.op.kind == "random"]
    assert len({n.inputs[0] for n in draws}) == len(draws)  # no draw starts where another did


@pytest.mark.parametrize(
    ("new", "error", "match"),
    [
        (
            lambda h: h.sum(),
            ShapeError,
            r"sum \(float32\[\], built at .*cannot stand for hidden/relu",
        ),
        (lambda h: h.to("float64"), DTypeError, r"cast \(float64\[n, 3\], built at test_edit"),
        (lambda h: h[:1], ShapeError, "cannot stand for"),
        (np.zeros((2, 4), np.float32), ShapeError, r"must be fed with float32\[n, 3\]"),
        (np.zeros((2, 3), np.int64), DTypeError, "convert it"),
        ("hh", ArgumentError, "no value named 'hh'; did you mean 'h'"),
        (object(), ArgumentTypeError, "must hold numbers"),
    ],
)
def test_replacing_by_what_does_not_fit(small, new, error, match):
    with pytest.raises(error, match=match):
        small.graph.replace(small.h, new)


def test_bad_values_to_replace(small):
    with wf.Graph("other"):
        foreign = wf.placeholder((2,), name="foreign")
    with pytest.raises(GraphError, match=r"foreign does not belong to this graph \(small\)"):
        small.graph.replace(foreign, 1.0)
    with pytest.raises(GraphError, match="foreign does not belong"):
        small.graph.replace(small.h, foreign)
    with pytest.raises(GraphError, match="foreign belongs to another graph"):
        small.graph.replace(small.h, lambda h: h * foreign)
    with pytest.raises(ArgumentTypeError, match="cannot replace int 3"):
        small.graph.replace(3, 1.0)
    with pytest.raises(ArgumentTypeError, match="insert: expected a function"):
        small.graph.insert(small.h, 1.0)
    with pytest.raises(ArgumentError, match="hidden/relu is given twice"):
        small.graph.replace({small.h: 1.0, "h": 2.0})
    with pytest.raises(ArgumentError, match="the name 'x' is taken"):
        small.graph.insert("h", wf.tanh, name="x")
    with pytest.raises(ArgumentTypeError, match="a dictionary says"):
        small.graph.replace({"h": 1.0}, 2.0)
    total = wf.tensor(0.0)
    with small.graph:
        update = total.assign(small.y)
    with pytest.raises(ArgumentError, match="is an update"):
        small.graph.replace(update, 1.0)


def test_a_size_that_only_a_run_tells_is_never_fixed():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        (found,) = wf.nonzero(x)
        y = found.sum()
    with pytest.raises(ShapeError, match="is not known to be 2"):
        graph.replace(found, np.zeros(2, np.int64))
    del y


def test_a_weight_is_edited_and_its_gradient_passes_what_stands_for_it():
    layer = wf.nn.Linear(3, 2, bias=False)
    with wf.Graph() as graph:
        x = wf.placeholder((1, 3), wf.float32, name="x")
        y = layer(x)
    edited = graph.insert(layer.weight, lambda w: w * 2.0)
    with edited:
        (slope,) = wf.gradients(y.sum(), [layer.weight])
    np.testing.assert_array_equal(run(edited, slope, {x: [[1, 2, 3]]}), [[2, 4, 6]] * 2)


def test_a_finished_graph_is_edited_and_stays_finished(small):
    finished = small.graph.optimize([small.y])
    edited = finished.insert("x", lambda x: x * 2.0)
    assert [v.name for v in edited.outputs] == [small.y.name]
    assert run(edited, small.y) == 8.0
    with pytest.raises(GraphError, match="is finished"):
        edited.__enter__()


def test_a_derivative_of_the_users_own_survives_an_edit():
    class Square(wf.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x * 100.0

    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = Square.apply(wf.sin(x)).sum()
    edited = graph.insert("sin", lambda s: s * 2.0)
    with edited:
        (slope,) = wf.gradients(y, [x])
    given = np.array([1.0, 2.0, 3.0], np.float32)
    expected = 400 * np.sin(given) * np.cos(given)
    np.testing.assert_allclose(run(edited, slope, {x: given}), expected, rtol=1e-4)


# -- bodies of control flow ------------------------------------------------------------------------


def looping():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        last, rows = wf.scan(lambda h, row: (wf.tanh(h + row), h * 2.0), wf.zeros(3), x)
        y = wf.cond(x.sum() > 0, lambda: wf.exp(last), lambda: last * 3.0)
    return graph, x, last, rows, y


@pytest.mark.parametrize("compiled", [True, False])
def test_an_edit_inside_of_control_flow(compiled):
    graph, x, last, _, y = looping()
    edited = graph.insert("scan/fn/tanh", lambda h: h * 0.5).replace("cond/true_fn/exp", wf.sin)
    feeds = {x: np.ones((2, 3), np.float32)}
    expected = 0.5 * np.tanh(1 + 0.5 * np.tanh(1))
    np.testing.assert_allclose(run(edited, last, feeds, compiled=compiled)[0], expected, rtol=1e-6)
    found = run(edited, y, feeds, compiled=compiled)[0]
    np.testing.assert_allclose(found, np.sin(np.exp(expected)), rtol=1e-5)


def test_an_edited_loop_is_not_taken_for_the_one_of_an_earlier_gradient():
    graph, x, last, _, _ = looping()
    with graph:
        (before,) = wf.gradients(last.sum(), [x])
    edited = graph.insert("scan/fn/tanh", lambda h: h * 0.5)
    with edited:
        (after,) = wf.gradients(last.sum(), [x])
    feeds = {x: np.ones((2, 3), np.float32)}
    both = run(edited, [last, before, after], feeds)
    old = run(graph, [last, before], feeds)
    np.testing.assert_array_equal(both[1], old[1])
    assert np.abs(both[0] - old[0]).min() > 0.1
    inner = 0.5 * np.tanh(1)
    slope = 0.5 * (1 - np.tanh(1 + inner) ** 2)
    np.testing.assert_allclose(both[2][1], slope, rtol=1e-5)


def test_a_branch_inside_of_a_loop_is_edited():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), wf.float32, name="x")
        total, _ = wf.scan(
            lambda c, r: (wf.cond(r.sum() > 0, lambda: c + r, lambda: c * r), None), wf.zeros(3), x
        )
    edited = graph.insert("scan/fn/cond/true_fn/add", lambda a: a * 3.0)
    assert run(edited, total, {x: np.ones((4, 3))}).tolist() == [120.0] * 3


def test_names_inside_of_control_flow():
    graph, *_ = looping()
    renamed = graph.rename("scan/fn/tanh", "squashed")
    renamed.insert("scan/fn/squashed", wf.sin).verify()
    with pytest.raises(ArgumentError, match="no value named 'tahn'; did you mean 'tanh'"):
        graph.insert("scan/fn/tahn", wf.sin)


def test_a_body_uses_only_what_enters_it():
    graph, *_ = looping()
    weight = wf.ones(3)
    with pytest.raises(GraphError, match="can use the values of that body and constants"):
        graph.insert("scan/fn/tanh", lambda h: h * weight)
    with pytest.raises(ShapeError, match="cannot stand for"):
        graph.insert("scan/fn/tanh", wf.sum)


def test_an_edit_inside_of_a_checkpoint_reaches_its_gradient():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.checkpoint(lambda x: wf.sin(wf.tanh(x)))(x).sum()
    edited = graph.insert("tanh", lambda h: h * 0.5)
    with edited:
        (slope,) = wf.gradients(y, [x])
    given = np.array([0.1, 0.5, 2.0], np.float32)
    expected = 0.5 * (1 - np.tanh(given) ** 2) * np.cos(0.5 * np.tanh(given))
    np.testing.assert_allclose(run(edited, slope, {x: given}), expected, rtol=1e-5)


# -- prune, rename, substitute ---------------------------------------------------------------------


def test_prune(small):
    with small.graph:
        wf.exp(small.x)
    kept = small.graph.prune(small.y)
    assert [node.op.name for node in kept.nodes] == [*["placeholder"] * 2, "mul", "relu", "sum"]
    assert [v.name for v in small.graph.prune("x").inputs] == ["x"]
    with pytest.raises(GraphError, match="does not belong to this graph"):
        run(small.graph.prune("x"), small.y)
    with pytest.raises(ArgumentError, match="nothing would be left"):
        small.graph.prune([])
    with kept:
        wf.exp(small.x)  # its name is free again
    assert kept.find("exp").name == "exp"


def test_pruned_draws_are_not_counted():
    with wf.Graph() as graph:
        first, second = wf.rand(3), wf.rand(3)
    kept = graph.prune(second)
    wf.manual_seed(5)
    expected = run(graph, second, {})
    wf.manual_seed(5)
    np.testing.assert_array_equal(run(kept, second, {}), expected)
    with kept:
        third = wf.rand(3)
    assert len(np.unique(run(kept, [second, third], {}))) == 6
    del first


def test_rename(small):
    edited = small.graph.rename("x", "image").rename(small.h, "hidden")
    assert run(edited, small.y, {"image": Small.feeds["x"], "w": Small.feeds["w"]}) == 4.0
    np.testing.assert_array_equal(
        run(edited, "hidden", {small.x: [[1, -1, 1]], "w": [1, 1, 1]})[0], [1, 0, 1]
    )
    with pytest.raises(ArgumentError, match="no value named 'h'"):
        edited.find("h")
    assert edited.rename("image", "image").find("image").node.op is PLACEHOLDER
    for name, error in (
        ("w", ArgumentError),
        ("", ArgumentTypeError),
        (3, ArgumentTypeError),
    ):
        with pytest.raises(error):
            small.graph.rename("x", name)


def test_rename_one_of_several_results():
    graph, _, last, rows, _ = looping()
    edited = graph.rename(rows, "rows")
    assert edited.symbol("rows").value is edited.symbol(rows).value
    assert edited.symbol(last).name == "scan:0"


def test_substitute_puts_sizes_in_everywhere():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = wf.placeholder((None, 3), wf.float32, name="y")
        _, rows = wf.scan(lambda h, r: (h + r, h * r), wf.zeros(3), x)
        z = rows.reshape(-1) + wf.arange(x.shape[0] * 3) + (y * 2.0).sum()
    edited = graph.substitute({x: np.ones((2, 3), np.float32)})
    assert edited.symbol(z).shape == (6,)
    assert edited.symbol(rows).shape == (2, 3)
    feeds = {y: np.ones((4, 3), np.float32)}
    expected = run(graph, z, {x: np.ones((2, 3)), **feeds})
    for compiled in (True, False):
        np.testing.assert_array_equal(run(edited, z, feeds, compiled=compiled), expected)
    one = graph.substitute({x: y})
    assert [v.name for v in one.inputs] == ["y"]
    assert one.symbol(rows).shape == one.symbol("y").shape
    given = {y: np.ones((2, 3))}
    np.testing.assert_array_equal(run(one, z, given), run(graph, z, {x: given[y], y: given[y]}))


def test_a_check_that_waited_for_a_size_is_made_when_it_is_known():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32, name="x")
        y = x[4]
    with pytest.raises(GraphError, match=r"built at test_edit.py:\d+\) .* index 4 is out of range"):
        graph.substitute({x: [1.0, 2.0]})
    assert run(graph.substitute({x: np.arange(6.0)}), y, {}) == 4.0


def test_bad_substitutions(small):
    substitute = small.graph.substitute
    with pytest.raises(ArgumentTypeError, match="expected a dictionary"):
        substitute([1])
    with pytest.raises(
        ArgumentError, match=r"hidden/relu \(.*\) is no placeholder; use graph.replace"
    ):
        substitute({small.h: 1.0})
    with pytest.raises(ArgumentError, match="depends on x or on a size that it tells"):
        substitute({"x": lambda x: x * 2.0})
    with pytest.raises(ArgumentError, match="given twice"):
        substitute({"x": 1.0, small.x: 2.0})
    with small.graph:
        z = wf.placeholder(("n", 3), wf.float32, name="z")
    with pytest.raises(ArgumentError, match="x and z would stand for one another"):
        small.graph.substitute({"x": z, "z": small.x})
    chained = small.graph.substitute({"x": z, "z": np.ones((2, 3)), "w": 2.0})
    assert run(chained, small.y, {}) == 12.0


def test_symbol_finds_what_is_meant(small):
    edited = small.graph.rename("x", "image")
    assert edited.symbol(small.x).name == "image"
    with pytest.raises(ArgumentError, match="no value named 'imag'; did you mean 'image'"):
        edited.symbol("imag")
