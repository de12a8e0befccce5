"""Networks over structures, one by one and batched: the same results and the same gradients."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.models import MODELS
from weft.core.tree import flatten

TOLERANCES = {"float64": (1e-12, 1e-12), "float32": (2e-4, 2e-5)}


def numbers(result):
    """Return the leaves of a result as arrays."""
    return [np.asarray(leaf.numpy() if isinstance(leaf, wf.Tensor) else leaf) for leaf in result]


def results_and_gradients(model, results):
    """Return what examples computed, and the gradients of the mean of their losses."""
    for p in model.parameters:
        p.grad = None
    losses = [flatten(result)[0][0] for result in results]
    (sum(losses) / len(losses)).backward()
    gradients = [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in model.parameters]
    return [numbers(flatten(result)[0]) for result in results], gradients


def assert_equal(found, expected, dtype):
    rtol, atol = TOLERANCES[dtype]
    for i, (ours, theirs) in enumerate(zip(found[0], expected[0], strict=True)):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b, rtol, atol, err_msg=f"example {i}")
    for i, (a, b) in enumerate(zip(found[1], expected[1], strict=True)):
        np.testing.assert_allclose(a, b, rtol, atol, err_msg=f"parameter {i}")


CASES = [(name, False) for name in MODELS]
CASES += [(name, True) for name, model in MODELS.items() if model.cell_names]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("name", "cells"), CASES)
def test_batched_equals_one_by_one(name, cells, dtype):
    alone, together = MODELS[name](dtype), MODELS[name](dtype, cells)
    examples = alone.examples(9)
    expected = results_and_gradients(alone, [alone.loss(example) for example in examples])
    found = results_and_gradients(together, wf.batched(together.loss)(examples))
    assert_equal(found, expected, dtype)


@pytest.mark.parametrize(("name", "cells"), CASES)
def test_plans_that_are_used_again_are_not_stale(name, cells):
    """Other batches of examples that were seen, with other weights: Python may not run again."""
    model = MODELS[name]("float64", cells)
    together = wf.batched(model.loss)
    examples = model.examples(8)
    whole = [*range(8)]
    orders = [[0, 1, 2, 3], [5, 3, 4, 1], whole, [7, 7, 0], whole, whole, whole[::-1]]
    for step, order in enumerate(orders):
        given = [examples[i] for i in order]
        expected = results_and_gradients(model, [model.loss(example) for example in given])
        assert_equal(results_and_gradients(model, together(given)), expected, "float64")
        change = (0.9, 0.01) if step < 4 else (0.99, 0.0)  # the last steps go the same way, mostly
        with wf.no_grad():
            for p in model.parameters:
                p.assign(p * change[0] + change[1])


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_is_reached(name):
    model = MODELS[name]()
    _, gradients = results_and_gradients(model, [model.loss(e) for e in model.examples(60)])
    assert [i for i, g in enumerate(gradients) if not np.abs(g).any()] == []
