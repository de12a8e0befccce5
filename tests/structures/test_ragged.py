"""Ragged tensors: held against the same on lists of rows, with gradients, captured and compiled."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf

LENGTHS = st.lists(st.integers(0, 4), min_size=1, max_size=6)


def drawn(lengths, *inner, seed=0):
    """Return a ragged tensor of float64 and its rows as arrays."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(n, *inner)) for n in lengths]
    values = np.concatenate(rows) if rows else np.zeros((0, *inner))
    return wf.ragged(wf.tensor(values, requires_grad=True), lengths=lengths), rows


def assert_rows(r, rows):
    assert len(r) == len(rows)
    for found, expected in zip(r.rows(), rows, strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12)


# -- making and taking apart ----------------------------------------------------------------------


def test_all_ways_to_make_one_agree():
    rows = [[1.0, 2.0], [], [3.0, 4.0, 5.0], []]
    values = [1.0, 2.0, 3.0, 4.0, 5.0]
    padded = [[1.0, 2.0, 9.0], [9.0, 9.0, 9.0], [3.0, 4.0, 5.0], [9.0, 9.0, 9.0]]
    for r in (
        wf.ragged(rows),
        wf.ragged([wf.tensor(row) for row in rows]),
        wf.ragged(values, row_splits=[0, 2, 2, 5, 5]),
        wf.ragged(values, lengths=wf.tensor([2, 0, 3, 0])),
        wf.ragged(np.array(values), row_ids=np.array([0, 0, 2, 2, 2], np.int32), num_rows=4),
        wf.ragged(padded, lengths=[2, 0, 3, 0], padded=True),
    ):
        assert r.to_list() == rows
        assert r.shape == (4, None)
        assert r.row_splits.tolist() == [0, 2, 2, 5, 5]
        assert r.lengths.tolist() == [2, 0, 3, 0]
        assert r.row_ids.tolist() == [0, 0, 2, 2, 2]
    assert repr(wf.ragged([[1], [2, 3]])) == "ragged([[1], [2, 3]])"
    assert wf.ragged([1, 2], row_ids=[0, 2]).num_rows == 3


def test_rows_of_tensors_keep_their_history():
    a, b = wf.ones(2, requires_grad=True), wf.ones(1, requires_grad=True)
    (wf.ragged([a, b]) * wf.ragged([[2.0, 3.0], [4.0]])).sum().sum().backward()
    assert a.grad.tolist() == [2.0, 3.0]
    assert b.grad.tolist() == [4.0]


@given(LENGTHS)
def test_padded_and_back(lengths):
    r, rows = drawn(lengths, 2)
    padded = r.to_padded(7.0)
    for row, line in zip(rows, padded.numpy(), strict=True):
        np.testing.assert_array_equal(line[: len(row)], row)
        assert (line[len(row) :] == 7.0).all()
    assert_rows(wf.ragged(padded, lengths=lengths, padded=True), rows)
    assert r.to_padded(length=6).shape == (len(lengths), 6, 2)


@given(LENGTHS, st.data())
def test_rows_by_index(lengths, data):
    r, rows = drawn(lengths)
    count = len(lengths)
    i = data.draw(st.integers(-count, count - 1))
    np.testing.assert_array_equal(r[i].numpy(), rows[i])
    chosen = data.draw(st.lists(st.integers(-count, count - 1), max_size=5))
    assert_rows(r[chosen], [rows[i] for i in chosen])
    assert_rows(r[1::2], rows[1::2])
    assert_rows(r[::-1], rows[::-1])
    mask = np.arange(count) % 2 == 0
    assert_rows(r[wf.tensor(mask)], rows[::2])
    assert_rows(r[:], list(rows))


# -- operators ------------------------------------------------------------------------------------


def test_elementwise_operators_in_every_spelling():
    r, rows = drawn([2, 0, 3])
    other, others = drawn([2, 0, 3], seed=1)
    assert_rows(r + other, [a + b for a, b in zip(rows, others, strict=True)])
    assert_rows(2 - r, [2 - a for a in rows])
    assert_rows(r / 4, [a / 4 for a in rows])
    assert_rows(-r, [-a for a in rows])
    assert_rows(r > 0, [a > 0 for a in rows])
    assert_rows(r == other, [a == b for a, b in zip(rows, others, strict=True)])
    assert_rows(abs(r) ** 2, [a**2 for a in rows])
    assert_rows(r.tanh(), [np.tanh(a) for a in rows])
    assert_rows(wf.exp(r), [np.exp(a) for a in rows])
    assert_rows(wf.where(r > 0, r, 0.0), [np.maximum(a, 0) for a in rows])
    assert_rows(wf.maximum(0.5, r), [np.maximum(a, 0.5) for a in rows])


def test_tensors_beside_it():
    r, rows = drawn([2, 0, 3], 4)
    inner, per_row = np.arange(4.0), np.arange(12.0).reshape(3, 1, 4)
    assert_rows(r * inner, [a * inner for a in rows])
    assert_rows(wf.tensor(inner) + r, [a + inner for a in rows])
    assert_rows(r + wf.tensor(per_row), [a + b for a, b in zip(rows, per_row, strict=True)])
    assert_rows(r + per_row[:1], [a + per_row[0] for a in rows])
    assert_rows(r.spread(per_row[:, 0]) - r, [b - a for a, b in zip(rows, per_row, strict=True)])


def test_matrices_and_layers_on_the_inner_axis():
    r, rows = drawn([2, 0, 3], 4)
    w = np.random.default_rng(2).normal(size=(4, 5))
    assert_rows(r @ wf.tensor(w), [a @ w for a in rows])
    assert_rows(r.apply(lambda x: x[:, 0]), [a[:, 0] for a in rows])


@given(LENGTHS)
def test_reductions_of_rows(lengths):
    r, rows = drawn(lengths, 2)
    for name, empty in (("sum", 0), ("mean", 0), ("max", -np.inf), ("min", np.inf), ("prod", 1)):
        reduce = getattr(np, name)
        expected = [reduce(a, axis=0) if len(a) else np.full(2, empty) for a in rows]
        np.testing.assert_allclose(getattr(r, name)().numpy(), expected, rtol=1e-12)
    exps = [np.exp(a).sum(0) for a in rows]
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(r.logsumexp().numpy(), np.log(exps), rtol=1e-12, atol=1e-12)
    shares = [np.exp(a) / e for a, e in zip(rows, exps, strict=True)]
    assert_rows(r.softmax(), shares)
    assert_rows(r.log_softmax(), [np.log(a) for a in shares])


@given(LENGTHS)
def test_rows_below_each_other_and_end_to_end(lengths):
    a, first = drawn(lengths)
    b, second = drawn(lengths[::-1], seed=1)
    assert_rows(wf.Ragged.concat([a, b]), first + second)
    joined = [np.concatenate(pair) for pair in zip(first, second, strict=True)]
    assert_rows(wf.Ragged.concat([a, b], axis=1), joined)


def test_gradients_to_second_order():
    splits = [0, 2, 2, 5]

    def loss(values):
        r = wf.ragged(values, row_splits=splits)
        return (r.softmax() * (r * r)).sum().sum() + wf.where(r.lengths > 0, r.max(), 0.0).sum()

    x = wf.tensor(np.random.default_rng(0).normal(size=5))
    step, eps = np.eye(5), 1e-6
    gradient = wf.grad(loss)
    differences = [(loss(x + eps * e) - loss(x - eps * e)) / (2 * eps) for e in step]
    np.testing.assert_allclose(gradient(x).numpy(), [d.item() for d in differences], atol=1e-8)
    hessian = [(gradient(x + eps * e) - gradient(x - eps * e)).numpy() / (2 * eps) for e in step]
    np.testing.assert_allclose(wf.hessian(loss)(x).numpy(), hessian, atol=1e-7)


def test_functions_of_rows_go_by_batches():
    r, rows = drawn([2, 0, 3, 2], 2)
    w = wf.tensor(np.random.default_rng(2).normal(size=(2, 2)), requires_grad=True)

    def reduced(row):
        h = wf.zeros(2, dtype="float64")
        for i in range(row.shape[0]):
            h = wf.tanh(h @ w + row[i])
        return h

    states = r.map(reduced, reduce="stack")
    alone = wf.stack([reduced(wf.tensor(row)) for row in rows])
    np.testing.assert_allclose(states.numpy(), alone.numpy(), rtol=1e-12)
    states.sum().backward()
    together, w.grad = w.grad.numpy(), None
    alone.sum().backward()
    np.testing.assert_allclose(together, w.grad.numpy(), rtol=1e-12)
    assert r.values.grad.shape == r.values.shape
    assert len(r.map(reduced)) == 4


# -- captured -------------------------------------------------------------------------------------


def test_jit_takes_and_returns_ragged_tensors():
    @wf.jit
    def step(r, w):
        return ((r @ w).tanh()).softmax()

    w = wf.tensor(np.random.default_rng(2).normal(size=(2, 3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # jit warns where it runs eagerly
        for seed, lengths in enumerate([[2, 0, 3], [1, 4, 0], [2, 0, 3]]):
            r, rows = drawn(lengths, 2, seed=seed)
            exps = [np.exp(np.tanh(a @ w.numpy())) for a in rows]
            assert_rows(step(r, w), [e / e.sum(0) for e in exps])


def test_graphs_of_symbols():
    values, splits = wf.tensor(np.arange(5.0)), wf.tensor([0, 2, 2, 5])

    def means(values, splits):
        r = wf.ragged(values, row_splits=splits)
        return (r * r).mean(), r.to_padded(length=3)

    found, padded = wf.compile(means, values, splits)(values, splits)
    assert found.tolist() == [0.5, 0.0, (4 + 9 + 16) / 3]
    assert padded.tolist() == [[0, 1, 0], [0, 0, 0], [2, 3, 4]]


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: wf.ragged(3), TypeError, "list of rows.*Received: int 3"),
        (lambda: wf.ragged([1.0]), ValueError, "row 0 must be a sequence"),
        (lambda: wf.ragged([1.0], row_splits=[0, 2]), ValueError, r"0 to 1.*\[0, 2\]"),
        (lambda: wf.ragged([1.0], row_splits=[0.0, 1.0]), TypeError, "integers.*float64"),
        (lambda: wf.ragged([1.0], row_splits=[[0, 1]]), ValueError, r"vector.*\(1, 2\)"),
        (lambda: wf.ragged([1.0], lengths=[2]), ValueError, "sum to 1.*which sum to 2"),
        (lambda: wf.ragged([1.0, 2.0], row_ids=[1, 0]), ValueError, "must ascend"),
        (lambda: wf.ragged([1.0, 2.0], row_ids=[0]), ValueError, "each of 2 values"),
        (lambda: wf.ragged([1.0], lengths=[1], row_ids=[0]), ValueError, "give one of"),
        (lambda: wf.ragged([[1.0]], padded=True), ValueError, "padded needs lengths"),
        (lambda: wf.ragged([[1.0]], lengths=[2], padded=True), ValueError, r"within 0\.\.1"),
        (lambda: R + wf.ragged([[1.0], [2.0]]), ValueError, "row 0 with 2 and 1 values"),
        (lambda: R + wf.ragged([[1.0]]), ValueError, "equally many rows.*2 and 1"),
        (lambda: R + wf.ones(3), ValueError, r"^add: beside .*Received: shape \(3,\)"),
        (lambda: wf.sum(R), TypeError, "sum: not for ragged tensors"),
        (lambda: R[5], IndexError, "row 5 is out of range for 2 rows"),
        (lambda: R.transpose, AttributeError, "no attribute 'transpose'; r.values"),
        (lambda: R.apply(lambda x: x[:1]), ValueError, "each of 3 values"),
        (lambda: R.spread([1.0]), ValueError, "each of 2 rows"),
        (lambda: wf.Ragged.concat([R], axis=2), ValueError, "0 or 1. Received: 2"),
        (lambda: wf.Ragged.concat([R, R[:1]], axis=1), ValueError, r"equally many rows.*\[1, 2\]"),
        (lambda: wf.Ragged.concat([]), TypeError, "at least one"),
        (lambda: hash(R), TypeError, "unhashable"),
    ],
)
def test_bad_input_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


R = wf.ragged([[1.0, 2.0], [3.0]])
