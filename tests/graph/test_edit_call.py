"""Graphs called like functions: inside of other graphs, in jit and vmap, and on values."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, DTypeError, GraphError, ShapeError


@pytest.fixture
def weight():
    return wf.tensor([1.0, 2.0, 3.0]).requires_grad_()


@pytest.fixture
def inner(weight):
    with wf.Graph("inner") as graph:
        x = wf.placeholder(("n", 3), wf.float32, name="x")
        k = wf.placeholder((), wf.float32, name="k")
        y = wf.tanh(x * weight) * k
        y.name = "y"
    return graph


ONES = np.ones((2, 3), np.float32)


def test_a_call_is_the_graph_built_there(inner, weight):
    def build(graph, fn):
        with graph:
            a = wf.placeholder(("n", 3), wf.float32, name="a")
            b = fn(a * 2.0, wf.sum(a))
            loss = b.sum()
            return [loss, *wf.gradients(loss, [a, weight])]

    with wf.Graph() as called, wf.Graph() as built:
        pass
    ours = build(called, inner)
    theirs = build(built, lambda x, k: wf.tanh(x * weight) * k)
    assert called.hash(ours) == built.hash(theirs)
    called.verify()
    node = ours[0].value.node.inputs[0].node
    assert node.name == "inner/mul_1"
    assert node.where.startswith("test_edit_call.py")


def test_arguments_by_name_numbers_and_arrays(inner):
    with wf.Graph() as graph:
        y = inner(k=2, x=ONES)
    assert y.shape == (2, 3)
    found = wf.Session(graph).run(y)
    np.testing.assert_allclose(found[0], 2 * np.tanh([1, 2, 3]), rtol=1e-6)


def test_outputs_are_chosen_in_any_nest(inner):
    with wf.Graph():
        a = wf.placeholder((2, 3), wf.float32, name="a")
        found = inner(a, 1.0, outputs={"y": "y", "inside": ["tanh"]})
        alone = inner(a, outputs="tanh")  # k is not needed
    assert found["inside"][0].shape == found["y"].shape == alone.shape == (2, 3)


def test_a_loaded_graph_is_called(inner, tmp_path):
    inner.save(tmp_path / "inner.weft")
    loaded = wf.Graph.load(tmp_path / "inner.weft")
    with wf.no_grad():
        np.testing.assert_array_equal(loaded(ONES, 2.0).numpy(), inner(ONES, 2.0).numpy())
    with wf.Graph() as graph:
        a = wf.placeholder((None, 3), wf.float32, name="a")
        z = loaded(a, 2.0).sum()
        (slope,) = wf.gradients(z, [a])
    found = wf.Session(graph).run(slope, {a: ONES})
    np.testing.assert_allclose(
        found[0], 2 * (w := np.arange(1, 4)) * (1 - np.tanh(w) ** 2), rtol=1e-4
    )


def test_a_call_in_a_loop_of_another_graph(inner):
    with wf.Graph() as graph:
        a = wf.placeholder((4, 2, 3), wf.float32, name="a")
        total, _ = wf.scan(lambda h, x: (h + inner(x, 1.0), None), wf.zeros(2, 3), a)
        (slope,) = wf.gradients(total.sum(), [a])
    given = np.random.default_rng(0).normal(size=(4, 2, 3)).astype(np.float32)
    for compiled in (True, False):
        found = wf.Session(graph, compiled=compiled).run([total, slope], {a: given})
        np.testing.assert_allclose(found[0], np.tanh(given * [1, 2, 3]).sum(0), rtol=1e-5)
        expected = [1, 2, 3] * (1 - np.tanh(given * [1, 2, 3]) ** 2)
        np.testing.assert_allclose(found[1], expected, rtol=1e-3, atol=1e-6)


def test_sizes_of_one_name_stay_apart(inner):
    with wf.Graph() as graph:
        a = wf.placeholder(("n", 3), wf.float32, name="a")
        b = wf.placeholder(("m", 3), wf.float32, name="b")
        found = [inner(a, 1.0), inner(b, 1.0)]
    assert [str(y.shape[0]) for y in found] == ["n", "m"]
    three = np.ones((3, 3), np.float32)
    made = wf.Session(graph).run(found, {a: ONES, b: three})
    assert [y.shape for y in made] == [(2, 3), (3, 3)]


def test_draws_and_running_statistics_of_a_call():
    norm, drop = wf.nn.BatchNorm1d(3), wf.nn.Dropout(0.5)
    with wf.Graph("net") as net:
        x = wf.placeholder((None, 3), wf.float32, name="x")
        y = drop(norm(x))
    with wf.Graph() as graph:
        a = wf.placeholder((None, 3), wf.float32, name="a")
        first, second = net(a, outputs=y), net(a, outputs=y)
        step = wf.optim.SGD([norm.weight], lr=0.1).minimize(first.sum() + second.sum())
    given = np.arange(48.0).reshape(16, 3)
    one, two = wf.Session(graph).run([first, second], {a: given})
    assert not np.array_equal(one == 0, two == 0)
    wf.Session(graph).run(step, {a: given})
    assert norm.num_batches_tracked.item() == 2


# -- on values -------------------------------------------------------------------------------------


def test_on_values_with_and_without_gradients(inner, weight):
    with wf.no_grad():
        fast = inner(wf.tensor(ONES), 2.0)
    assert not fast.requires_grad
    x = wf.tensor(ONES).requires_grad_()
    slow = inner(x, k=2.0)
    np.testing.assert_allclose(slow.detach().numpy(), fast.numpy(), rtol=1e-6)
    slow.sum().backward()
    expected = 2 * np.arange(1, 4) * (1 - np.tanh(np.arange(1, 4)) ** 2)
    np.testing.assert_allclose(x.grad.numpy()[0], expected, rtol=1e-4)
    assert weight.grad is not None


def test_in_jit_jvp_and_vmap(inner):
    x = wf.tensor(ONES)
    expected = inner(x, 2.0).detach().numpy()
    jitted = wf.jit(lambda x: inner(x, 2.0))
    for _ in range(3):
        np.testing.assert_allclose(jitted(x).detach().numpy(), expected, rtol=1e-6)
    _, tangent = wf.jvp(lambda x: inner(x, 2.0), (x,), (x,))
    w = np.arange(1, 4)
    np.testing.assert_allclose(
        tangent.detach().numpy()[0], 2 * w * (1 - np.tanh(w) ** 2), rtol=1e-4
    )
    batched = wf.vmap(lambda row: inner(row[None], 2.0)[0])(x)
    np.testing.assert_allclose(batched.detach().numpy(), expected, rtol=1e-6)


def test_control_flow_on_values():
    with wf.Graph("loop") as graph:
        x = wf.placeholder((None,), wf.float32, name="x")
        wf.scan(lambda h, r: (h + r, None), wf.tensor(0.0), x)
    assert graph(wf.tensor([1.0, 2.0])).item() == 3.0
    with pytest.raises(GraphError, match=r"scan \(scan\) cannot be differentiated .* on values"):
        graph(wf.tensor([1.0, 2.0]).requires_grad_())


# -- errors ----------------------------------------------------------------------------------------


def test_bad_calls(inner):
    with wf.Graph() as graph:
        a = wf.placeholder((2, 3), wf.float32, name="a")
        for call, error, match in (
            (lambda: inner(a, 1.0, 2.0), ArgumentError, "has the placeholders x, k. Received: 3"),
            (lambda: inner(a), ArgumentError, "inner needs values for k too"),
            (lambda: inner(a, x=a), ArgumentError, "x is given twice"),
            (lambda: inner(a, kk=1.0), ArgumentError, "named 'kk'; did you mean 'k'"),
            (lambda: inner(a.to("float64"), 1.0), DTypeError, "cast .* cannot stand for x"),
            (lambda: inner(a[:, :2], 1.0), ShapeError, "the size 3 is not 2"),
            (lambda: inner(a, 1.0, outputs="yy"), ArgumentError, "no value named 'yy'"),
            (lambda: graph(a), GraphError, "cannot be called in itself"),
        ):
            with pytest.raises(error, match=match):
                call()
    with pytest.raises(ShapeError, match="x must be fed with"):
        inner(np.ones((2, 4), np.float32), 1.0)
    with wf.Graph("empty") as empty:
        pass
    with pytest.raises(GraphError, match="empty computes nothing"):
        empty()
