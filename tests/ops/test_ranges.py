"""Tensors of evenly spaced numbers."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.ops.test_creation import same


@pytest.mark.parametrize(
    "args", [(5,), (2, 7), (7, 2), (7, 2, -2), (0,), (-3,), (0.0, 1.0, 0.25), (1.5,), (3, 0, -0.5)]
)
def test_arange_is_numpys(args):
    expected = np.arange(*args)
    dtype = np.int64 if expected.dtype.kind == "i" else np.float32
    same(wf.arange(*args), expected.astype(dtype))
    same(wf.arange(*args, dtype="float64"), expected.astype(np.float64))


def test_arange_takes_zero_dimensional_tensors():
    assert wf.arange(wf.tensor(3)).tolist() == [0, 1, 2]


def test_bad_ranges():
    with pytest.raises(ValueError, match="step must not be zero"):
        wf.arange(0, 3, 0)
    with pytest.raises(ValueError, match=r"finite.*inf"):
        wf.arange(0, float("inf"))
    with pytest.raises(TypeError, match=r"stop must be a number.*'a'"):
        wf.arange("a")
    with pytest.raises(ValueError, match="negative"):
        wf.linspace(0, 1, -2)
    with pytest.raises(TypeError, match=r"2\.5"):
        wf.linspace(0, 1, 2.5)


def test_linspace_and_logspace():
    same(wf.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
    same(wf.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, False).astype(np.float32))
    same(wf.linspace(2, 3, 1), np.array([2], np.float32))
    same(wf.linspace(2, 3, 0), np.array([], np.float32))
    same(wf.linspace(-1, 1, 3, dtype="int64"), np.array([-1, 0, 1]))
    found = wf.logspace(0, 3, 4, base=2.0, dtype="float64")
    np.testing.assert_allclose(found.numpy(), [1, 2, 4, 8], rtol=1e-15)


# -- between tensors ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("num", [0, 1, 2, 7])
def test_linspace_between_tensors_has_their_dtype_and_the_numbers_values(dtype, endpoint, num):
    ends = np.array([-0.3, 1.7], dtype)
    found = wf.linspace(*wf.tensor(ends), num, endpoint=endpoint)
    same(found, np.linspace(*ends.astype(np.float64), num, endpoint=endpoint).astype(dtype))


def test_linspace_takes_tensors_beside_numbers_and_with_axes():
    assert wf.linspace(wf.tensor(0), 1.0, 3).dtype == wf.float32
    assert wf.linspace(0, wf.tensor(1.0, dtype="float64"), 3).dtype == wf.float64
    assert wf.linspace(0, wf.tensor(4.0), 3, dtype="int64").tolist() == [0, 2, 4]
    rows = wf.linspace(wf.tensor([0.0, 1.0]), 2.0, 3)
    assert rows.tolist() == [[0.0, 1.0], [1.0, 1.5], [2.0, 2.0]]
    with pytest.raises(TypeError, match=r"linspace: start must hold numbers.*'a'"):
        wf.linspace("a", wf.tensor(1.0))


SPACED = {
    "linspace start": (lambda a: wf.linspace(a, 1.0, 3), [1.0, 0.5, 0.0]),
    "linspace stop": (lambda a: wf.linspace(0, a, 3), [0.0, 0.5, 1.0]),
    "linspace open": (lambda a: wf.linspace(0, a, 2, endpoint=False), [0.0, 0.5]),
    "linspace one": (lambda a: wf.linspace(a, 3 * a, 1), [1.0]),
    "logspace stop": (lambda a: wf.logspace(0, a, 2, base=4.0), [0.0, 2 * np.log(4)]),
    "logspace base": (lambda a: wf.logspace(0, 2, 3, base=a), [0.0, 1.0, 1.0]),
    "arange start": (lambda a: wf.arange(a, 2.0), [1.0, 1.0]),
    "arange step": (lambda a: wf.arange(0, 1.4, a), [0.0, 1.0, 2.0]),
    "arange stop": (lambda a: wf.arange(a) * a, [0.0]),
    "full": (lambda a: wf.full((2,), a), [1.0, 1.0]),
    "full_like": (lambda a: wf.full_like(wf.zeros(2), a), [1.0, 1.0]),
}


@pytest.mark.parametrize("name", SPACED)
def test_gradients_flow_to_tensors_that_numbers_are_made_from(name):
    fn, slopes = SPACED[name]
    a, close = wf.tensor(0.5), pytest.approx
    assert wf.jacrev(fn)(a).tolist() == close(slopes)
    assert wf.jvp(fn, (a,), (wf.tensor(1.0),))[1].tolist() == close(slopes)
    leaf = wf.tensor(0.5, requires_grad=True)
    assert fn(leaf).requires_grad


def test_ranges_between_symbols():
    def fn(a):
        return wf.linspace(a, 2 * a, 3) * wf.full((3,), a) + wf.logspace(a, a, 3)

    a = wf.tensor(0.5)
    np.testing.assert_allclose(wf.compile(fn, a)(a).numpy(), fn(a).numpy(), rtol=1e-6)
    np.testing.assert_allclose(wf.vmap(fn)(wf.stack([a, a])).numpy()[1], fn(a).numpy(), rtol=1e-6)


def test_requires_grad_makes_a_leaf_also_between_tensors():
    a = wf.tensor(0.5, requires_grad=True)
    for x in (wf.linspace(a, 1, 2, requires_grad=True), wf.full((2,), a, requires_grad=True)):
        assert x.is_leaf
        assert x.requires_grad
