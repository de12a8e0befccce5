"""vmap as a function: axes, trees, nesting, errors, writing, randomness, fallback."""

from __future__ import annotations

import dataclasses
import pickle
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf
from weft.autodiff.batching import SlowVmapWarning, fallback
from weft.core.errors import WeftError

RNG = np.random.default_rng(0)
X = wf.tensor(RNG.normal(size=(4, 3)))
Y = wf.tensor(RNG.normal(size=(4, 3)))


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-10, atol=1e-12)


# -- axes and trees --------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
@pytest.mark.parametrize("out_axis", [0, 1, 2, -1, -2, -3])
def test_every_axis(axis, out_axis):
    x = RNG.normal(size=(2, 3, 4))
    found = wf.vmap(lambda v: v.T * 2, in_axes=axis, out_axes=out_axis)(wf.tensor(x))
    rows = [np.take(x, i, axis).T * 2 for i in range(x.shape[axis])]
    same(found, np.stack(rows, out_axis))


def test_shared_arguments():
    w = wf.tensor(RNG.normal(size=(2, 3)))
    same(wf.vmap(lambda m, v: m @ v, in_axes=(None, 0))(w, X), X.numpy() @ w.numpy().T)


def test_keyword_arguments_are_batched_along_the_first_axis():
    same(wf.vmap(lambda a, *, b: a * b)(X, b=Y), X.numpy() * Y.numpy())


class Point(NamedTuple):
    x: Any
    y: Any


@dataclasses.dataclass
class Model:
    weight: Any
    bias: Any


def test_trees_of_arguments_axes_and_results():
    def fn(p, model, scale):
        return {"a": p.x * scale["s"], "b": [p.y + model.bias, model.weight.sum()]}

    model = Model(wf.ones(4, 3, dtype="float64"), wf.tensor(2.0, dtype="float64"))
    axes = (Point(0, 1), Model(0, None), {"s": None})
    found = wf.vmap(fn, in_axes=axes, out_axes={"a": 1, "b": 0})(
        Point(X, X.T), model, {"s": wf.tensor(3.0, dtype="float64")}
    )
    same(found["a"], 3 * X.numpy().T)
    same(found["b"][0], X.numpy() + 2)
    same(found["b"][1], np.full(4, 3.0))


def test_an_axis_stands_for_a_whole_subtree():
    found = wf.vmap(lambda p, q: p["u"] + p["v"][0] + q, in_axes=(0, None))(
        {"u": X, "v": [Y]}, wf.ones(3, dtype="float64")
    )
    same(found, X.numpy() + Y.numpy() + 1)


def test_results_that_examples_share():
    shared, repeated = wf.vmap(lambda x: (wf.ones(2), 7), out_axes=(None, 0))(X)
    assert shared.shape == (2,)
    same(repeated, [7] * 4)
    with pytest.raises(ValueError, match=r"the result\[0\] differs between examples"):
        wf.vmap(lambda x: (x,), out_axes=None)(X)


def test_numbers_and_arrays_as_arguments():
    same(wf.vmap(lambda x, k: x * k, in_axes=(0, None))(X.numpy(), 2.0), 2 * X.numpy())


def test_none_and_other_leaves_pass():
    def fn(x, mode, nothing):
        assert mode == "double"
        assert nothing is None
        return x * 2

    same(wf.vmap(fn, in_axes=(0, None, None))(X, "double", None), 2 * X.numpy())


def test_axis_size_alone():
    assert wf.vmap(lambda: wf.ones(2), axis_size=3)().shape == (3, 2)
    draws = wf.vmap(lambda: wf.rand(2), axis_size=3)()
    assert len(np.unique(draws.numpy())) == 6


def test_no_examples():
    assert wf.vmap(lambda x: (x @ x, wf.softmax(x, 0)))(wf.zeros(0, 3))[1].shape == (0, 3)


def test_any_callable():
    class Scale:
        def __call__(self, x):
            return x * 3

    same(wf.vmap(Scale())(X), 3 * X.numpy())
    same(wf.vmap(wf.sin)(X), np.sin(X.numpy()))
    assert wf.vmap(wf.sin).__name__ == "sin"


# -- inside ----------------------------------------------------------------------------------------


def test_shapes_are_those_of_one_example():
    def fn(x):
        assert x.shape == (3,)
        assert (x.ndim, x.size, len(x), x.dtype) == (1, 3, 3, wf.float64)
        assert x.nbytes == 24
        total = sum(part for part in x)
        return total * x.shape[0]

    same(wf.vmap(fn)(X), X.numpy().sum(1) * 3)


def test_nested_levels_do_not_mix():
    outer = wf.vmap(lambda a: wf.vmap(lambda b: a[0] - b)(Y[:, 0]))(X)
    same(outer, X.numpy()[:, :1] - Y.numpy()[:, 0])
    same(
        wf.vmap(wf.vmap(lambda a, b: a * b, in_axes=(0, None)), in_axes=(None, 0))(X[0], Y[0]),
        np.outer(Y.numpy()[0], X.numpy()[0]),
    )


def test_writing_in_place():
    def fn(x):
        y = wf.zeros(3, dtype="float64")
        y[0] = x[0]
        y[1:] += 2 * x[1:]
        z = x.clone()
        z *= 2
        z[1] = 5.0
        z.copy_(z + y)
        y.fill_(x[2])
        return y, z

    y, z = wf.vmap(fn)(X)
    x = X.numpy()
    same(y, np.repeat(x[:, 2:], 3, 1))
    expected = np.stack([3 * x[:, 0], 5 + 2 * x[:, 1], 4 * x[:, 2]], 1)
    same(z, expected)


def test_writing_leaves_the_argument_as_it_was():
    before = X.numpy().copy()

    def fn(x):
        x[0] = 100.0
        x += 1
        return x

    assert wf.vmap(fn)(X).numpy()[0, 0] == 101
    same(X, before)


def test_writing_through_a_mask():
    def fn(x):
        y = x.clone()
        y[y > 0] = 0.0
        return y

    same(wf.vmap(fn)(X), np.minimum(X.numpy(), 0))
    with pytest.raises(ValueError, match=r"use wf.where\(mask, value, x\)"):
        wf.vmap(lambda x: x.clone().__setitem__(x > 0, wf.ones(2, dtype="float64")))(X)


def test_writing_to_an_outer_level():
    def fn(x):
        kept = x * 1

        def inner(y):
            local = kept * 1
            local[0] = y
            return local

        return wf.vmap(inner)(Y[:2, 0])

    found = wf.vmap(fn)(X).numpy()
    assert found.shape == (4, 2, 3)
    same(found[:, :, 0], np.broadcast_to(Y.numpy()[:2, 0], (4, 2)))
    same(found[:, 0, 1:], X.numpy()[:, 1:])


def test_a_parameter_takes_no_value_that_differs():
    weight = wf.nn.Parameter(wf.zeros(3, dtype="float64"))

    def fn(x):
        with wf.no_grad():
            weight.copy_(x)
        return x

    with pytest.raises(WeftError, match="parameter"):
        wf.vmap(fn)(X)


def test_a_tensor_from_outside_keeps_its_value():
    total = wf.zeros(3, dtype="float64")

    def fn(x):
        total.copy_(x)
        return x

    with pytest.raises(WeftError, match="from outside of vmap is shared"):
        wf.vmap(fn)(X)
    assert type(total) is wf.Tensor
    same(total, np.zeros(3))
    norm = wf.nn.BatchNorm1d(3)
    batch = wf.randn(2, 4, 3)
    with pytest.raises(WeftError, match="a buffer"):
        wf.vmap(norm)(batch)
    norm.eval()
    same(wf.vmap(norm)(batch), norm(batch.reshape(8, 3)).reshape(2, 4, 3))


def test_a_tensor_from_outside_keeps_its_value_after_an_error():
    total = wf.zeros(3, dtype="float64")

    def fn(x):
        total.copy_(x)
        raise KeyError("stop")

    with pytest.raises(KeyError):
        wf.vmap(fn)(X)
    same(total + 1, np.ones(3))


@pytest.mark.parametrize(
    ("fn", "match"),
    [
        (lambda x: x if x.sum() > 0 else -x, r"truth value: inside vmap .* wf.where or wf.cond"),
        (lambda x: float(x[0]), r"float\(\): .* 4 examples"),
        (lambda x: int(x[0]), r"int\(\)"),
        (lambda x: x[0].item(), r"item\(\)"),
        (lambda x: x[: x[0].to("int64")], "slices must be the same"),
        (lambda x: x.numpy(), r"numpy\(\): .* outside of vmap"),
        (np.asarray, "conversion to an array"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: 1.0 in x, r"\(x == element\).any\(\)"),
        (lambda x: f"{x[0]:.2f}", "format"),
        (pickle.dumps, "pickling"),
        (lambda x: x[x > 0], r"use wf.where\(mask, x, other\)"),
        (wf.nonzero, "differs between the examples of vmap"),
        (wf.unique, "differs between the examples of vmap"),
    ],
)
def test_reading_values_says_what_to_do(fn, match):
    with pytest.raises(ValueError, match=match):
        wf.vmap(fn)(X)


def test_a_value_kept_outside_is_refused():
    kept = []
    wf.vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(WeftError, match="a vmap that has ended"):
        kept[0] + 1
    assert "batched(" in repr(kept[0])


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: wf.vmap(3), "a function is needed. Received: 3"),
        (lambda: wf.vmap(wf.sin, in_axes="a"), "in_axes must be an int.*Received: str"),
        (lambda: wf.vmap(wf.sin, in_axes=(0, 0))(X), r"1 argument\(s\). Received: \(0, 0\)"),
        (lambda: wf.vmap(wf.sin, in_axes=5)(X), r"argument\[0\] of shape \(4, 3\) .* axis 5"),
        (lambda: wf.vmap(wf.sin, in_axes=None)(X), "no argument has a batch axis"),
        (lambda: wf.vmap(wf.sin)(wf.tensor(1.0)), "0-d"),
        (lambda: wf.vmap(wf.sin, out_axes=4)(X), r"out_axes of the result.*axis 4"),
        (lambda: wf.vmap(wf.add)(X, X[:2]), r"one size.*argument\[0\].*4.*argument\[1\].*2"),
        (lambda: wf.vmap(wf.sin, axis_size=3)(X), "axis_size: 3"),
        (lambda: wf.vmap(wf.sin, axis_size=-1)(X), "Received: -1"),
        (lambda: wf.vmap(wf.sin, randomness="some")(X), "one of.*Received: 'some'"),
        (lambda: wf.vmap(lambda x: "text")(X), "must be a tensor.*Received: str"),
        (lambda: wf.vmap(lambda a: a)("text"), r"argument\[0\].*must be a tensor.*str"),
        (lambda: wf.vmap(lambda d: d["a"], in_axes=({"b": 0},))({"a": X}), "in_axes"),
        (lambda: wf.vmap(wf.sin, in_axes=([0],))(X), "in_axes.*list"),
    ],
)
def test_bad_arguments(call, match):
    with pytest.raises((ValueError, TypeError), match=match):
        call()


# -- random numbers --------------------------------------------------------------------------------


def test_each_example_draws_numbers_of_its_own():
    wf.manual_seed(3)
    first = wf.vmap(lambda x: wf.rand(3))(X).numpy()
    second = wf.rand(12).numpy()
    assert len(np.unique(np.concatenate([first.ravel(), second]))) == 24
    wf.manual_seed(3)
    same(wf.vmap(lambda x: wf.rand(3))(X), first)


def test_the_same_numbers_for_all():
    wf.manual_seed(3)
    alone = wf.rand(3).numpy()
    wf.manual_seed(3)
    found = wf.vmap(lambda x: wf.rand(3), randomness="same", out_axes=None)(X)
    same(found, alone)
    wf.manual_seed(3)
    p = wf.tensor([[0.5], [0.5], [0.5], [0.5]])
    rows = wf.vmap(wf.bernoulli, randomness="same")(p).numpy()
    assert (rows == rows[0]).all()


def test_drawing_refused():
    with pytest.raises(ValueError, match=r"rand: .*randomness='different' or 'same'"):
        wf.vmap(lambda x: wf.rand(3), randomness="error")(X)


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: wf.randn(2),
        lambda x: wf.randint(0, 1000000, (2,)),
        lambda x: wf.randperm(50),
        lambda x: wf.categorical(wf.softmax(wf.zeros(3, 1000), -1)),
        lambda x: wf.gamma(abs(x) + 1.0),
        lambda x: wf.bernoulli(wf.full((200,), 0.5)),
        lambda x: wf.nn.functional.dropout(wf.ones(200), 0.5),
        lambda x: wf.normal(x, 1.0),
        lambda x: wf.exponential(1.0, (3,)),
        lambda x: wf.truncated_normal(shape=(3,)),
    ],
)
def test_every_draw_differs_between_examples(draw):
    rows = wf.vmap(draw)(X).numpy()
    assert all((rows[i] != rows[j]).any() for i in range(4) for j in range(i))


def test_nested_draws_differ():
    found = wf.vmap(wf.vmap(lambda y: wf.rand(2)))(X).numpy()
    assert len(np.unique(found)) == found.size == 24


# -- the fallback ----------------------------------------------------------------------------------


def test_the_fallback_warns_once_with_the_users_line(monkeypatch):
    monkeypatch.setattr(fallback, "_warned", set())
    counts = wf.tensor([[0, 1, 1], [2, 2, 0]])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = wf.vmap(lambda x: wf.bincount(x, minlength=3))(counts)
        wf.vmap(lambda x: wf.bincount(x, minlength=3))(counts)
    same(found, [[1, 2, 0], [1, 0, 2]])
    assert [w.category for w in caught] == [SlowVmapWarning]
    assert "bincount" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_the_fallback_needs_results_of_one_shape():
    with (
        warnings.catch_warnings(action="ignore"),
        pytest.raises(ValueError, match=r"one shape. Received: \(2,\) and \(3,\)"),
    ):
        wf.vmap(wf.bincount)(wf.tensor([[0, 1], [2, 2]]))


def test_the_fallback_of_no_examples():
    with warnings.catch_warnings(action="ignore"):
        found = wf.vmap(lambda x: wf.bincount(x, minlength=3))(wf.zeros(0, 2, dtype="int64"))
    assert found.shape[0] == 0
