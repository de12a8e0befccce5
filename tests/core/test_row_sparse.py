"""Row-sparse gradients: what they are, how they add up, and where they become dense."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import weft as wf
from weft.core.anomaly import has_nan
from weft.core.row_sparse import FEW, asks_for_rows, row_totals, summed_rows, write_rows
from weft.ops.index.embedding import embedding

RNG = np.random.default_rng(0)


def rows_of(rows, values, shape):
    return wf.RowSparse(wf.tensor(rows), wf.tensor(values), shape)


@pytest.fixture
def table():
    return wf.nn.Embedding(6, 2, sparse=True)


def test_parts_add_up_to_the_dense_gradient():
    gradient = rows_of([4, 1, 4], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], (6, 2))
    expected = np.zeros((6, 2))
    expected[4], expected[1] = [6, 8], [3, 4]
    np.testing.assert_array_equal(gradient.to_dense().numpy(), expected)
    np.testing.assert_array_equal(gradient.numpy(), expected)
    once = gradient.coalesce()
    assert once.rows.tolist() == [1, 4]
    assert once.values.tolist() == [[3.0, 4.0], [6.0, 8.0]]
    assert once.is_coalesced
    assert once.coalesce() is once
    assert (gradient.ndim, gradient.size, gradient.nbytes) == (2, 6, 3 * 8 + 6 * 4)
    assert str(gradient.device) == "cpu"


def test_it_prints_its_parts():
    shown = repr(rows_of([4], [[1.0, 2.0]], (6, 2)))
    assert shown == "RowSparse(shape=(6, 2), rows=tensor([4]), values=tensor([[1., 2.]]))"


@pytest.mark.parametrize("count", [0, 1, 5, 700, 5000])
def test_sums_are_in_the_order_of_appearance(count):
    rows = RNG.integers(0, 1 + count // 3, count)
    values = RNG.standard_normal((count, 3)).astype(np.float32)
    distinct, sums = summed_rows(rows, values)
    expected = np.zeros((1 + count // 3, 3), np.float32)
    for row, value in zip(rows, values, strict=True):
        expected[row] += value
    np.testing.assert_array_equal(distinct, np.unique(rows))
    np.testing.assert_array_equal(sums, expected[distinct])


@pytest.mark.parametrize("largest", [1 << 15, 1 << 20, 1 << 40])
def test_rows_of_any_size_are_sorted(largest):
    rows = RNG.integers(0, largest, 2000)
    rows = np.concatenate([rows, rows[:50]])
    distinct, sums = summed_rows(rows, np.ones((rows.size, 1)))
    np.testing.assert_array_equal(distinct, np.unique(rows))
    assert sums.sum() == rows.size


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("largest", [40, 1 << 20, 1 << 40])
def test_totals_stand_at_each_place_of_a_row(largest, dtype):
    rows = RNG.integers(0, largest, 2000)
    rows = np.concatenate([rows, rows[:20], rows[:3]])
    drawn = RNG.standard_normal((rows.size, 3)).astype(dtype)
    for values in (drawn, np.array(drawn, order="F"), np.broadcast_to(drawn[:1], drawn.shape)):
        given = values.copy()
        found, totals = row_totals(rows, values)
        distinct, sums = summed_rows(rows, values)
        np.testing.assert_array_equal(np.unique(found), distinct)
        np.testing.assert_array_equal(totals, sums[np.searchsorted(distinct, found)])
        np.testing.assert_array_equal(values, given)
        assert (found is rows) == (largest > 40)  # where few stand again, nothing is moved


@pytest.mark.parametrize("apart", [1, 65536])
@pytest.mark.parametrize("count", [0, 3, 600])
def test_totals_of_rows_that_stand_once_are_their_values(count, apart):
    rows, values = np.arange(count)[::-1] * apart, np.arange(2.0 * count).reshape(count, 2)
    found, totals = row_totals(rows, values)
    moved = apart > 1 or count < FEW
    np.testing.assert_array_equal(found, rows[::-1] if moved else rows)
    np.testing.assert_array_equal(totals, values[::-1] if moved else values)
    assert (totals is values) != moved


@pytest.mark.parametrize("shape", [(9,), (9, 4), (9, 2, 3), (9, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_rows_are_written(shape, dtype):
    table = RNG.standard_normal(shape).astype(dtype)
    rows = np.array([3, 8, 0, 3, -2])
    values = RNG.standard_normal((5, *shape[1:]))
    for written in (table.copy(), np.array(table, order="F")):
        expected = table.copy()
        expected[rows] = values.astype(dtype)
        write_rows(written, rows, values)
        np.testing.assert_array_equal(written, expected)
        write_rows(written, rows[:0], values[:0])
        np.testing.assert_array_equal(written, expected)
        if table.size:
            with pytest.raises(IndexError):
                write_rows(written, np.array([9]), values[:1])


def test_halves_are_summed_in_single_precision():
    values = np.full((3000, 1), 1.0, np.float16)
    _, sums = summed_rows(np.zeros(3000, np.int64), values)
    assert sums.dtype == np.float16
    assert sums[0, 0] == 3000  # one by one, halves end at 2048


def test_arithmetic():
    a, b = rows_of([1, 2], [[1.0], [2.0]], (4, 1)), rows_of([2], [[5.0]], (4, 1))
    assert (a + b).rows.tolist() == [1, 2, 2]
    assert (a + b).numpy().tolist() == [[0.0], [1.0], [7.0], [0.0]]
    whole = wf.ones(4, 1)
    assert isinstance(a + whole, wf.Tensor)
    assert (a + whole).tolist() == [[1.0], [2.0], [3.0], [1.0]]
    assert (2 * a).values.tolist() == (a * 2).values.tolist() == [[2.0], [4.0]]
    assert (a / 2).values.tolist() == [[0.5], [1.0]]
    assert (-a).values.tolist() == [[-1.0], [-2.0]]
    assert a.to(wf.float64).dtype == np.float64
    assert (a + b).map(lambda x: x * x).numpy().tolist() == [[0.0], [1.0], [49.0], [0.0]]
    assert a.clone().detach().rows.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("rows", "values", "shape", "match"),
    [
        ([[1]], [[1.0]], (4, 1), "vector of integers"),
        ([1.0], [[1.0]], (4, 1), "vector of integers"),
        ([1], [[1.0, 2.0]], (4, 1), r"must have the shape \(1, 1\)"),
        ([1], [1.0], (), "must have the shape"),
    ],
)
def test_bad_parts_are_refused(rows, values, shape, match):
    with pytest.raises(wf.WeftError, match=match):
        rows_of(rows, values, shape)


def test_bad_operands_are_refused():
    a = rows_of([1], [[1.0]], (4, 1))
    with pytest.raises(wf.WeftError, match=r"shape \(4, 1\) adds"):
        a + rows_of([1], [[1.0]], (5, 1))
    with pytest.raises(wf.WeftError, match="one number"):
        a * wf.ones(4, 1)
    with pytest.raises(wf.WeftError, match="takes rows and values as tensors"):
        wf.RowSparse([1], [[1.0]], (4, 1))
    with pytest.raises(AttributeError, match=r"no 'sum'.*to_dense"):
        a.sum()


# -- where it comes from ---------------------------------------------------------------------------


def test_the_operators_that_give_it():
    x = wf.tensor(RNG.standard_normal((5, 2)), requires_grad=True)
    index = wf.tensor([[0, -1], [4, 0]])
    wf.take(x, index, axis=0, sparse=True).sum().backward()
    assert isinstance(x.grad, wf.RowSparse)
    assert x.grad.rows.tolist() == [0, 4, 4, 0]
    x.grad = None
    wf.nn.functional.embedding(wf.tensor([1, 3]), x, sparse=True).sum().backward()
    assert x.grad.rows.tolist() == [1, 3]
    assert asks_for_rows(embedding, (None, True))
    assert not asks_for_rows(embedding, (None, False))


def test_gather_of_a_vector_and_what_it_refuses():
    x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    wf.gather(x, 0, wf.tensor([2, 0, 2]), sparse_grad=True).sum().backward()
    assert isinstance(x.grad, wf.RowSparse)
    assert x.grad.to_dense().tolist() == [1.0, 0.0, 2.0]
    assert wf.gather(x, 0, wf.tensor([1]), sparse_grad=False).tolist() == [2.0]
    with pytest.raises(wf.WeftError, match=r"wf.take\(x, index, axis=0, sparse=True\)"):
        wf.gather(wf.ones(2, 2), 0, wf.tensor([[0, 0]]), sparse_grad=True)
    with pytest.raises(wf.WeftError, match="along axis 0"):
        wf.take(wf.ones(2, 2), wf.tensor([0]), axis=1, sparse=True)


def test_bags(table):
    dense = wf.nn.EmbeddingBag(6, 2, _weight=table.weight.detach())
    bag = wf.nn.EmbeddingBag(6, 2, sparse=True, _weight=table.weight.detach())
    for one in (bag, dense):
        one(wf.tensor([[1, 2], [2, 2]])).sum().backward()
    assert isinstance(bag.weight.grad, wf.RowSparse)
    np.testing.assert_allclose(bag.weight.grad.numpy(), dense.weight.grad.numpy())
    assert "sparse=True" in repr(bag)
    with pytest.raises(wf.WeftError, match="scale_grad_by_freq counts all rows"):
        wf.nn.EmbeddingBag(6, 2, sparse=True, scale_grad_by_freq=True)


def test_gradients_by_frequency_and_norms_of_rows(table):
    index = wf.tensor([[1, 2], [2, 2]])
    found = []
    for sparse in (True, False):
        layer = wf.nn.Embedding(
            6,
            2,
            sparse=sparse,
            scale_grad_by_freq=True,
            max_norm=0.5,
            _weight=table.weight.detach(),
        )
        (layer(index) * wf.tensor([[[1.0], [2.0]], [[3.0], [7.0]]])).sum().backward()
        found.append((layer.weight.numpy(), layer.weight.grad.numpy()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1])


# -- accumulation ----------------------------------------------------------------------------------


def test_backwards_add_up(table):
    for index in ([1, 2], [2, 5]):
        table(wf.tensor(index)).sum().backward()
    assert table.weight.grad.rows.tolist() == [1, 2, 2, 5]
    table.weight.sum().backward()
    assert isinstance(table.weight.grad, wf.Tensor)
    assert table.weight.grad[:, 0].tolist() == [1.0, 2.0, 3.0, 1.0, 1.0, 2.0]
    table(wf.tensor([0])).sum().backward()
    assert table.weight.grad[0, 0].item() == 2.0


@pytest.mark.parametrize("order", [1, -1])
def test_two_readers_in_one_loss(table, order):
    weight = table.weight
    parts = [table(wf.tensor([1])).sum(), table(wf.tensor([1, 3])).sum(), weight[:2].sum()]
    first, *others = parts[::order]
    (first + others[0] + others[1]).backward()
    assert weight.grad[:, 0].tolist() == [1.0, 3.0, 0.0, 1.0, 0.0, 0.0]


def test_zero_grad(table):
    table(wf.tensor([1])).sum().backward()
    table.zero_grad(set_to_none=False)
    assert table.weight.grad.rows.tolist() == []
    assert not table.weight.grad.numpy().any()
    table(wf.tensor([2])).sum().backward()
    assert table.weight.grad.rows.tolist() == [2]
    table.zero_grad()
    assert table.weight.grad is None


def test_grad_may_be_set_and_copied(table):
    table.weight.grad = rows_of([1], [[1.0, 2.0]], (6, 2))
    assert copy.deepcopy(table).weight.grad.rows.tolist() == [1]
    with pytest.raises(wf.WeftError, match=r"shape \(6, 2\)"):
        table.weight.grad = rows_of([1], [[1.0, 2.0]], (7, 2))
    table.half()
    assert table.weight.grad.dtype == np.float16


def test_hooks_see_it_and_may_replace_it(table):
    seen = []
    handle = table.weight.register_hook(lambda g: seen.append(g) or g * 2)
    table(wf.tensor([1])).sum().backward()
    assert isinstance(seen[0], wf.RowSparse)
    assert table.weight.grad.values.tolist() == [[2.0, 2.0]]
    handle.remove()
    table.weight.register_hook(lambda g: g.to_dense())
    table(wf.tensor([1])).sum().backward()
    assert table.weight.grad[1].tolist() == [3.0, 3.0]


# -- where it becomes dense ------------------------------------------------------------------------


def test_behind_other_operations_it_is_dense():
    x = wf.tensor(RNG.standard_normal((4, 2)), requires_grad=True)
    wf.embedding(x * 2.0, wf.tensor([1, 1]), sparse=True).sum().backward()
    assert isinstance(x.grad, wf.Tensor)
    assert x.grad[:, 0].tolist() == [0.0, 4.0, 0.0, 0.0]


def test_transforms_and_higher_derivatives_are_dense(table):
    index = wf.tensor([1, 1, 3])

    def loss(weight):
        return (wf.embedding(weight, index, sparse=True) ** 3).sum()

    def plain(weight):
        return (wf.embedding(weight, index) ** 3).sum()

    w = table.weight.detach()
    for transform in (wf.grad, wf.hessian, lambda f: lambda x: wf.jvp(f, (x,), (x,))[1]):
        np.testing.assert_allclose(transform(loss)(w).numpy(), transform(plain)(w).numpy())
    found = wf.gradients(loss(table.weight), table.weight)
    assert isinstance(found, wf.Tensor)
    loss(table.weight).backward(create_graph=True)
    assert isinstance(table.weight.grad, wf.Tensor)
    (table.weight.grad**2).sum().backward()


def test_vmap_is_dense(table):
    indices = wf.tensor([[1, 2], [2, 3], [0, 0]])

    def loss(weight, index):
        return (wf.embedding(weight, index, sparse=True) ** 2).sum()

    found = wf.vmap(wf.grad(loss), (None, 0))(table.weight.detach(), indices)
    each = [wf.grad(loss)(table.weight.detach(), index).numpy() for index in indices]
    np.testing.assert_allclose(found.numpy(), np.stack(each))
    wf.vmap(lambda index: table(index) ** 2)(indices).sum().backward()
    expected = np.sum(each, 0)
    np.testing.assert_allclose(table.weight.grad.numpy(), expected)


def test_loops_and_checkpoints_are_dense(table):
    def body(total, index):
        return total + (table(index) ** 2).sum(), total

    indices = wf.tensor([[1, 2], [2, 3]])
    wf.scan(body, wf.tensor(0.0), indices)[0].backward()
    looped = table.weight.grad.numpy()
    table.weight.grad = None
    wf.checkpoint(lambda index: (table(index) ** 2).sum())(indices).backward()
    np.testing.assert_allclose(table.weight.grad.numpy(), looped, rtol=1e-6)


def test_gradients_of_a_graph_are_dense(table):
    with wf.Graph() as graph:
        index = wf.placeholder((2,), wf.int64)
        gradient = wf.gradients(table(index).sum(), table.weight)
    found = wf.Session(graph).run(gradient, {index: np.array([1, 1])})
    assert found[:, 0].tolist() == [0.0, 2.0, 0.0, 0.0, 0.0, 0.0]


def test_looking_for_nans_passes_it(table):
    assert has_nan(rows_of([1], [[float("nan")]], (4, 1)))
    assert not has_nan(rows_of([1], [[1.0]], (4, 1)))
    with wf.detect_anomaly():
        table(wf.tensor([1])).sum().backward()
    assert table.weight.grad.rows.tolist() == [1]


# -- under jit -------------------------------------------------------------------------------------


def test_grad_under_jit_is_what_eager_code_leaves(table):
    @wf.jit
    def backward(index):
        table.weight.grad = None
        loss = (table(index) ** 2).sum()
        loss.backward()
        return table.weight.grad.to_dense().sum()

    for index in ([[1, 2], [2, 3]], [[0, 0], [5, 1]], [[1, 1], [1, 1]]):
        total = backward(wf.tensor(index))
        found = table.weight.grad
        assert isinstance(found, wf.RowSparse)
        table.weight.grad = None
        (table(wf.tensor(index)) ** 2).sum().backward()
        assert found.rows.tolist() == table.weight.grad.rows.tolist()
        np.testing.assert_array_equal(found.numpy(), table.weight.grad.numpy())
        np.testing.assert_allclose(float(total), found.numpy().sum(), rtol=1e-5)


def test_backward_outside_of_a_jitted_function(table):
    forward = wf.jit(lambda index: (table(index) ** 2).sum())
    for index in ([1, 2, 2], [3, 1, 0], [5, 5, 5]):
        table.weight.grad = None
        forward(wf.tensor(index)).backward()
        found = table.weight.grad
        assert isinstance(found, wf.RowSparse)
        assert found.rows.tolist() == index
        table.weight.grad = None
        (table(wf.tensor(index)) ** 2).sum().backward()
        np.testing.assert_array_equal(found.numpy(), table.weight.grad.numpy())


def test_gradients_that_add_up_over_calls(table):
    @wf.jit
    def backward(index):
        table(index).sum().backward()

    backward(wf.tensor([1, 2]))
    with pytest.warns(RuntimeWarning, match="row-sparse gradient from outside"):
        backward(wf.tensor([2, 3]))
    backward(wf.tensor([4, 4]))
    assert table.weight.grad.rows.tolist() == [1, 2, 2, 3, 4, 4]


def test_a_jitted_function_of_a_result(table):
    forward = wf.jit(lambda weight: (wf.embedding(weight, wf.tensor([1, 1]), sparse=True)).sum())
    for _ in range(3):
        table.weight.grad = None
        forward(table.weight * 2.0).backward()
        assert isinstance(table.weight.grad, wf.Tensor)
        assert table.weight.grad[:, 0].tolist() == [0.0, 4.0, 0.0, 0.0, 0.0, 0.0]
