"""Values that go to computed places: in one order, at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.running import check_native

rng = np.random.default_rng(0)
F = wf.nn.functional


def numbers(*shape):
    return rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("columns", [1, 3, 64, 65, 200])
@pytest.mark.parametrize("count", [0, 1, 7, 1000])
def test_gradient_of_an_embedding(columns, count):
    """Repeated rows add up in the order of the indices, to the last bit."""
    index = rng.integers(0, 20, count)

    def function(w, i, g):
        return wf.gradients((F.embedding(i, w) * g).sum(), w)

    check_native(function, numbers(20, columns), index, numbers(count, columns))


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_gradient_of_take(axis):
    x = numbers(4, 5, 6)
    size = x.size if axis is None else x.shape[axis]
    index = rng.integers(-size, size, (3, 7))
    check_native(lambda x, i: wf.gradients((wf.take(x, i, axis) * 0.5).sum(), x), x, index)


@pytest.mark.parametrize("dim", [0, 1])
def test_scatter(dim):
    x, index, src = numbers(6, 70), rng.integers(-6, 6, (5, 66)), numbers(5, 66)

    def function(x, i, s):
        return (
            wf.scatter(x, dim, i, s),
            wf.scatter_add(x, dim, i, s),
            wf.scatter_reduce(x, dim, i, s, "amax"),
            wf.scatter_reduce(x, dim, i, s, "mean"),
        )

    check_native(function, x, index, src, tolerance=1e-6)


@pytest.mark.parametrize("shape", [(1,), (7, 1), (1, 7), (2, 3, 1), (3, 1, 2), (1, 1)])
def test_axes_of_one_element(shape):
    x, src = numbers(*shape), numbers(*shape)
    for dim in [a for a, size in enumerate(shape) if size == 1]:

        def function(x, i, s, dim=dim):
            return (
                wf.scatter_add(x, dim, i, s),
                wf.scatter_reduce(x, dim, i, s, "mean"),
                wf.scatter_reduce(x, dim, i, s, "amax"),
                wf.gradients((wf.gather(x, dim, i) * s).sum(), x),
            )

        check_native(function, x, np.zeros(shape, np.int64), src, tolerance=1e-6)


def test_writing_by_arrays():
    x, i, v = numbers(5, 6), np.array([4, -5, 4]), numbers(3, 6)
    check_native(lambda x, i, v: (wf.index_set(x, i, v), wf.index_add(x, 0, i, v)), x, i, v)


def test_an_index_out_of_range():
    total = wf.tensor(numbers(3, 2))
    before = total.numpy().copy()
    with wf.Graph() as graph:
        i = wf.placeholder((2,), wf.int64)
        update = total.assign(wf.scatter_add(total, 0, wf.stack([i, i], 1), wf.ones(2, 2)))
    with pytest.raises(IndexError, match="size 3"):
        wf.Session(graph).run(update, {i: np.array([0, 3])})
    np.testing.assert_array_equal(total.numpy(), before)


def test_a_step_of_training_updates_in_place():
    """The adjoint does not check indices again, so that weights are updated where they lie."""
    table = wf.nn.Embedding(10, 4)
    head = wf.nn.Linear(4, 3)
    parameters = [*table.parameters(), *head.parameters()]
    with wf.Graph() as graph:
        i = wf.placeholder((5,), wf.int64)
        loss = (head(table(i)) ** 2).mean()
        train = wf.optim.SGD(parameters, lr=0.1).minimize(loss)
    feeds = {i: np.array([0, 3, 3, 9, 1])}
    session = wf.Session(graph)
    executable = session.executable([loss, train], feeds)
    assert executable.stats()["library"] == []
    assert executable.layout.changed >= len(parameters)
    first = session.run([loss, train], feeds)[0]
    assert session.run([loss, train], feeds)[0] < first
