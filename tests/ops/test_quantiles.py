"""Quantiles at levels that are tensors."""

import numpy as np
import pytest

import weft as wf

X = wf.tensor([3.0, 1.0, 4.0, 1.5, 9.0], dtype="float64")
METHODS = ["linear", "lower", "higher", "midpoint", "nearest"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("level", [0.0, 0.25, 0.3, 0.5, 0.9, 1.0])
def test_levels_as_tensors_give_the_values_of_numbers(method, level):
    inf, nan = np.inf, np.nan
    for values in ([3.0, 1.0, 4.0, 9.0], [1.0, 2.0, inf], [-inf, 1.0, 2.0, inf], [1.0, nan]):
        x = wf.tensor(values, dtype="float64")
        found = wf.quantile(x, wf.tensor(level, dtype="float64"), method=method)
        np.testing.assert_array_equal(found.numpy(), wf.quantile(x, level, method=method).numpy())


def test_gradients_flow_to_levels():
    levels = wf.tensor([0.1, 0.3, 0.7], dtype="float64")
    slopes = np.diag([2.0, 6.0, 4.0])
    for jacobian in (wf.jacrev, wf.jacfwd):
        found = jacobian(lambda q: wf.quantile(X, q))(levels).numpy()
        np.testing.assert_allclose(found, slopes, rtol=1e-12)
    assert wf.grad(lambda q: wf.quantile(X, [q, 0.5]).sum())(levels[1]).item() == pytest.approx(6)
    each = wf.vmap(wf.grad(lambda q: wf.quantile(X, q)))(levels)
    np.testing.assert_allclose(each.numpy(), np.diag(slopes), rtol=1e-12)


def test_at_an_element_the_slope_is_that_of_larger_levels():
    slope = wf.grad(lambda q: wf.quantile(X, q))(wf.tensor(0.5, dtype="float64"))
    assert slope.item() == 4.0


def test_levels_that_are_symbols():
    levels = wf.tensor([0.2, 0.7])
    compiled = wf.compile(lambda q: wf.quantile(X, q), levels)
    np.testing.assert_allclose(compiled(levels).numpy(), wf.quantile(X, levels).numpy())
    for bad in (-0.1, 1.1, np.nan):
        with pytest.raises(IndexError):
            compiled(wf.tensor([0.2, bad]))


@pytest.mark.parametrize("q", [1.5, -0.1, [[0.5]], True, []])
def test_levels_are_checked_alike(q):
    messages = []
    for given in (q, wf.tensor(q)):
        with pytest.raises((TypeError, ValueError)) as caught:
            wf.quantile(X, given)
        messages.append(str(caught.value).partition("Received")[0])
    assert messages[0] == messages[1]
