"""Gradients of weights that several operations use, as products of the rows of all of them."""

import gc
import weakref

import numpy as np
import pytest

import weft as wf
from weft.autodiff import row_sums
from weft.core.facts import ROW_SUMS
from weft.core.large import LARGE
from weft.core.op import find_op

OUT, IN = 320, 256  # LEAST_SIZE and more, also of a square


def test_sizes_alone_decide():
    assert row_sums.LEAST_SIZE >= LARGE  # such a weight has opened the door


def tensors(*shapes, dtype="float32", **options):
    rng = np.random.default_rng(0)
    return [wf.tensor(rng.standard_normal(s).astype(dtype), **options) for s in shapes]


@pytest.fixture
def products(monkeypatch):
    """Count the products that rows wait for."""
    counted = []
    add = row_sums.RowSums._add
    monkeypatch.setattr(
        row_sums.RowSums, "_add", lambda self, leaf: (counted.append(leaf), add(self, leaf))
    )
    return counted


def recurrence(multiply, w, xs, h):
    for x in xs:
        h = wf.tanh(multiply(h, w) + x)
    return (h * h).sum()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 7, 32, 300])
@pytest.mark.parametrize("steps", [1, 2, 3, 30])
def test_gradients_are_those_of_one_product_after_another(steps, rows, dtype, monkeypatch):
    (w,) = tensors((IN, IN), dtype=dtype)
    xs, (h,) = tensors(*[(rows, IN)] * steps, dtype=dtype), tensors((rows, IN), dtype=dtype)
    found = []
    for least in (row_sums.LEAST_SIZE, 1 << 40):
        monkeypatch.setattr(row_sums, "LEAST_SIZE", least)
        for multiply in (wf.linear, wf.matmul):
            leaf = wf.tensor((w * 0.05).numpy(), requires_grad=True)
            recurrence(multiply, leaf, xs, h).backward()
            found.append(leaf.grad.numpy())
    for one, other in zip(found[:2], found[2:], strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(
            one / scale, other / scale, atol=1e-5 if dtype[-2:] == "32" else 1e-13
        )


def test_rows_are_multiplied_when_there_are_enough_of_them(products):
    (w,) = tensors((OUT, IN), requires_grad=True)
    xs = tensors(*[(32, IN)] * 20)
    sum(wf.linear(x, w).sum() for x in xs).backward()
    assert len(products) == -(-(20 - 1) * 32 // row_sums.ENOUGH_ROWS)  # the first does not wait
    expected = np.broadcast_to(sum(x.numpy().sum(0) for x in xs), (OUT, IN))
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shape", [(2, 40, IN), (IN,), (row_sums.ENOUGH_ROWS, IN)], ids=str)
def test_what_makes_no_rows_or_enough_does_not_wait(shape, products):
    (w,) = tensors((OUT, IN), requires_grad=True)
    x, y = tensors(shape, shape)
    (wf.linear(x, w).sum() + wf.linear(y, w).sum()).backward()
    assert len(products) == (1 if shape[0] == 2 else 0)
    rows = (x + y).numpy().reshape(-1, IN).sum(0)
    np.testing.assert_allclose(
        w.grad.numpy(), np.broadcast_to(rows, (OUT, IN)), rtol=1e-3, atol=1e-3
    )


def test_one_use_and_small_weights_are_as_ever(products):
    large, small = tensors((OUT, IN), (8, IN), requires_grad=True)
    x, y = tensors((32, IN), (32, IN))
    (wf.linear(x, large).sum() + wf.linear(x, small).sum() + wf.linear(y, small).sum()).backward()
    assert products == []
    assert (large.grad.numpy() == (np.ones((32, OUT), "float32").T @ x.numpy())).any()


def test_other_uses_of_a_weight_are_added():
    (w,) = tensors((OUT, IN), requires_grad=True)
    xs = tensors(*[(4, IN)] * 3)
    (sum(wf.linear(x, w).sum() for x in xs) + 3.0 * w.sum() + (w[0] * 2.0).sum()).backward()
    expected = np.broadcast_to(sum(x.numpy().sum(0) for x in xs), (OUT, IN)) + 3.0
    expected[0] += 2.0
    np.testing.assert_allclose(w.grad.numpy(), expected, rtol=1e-4, atol=1e-4)


def test_hooks_see_whole_gradients_once():
    (w,) = tensors((OUT, IN), requires_grad=True)
    xs, seen = tensors(*[(4, IN)] * 5), []
    w.register_hook(lambda g: seen.append(g.numpy().copy()))
    sum(wf.linear(x, w).sum() for x in xs).backward()
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], w.grad.numpy())


def test_gradients_that_are_asked_for_and_second_walks_are_whole():
    (w,) = tensors((OUT, IN), requires_grad=True)
    xs = tensors(*[(4, IN)] * 5)
    loss = sum(wf.linear(x, w).sum() for x in xs)
    (asked,) = wf.gradients(loss, [w], retain_graph=True)
    loss.backward(retain_graph=True)
    np.testing.assert_array_equal(asked.numpy(), w.grad.numpy())
    loss.backward()
    np.testing.assert_array_equal(w.grad.numpy(), 2 * asked.numpy())


def test_second_derivatives_do_not_wait():
    (w,) = tensors((OUT, IN), dtype="float64", requires_grad=True)
    xs = tensors(*[(4, IN)] * 3, dtype="float64")
    loss = sum((wf.linear(x, w) ** 2).sum() for x in xs)
    (first,) = wf.gradients(loss, [w], create_graph=True)
    (second,) = wf.gradients((first * first).sum(), [w])
    gram = sum(x.numpy().T @ x.numpy() for x in xs)
    np.testing.assert_allclose(second.numpy(), 8 * w.numpy() @ gram @ gram, rtol=1e-10)


def test_halves_are_summed_without_overflowing_in_between():
    (w,) = tensors((OUT, IN), dtype="float16", requires_grad=True)
    xs = [wf.ones(16, IN, dtype="float16") * sign for sign in (1.0, 1.0, -1.0)]
    sum(wf.linear(x, w).sum() for x in xs).backward()
    assert w.grad.dtype == wf.float16
    np.testing.assert_array_equal(w.grad.numpy(), np.full((OUT, IN), 16.0, "float16"))


def test_a_walk_keeps_no_rows_when_it_is_over():
    (w,) = tensors((OUT, IN), requires_grad=True)
    x = wf.ones(4, IN)
    kept = weakref.ref(x._value)
    (wf.linear(x, w).sum() + wf.linear(x * 1.0, w).sum()).backward()
    del x
    gc.collect()
    assert kept() is None


@pytest.mark.parametrize("name", ["linear", "matmul"])
def test_factors_make_the_gradient(name):
    op = find_op(name)
    position, rule = ROW_SUMS[op]
    x, g, weight = (
        np.random.default_rng(0).standard_normal(s) for s in ((3, 2, 5), (3, 2, 4), (5, 4))
    )
    leaf = wf.tensor(weight if name == "matmul" else weight.T.copy(), requires_grad=True)
    getattr(wf, name)(wf.tensor(x), leaf).backward(wf.tensor(g))
    left, right = rule(g, x) if name == "linear" else rule(g, x, weight.shape)
    assert op.inputs[position] in ("weight", "y")
    np.testing.assert_allclose(left.T @ right, leaf.grad.numpy())
    assert (
        rule(g[0], x[0, 0]) if name == "linear" else rule(g[0, 0], x[0, 0], weight.shape)
    ) is None
