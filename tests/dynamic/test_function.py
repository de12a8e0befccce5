"""Functions of one example, run for many: equal to one by one, with gradients."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.trees import TreeNet, random_trees


def gradients_of(net, losses):
    for p in net.parameters:
        p.grad = None
    sum(losses).backward()
    return [p.grad.numpy().copy() for p in net.parameters]


@pytest.mark.parametrize(("cells", "width"), [(False, 5), (True, 5), (True, 24)])
def test_trees_equal_one_by_one(cells, width):
    net = TreeNet(width, cells=cells)
    trees = random_trees(12, 2, 9)
    alone = [net.loss(tree) for tree in trees]
    expected = gradients_of(net, alone)
    together = wf.batched(net.loss)(trees)
    np.testing.assert_allclose([float(x) for x in together], [float(x) for x in alone], rtol=1e-12)
    for found, wanted in zip(gradients_of(net, together), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_results_may_be_stacked_or_reduced():
    double = lambda x: wf.tensor(x) * 2.0  # noqa: E731  (one line)
    assert wf.batched(double, reduce="stack")([1.0, 2.0]).tolist() == [2.0, 4.0]
    assert wf.batched(double, reduce="mean")([1.0, 2.0]).item() == 3.0
    assert wf.batched(double, reduce="sum")([1.0, 2.0]).item() == 6.0


def test_zero_examples():
    assert wf.batched(wf.tensor)([]) == []
    with pytest.raises(ValueError, match="no mean of zero examples"):
        wf.batched(wf.tensor, reduce="mean")([])


def fails(x):
    return wf.ones(3) + wf.ones(2) if x == 17 else wf.tensor(float(x))


def test_an_error_names_its_example():
    with pytest.raises(ValueError, match="do not broadcast") as caught:
        wf.batched(fails)(range(64))
    assert "example 17 of 64, at test_function.py:" in caught.value.__notes__[0]


def test_errors_are_collected():
    results = wf.batched(fails, errors="collect")(range(20))
    assert results[17].index == 17
    assert results[17].line.startswith("test_function.py:")
    assert float(results[19]) == 19.0


def test_a_function_must_return_something():
    with pytest.raises(TypeError, match="Received from example 0: None"):
        wf.batched(lambda x: None)([1])
