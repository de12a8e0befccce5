"""Operands made of lists that hold tensors: stacked, recorded, in every mode."""

import numpy as np
import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.core.operands import array_from, tensor_from

T = wf.tensor([3.0, 4.0])
POINT = 1.5


def written(a):
    x = wf.zeros(2)
    x[[0, 1]] = [a, a]
    x += [a, a]
    x[1] = a
    return x.sum()


PROGRAMS = {
    "sum": (lambda a: wf.sum([a, a + 2]), 2.0),
    "tensor": (lambda a: wf.tensor([a, a]).sum(), 2.0),
    "tensor of one": (lambda a: wf.tensor(a) * 2, 2.0),
    "asarray": (lambda a: wf.asarray((a, 1.0)).sum(), 1.0),
    "norm": (lambda a: wf.linalg.norm([a, 2 * a]), 5.0**0.5),
    "dot": (lambda a: wf.dot([a, a], T), 7.0),
    "dot right": (lambda a: wf.dot(T, [a, a]), 7.0),
    "method": (lambda a: T.dot([a, a]), 7.0),
    "where": (lambda a: wf.where([True, False], [a, a], T).sum(), 1.0),
    "concatenate": (lambda a: wf.concatenate([[a], [a]]).sum(), 2.0),
    "stack": (lambda a: wf.stack([a, 1.0, np.float32(2)]).sum(), 1.0),
    "vstack": (lambda a: wf.vstack([[a, 1.0], T]).sum(), 1.0),
    "times": (lambda a: (T * [a, a]).sum(), 7.0),
    "reversed": (lambda a: ([a, a] * T).sum(), 7.0),
    "tuple": (lambda a: (T - (a, 1.0)).sum(), -1.0),
    "comparison": (lambda a: wf.where([a, a] < T, T * a, T).sum(), 7.0),
    "meshgrid": (lambda a: wf.meshgrid([a, 1.0])[0].sum(), 1.0),
    "meshgrid of lists": (lambda a: wf.meshgrid([a, 1.0], [1.0, 2.0, 3.0])[0].sum(), 3.0),
    "nested": (lambda a: wf.sum([[a, 1], [2, a]]), 2.0),
    "rows": (lambda a: wf.sum([T * a, [1, 2], np.ones(2)]), 7.0),
    "einsum": (lambda a: wf.einsum("i,i->", [a, a], T), 7.0),
    "einsum of one": (lambda a: wf.einsum("i->", [a, a]), 2.0),
    "clip": (lambda a: wf.clip(wf.zeros(2), min=[a, a]).sum(), 2.0),
    "loss": (lambda a: wf.nn.functional.mse_loss(T, [a, a]), -4.0),
    "writes": (written, 3.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_flow_to_the_tensors_in_lists(name):
    fn, slope = PROGRAMS[name]
    a = wf.tensor(POINT)
    one = wf.tensor(1.0)
    assert wf.grad(fn)(a).item() == pytest.approx(slope)
    assert wf.jvp(fn, (a,), (one,))[1].item() == pytest.approx(slope)
    assert wf.vmap(wf.grad(fn))(wf.stack([a, a])).tolist() == pytest.approx([slope] * 2)


def test_lists_of_symbols_are_values_of_the_graph():
    with wf.Graph() as graph:
        a = wf.placeholder((), wf.float32, name="a")
        n = wf.placeholder((None,), wf.float32, name="n").shape[0]
        loss = wf.sum(T * [a, 2 * a] + [n, 1])
        slope = wf.gradients(loss, [a])[0]
    feeds = {"a": 2.0, "n": np.zeros(5, np.float32)}
    assert wf.Session(graph).run([loss, slope], feeds) == [28.0, 11.0]


def test_lists_of_tensors_compile():
    fn = wf.compile(wf.grad(lambda a: wf.sum([a, a * a])), wf.tensor(0.0))
    assert fn(wf.tensor(3.0)).item() == 7.0


def test_a_graph_reads_tensors_in_lists_anew():
    a = wf.tensor(1.0)
    with wf.Graph() as graph:
        total = wf.tensor([a, a]).sum()
    session = wf.Session(graph)
    assert session.run(total) == 2.0
    a.fill_(5.0)
    assert session.run(total) == 10.0


# -- dtypes ---------------------------------------------------------------------------------------


def test_a_nest_takes_the_dtype_in_which_its_parts_meet():
    double, single = wf.tensor(1.0, dtype="float64"), wf.tensor(1.0)
    assert wf.tensor([double, single]).dtype == wf.float64
    assert wf.tensor([[single, 1], [2, 3.5]]).dtype == wf.float32
    assert wf.tensor([wf.tensor(1), 2.5]).dtype == wf.float32
    assert wf.tensor([single, np.float64(2)]).dtype == wf.float64
    assert wf.tensor([wf.tensor(True), False]).dtype == wf.bool
    assert wf.tensor([wf.tensor(1.9), 2.9], dtype="int8").tolist() == [1, 2]


def test_numbers_in_other_rows_are_not_rounded():
    x = wf.tensor([[wf.tensor(1.0, dtype="float64"), 0.1], [0.1, 0.1]])
    assert x.tolist() == [[1.0, 0.1], [0.1, 0.1]]


# -- what is made, and what is not ----------------------------------------------------------------


def test_requires_grad_asks_for_a_leaf_of_its_own():
    a = wf.tensor(1.0, requires_grad=True)
    for data in (a, [a, a]):
        leaf = wf.tensor(data, requires_grad=True)
        assert leaf.is_leaf
        assert leaf.requires_grad
    assert not wf.tensor([a.detach(), a.detach()]).requires_grad


def test_indices_may_be_lists_of_tensors():
    i, j = wf.tensor(1), wf.tensor(0)
    assert T[[i, j]].tolist() == [4.0, 3.0]
    assert T[[[i, 0]]].tolist() == [[4.0, 3.0]]
    picked = wf.vmap(lambda i: T[[i, 0]])(wf.tensor([0, 1]))
    assert picked.tolist() == [[3.0, 3.0], [4.0, 3.0]]


def test_arrays_of_tensors_are_stacked():
    a = wf.tensor(2.0, requires_grad=True)
    objects = np.empty(2, object)
    objects[:] = [a, a]
    (T * objects).sum().backward()
    assert a.grad.item() == 7.0
    assert wf.tensor(objects).requires_grad
    assert (objects * T).tolist() == [6.0, 8.0]


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([T, T[0]], ValueError, "x is ragged"),
        ([[T[0], T[0]], [T[0]]], ValueError, "x is ragged"),
        ([[], T[0]], ValueError, "x is ragged"),
        ([T[0], "a"], TypeError, "must hold numbers"),
        (np.array([1, None]), TypeError, "must hold numbers"),
        ([wf.tensor(1, dtype="int8"), 300], TypeError, "does not fit in int8"),
    ],
)
def test_nests_that_make_no_tensor_are_named(data, error, message):
    with pytest.raises(error, match=message) as caught:
        wf.sum(data)
    assert isinstance(caught.value, WeftError)


def test_lists_without_tensors_stay_constants():
    assert isinstance(tensor_from([1.0, 2.0], "data"), type(tensor_from(1.0, "data")))
    assert array_from([[0.5], [1]], "data").dtype == np.float32
