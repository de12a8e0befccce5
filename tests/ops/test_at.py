"""`x.at[index]`: updates of a copy, in JAX's words."""

import numpy as np
import pytest

import weft as wf

X = np.arange(1.0, 7.0).reshape(2, 3)
UPDATES = {
    "set": lambda part, value: value,
    "add": lambda part, value: part + value,
    "subtract": lambda part, value: part - value,
    "multiply": lambda part, value: part * value,
    "mul": lambda part, value: part * value,
    "divide": lambda part, value: part / value,
    "power": lambda part, value: part**value,
    "min": np.minimum,
    "max": np.maximum,
}
INDICES = [1, (0, 2), (slice(None), 1), (slice(None), slice(0, 2)), (..., -1)]


@pytest.mark.parametrize("name", list(UPDATES))
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_updates(name, index):
    x = wf.tensor(X)
    found = getattr(x.at[index], name)(2.5)
    expected = X.copy()
    expected[index] = UPDATES[name](expected[index], 2.5)
    np.testing.assert_allclose(found.numpy(), expected)
    np.testing.assert_array_equal(x.numpy(), X)


def test_every_value_for_one_element_counts():
    x, twice = wf.ones(3), wf.tensor([1, 1])
    assert x.at[twice].add(wf.tensor([2.0, 3.0])).tolist() == [1, 6, 1]
    assert x.at[twice].multiply(wf.tensor([2.0, 3.0])).tolist() == [1, 6, 1]
    assert x.at[twice].max(wf.tensor([2.0, 3.0])).tolist() == [1, 3, 1]
    assert x.at[twice].set(wf.tensor([2.0, 3.0])).tolist() == [1, 3, 1]


def test_reads_and_functions_of_the_part():
    x = wf.tensor(X)
    np.testing.assert_array_equal(x.at[1].get().numpy(), X[1])
    np.testing.assert_array_equal(x.at[0].apply(wf.square).numpy(), [X[0] ** 2, X[1]])


def test_gradients_and_jit():
    def f(x, v):
        return (x.at[1].multiply(v).at[0].add(v) ** 2).sum()

    x, v = wf.tensor([1.0, 2.0, 3.0]), wf.tensor(4.0)
    gx, gv = wf.grad(f, argnums=(0, 1))(x, v)
    np.testing.assert_allclose(gx.numpy(), [10, 64, 6])
    np.testing.assert_allclose(float(gv), 2 * 5 + 2 * 8 * 2)
    assert float(wf.jit(f)(x, v)) == float(f(x, v))
