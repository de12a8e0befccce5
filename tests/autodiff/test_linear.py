"""linearize and linear_transpose."""

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentTypeError, GradientError, ShapeError
from weft.core.tree import TreeMismatchError


def array(*shape, seed=0):
    return wf.tensor(np.random.default_rng(seed).normal(size=shape))


def program(x):
    """Use rules of every kind: partials, linear, multilinear, transposed."""
    y = x
    while (y * y).sum() < 50:  # a value can be read
        y = y * 2
    return {"y": wf.sin(y) * x, "p": wf.prod(x), "m": x @ x, "c": wf.tensor(1.0), "n": wf.argmax(x)}


def test_a_map_is_recorded_once_and_applied_many_times():
    calls = []
    x = array(3)
    y, push = wf.linearize(lambda x: calls.append(1) or program(x), x)
    for seed in (1, 2):
        v = array(3, seed=seed)
        expected = wf.jvp(program, (x,), (v,))
        found = push(v)
        for name in ("y", "p", "m", "c"):
            np.testing.assert_allclose(y[name].numpy(), expected[0][name].numpy())
            np.testing.assert_allclose(found[name].numpy(), expected[1][name].numpy())
        assert found["n"] is None
    assert len(calls) == 1
    assert "sin" not in str(push.graph)


def test_later_writes_do_not_reach_the_map():
    x = wf.tensor([1.0, 2.0])
    _, push = wf.linearize(lambda x: x * x, x)
    x += 100
    assert push(wf.tensor([1.0, 1.0])).tolist() == [2.0, 4.0]


def test_results_are_values_of_the_callers():
    _, push = wf.linearize(lambda x: x.reshape((2, 1)), wf.tensor([1.0, 2.0]))
    v = wf.tensor([1.0, 2.0])
    found = push(v)
    found += 1
    assert v.tolist() == [1.0, 2.0]


def test_several_primals_and_zero_tangents():
    _, push = wf.linearize(lambda a, b: a["x"] * b, {"x": wf.tensor(2.0)}, wf.tensor(3.0))
    assert push({"x": wf.tensor(1.0)}, None).item() == 3.0
    assert push({"x": None}, wf.tensor(1.0)).item() == 2.0
    with pytest.raises(TreeMismatchError):
        push({"y": wf.tensor(1.0)}, None)
    with pytest.raises(ShapeError):
        push({"x": wf.tensor([1.0])}, None)


def test_differentiable_at_every_level():
    v = array(3, seed=1)

    def by_map(x):
        return (wf.linearize(lambda x: wf.sin(x) * x, x)[1](v) ** 2).sum()

    def by_jvp(x):
        return (wf.jvp(lambda x: wf.sin(x) * x, (x,), (v,))[1] ** 2).sum()

    x = array(3)
    np.testing.assert_allclose(wf.grad(by_map)(x).numpy(), wf.grad(by_jvp)(x).numpy())
    np.testing.assert_allclose(wf.hessian(by_map)(x).numpy(), wf.hessian(by_jvp)(x).numpy())
    _, push = wf.linearize(wf.sin, x)
    np.testing.assert_allclose(wf.grad(lambda v: push(v).sum())(v).numpy(), np.cos(x.numpy()))


def test_in_a_graph():
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float64, name="x")
        _, push = wf.linearize(lambda x: x * x, x)
        results = [push(wf.ones_like(x)), push(3 * wf.ones_like(x))]
    first, second = wf.Session(graph).run(results, {x: np.array([1.0, 2.0])})
    assert (first.tolist(), second.tolist()) == ([2.0, 4.0], [6.0, 12.0])


# -- transposition --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "shape"),
    [
        (lambda x: wf.stack([x.sum(), 2 * x[0]]), (3,)),
        (lambda x: wf.cumsum(x)[::-1] / 3.0 - x, (4,)),
        (lambda x: wf.tensor(np.arange(6.0).reshape(2, 3)) @ x, (3,)),
        (lambda x: wf.concat([x, wf.zeros((1, 2), dtype=wf.float64)]).T, (2, 2)),
        (lambda x: wf.pad(x, 1), (3,)),
        (lambda x: wf.where(wf.tensor([True, False]), x, 0.0), (2,)),
    ],
)
def test_transposed_is_the_adjoint(fn, shape):
    x = array(*shape)
    y = fn(x)
    u = array(*y.shape, seed=1)
    (found,) = wf.linear_transpose(fn, x)(u)
    np.testing.assert_allclose((found * x).sum().item(), (u * y).sum().item())
    with wf.Graph() as graph:
        symbol = wf.placeholder(y.shape, wf.float64, name="u")
        made = wf.linear_transpose(fn, x)(symbol)
    np.testing.assert_allclose(wf.Session(graph).run(made, {symbol: u})[0], found.numpy())


def test_trees_and_examples_of_any_kind():
    transpose = wf.linear_transpose(
        lambda t, b: {"y": t["a"] * 2 + b}, {"a": np.zeros(2, np.float32)}, wf.zeros(2)
    )
    a, b = transpose({"y": wf.tensor([1.0, 2.0])})
    assert (a["a"].tolist(), b.tolist()) == ([2.0, 4.0], [1.0, 2.0])


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (lambda x: x * x, "mul is not linear"),
        (lambda x: wf.exp(x) - 1, "exp is not linear"),
        (wf.abs, "absolute|abs is not linear"),
        (lambda x: x + 1, "take 0 to 0"),
    ],
)
def test_what_is_not_linear_is_refused(fn, message):
    with pytest.raises(GradientError, match=message):
        wf.linear_transpose(fn, wf.zeros(3))


def test_mistakes_are_explained():
    with pytest.raises(ArgumentTypeError, match="a shape and a floating dtype"):
        wf.linear_transpose(lambda x: x, wf.tensor([1, 2]))
    with pytest.raises(ArgumentTypeError, match="takes a function"):
        wf.linearize(3)
